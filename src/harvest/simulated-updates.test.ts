/** Updates of the simulated sources: what has not changed is not written to, what has is written alone, and what is gone is kept as each source says. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startMillrace, type TestMillrace } from "../../test/millrace.ts";
import { SIMULATORS, type Simulator, type SimulatorKind } from "../simulators/index.ts";
import {
  applySource,
  endOf,
  identityOf,
  type PlanReply,
  plan,
  recordsOf,
  type SourceName,
  windowOf,
} from "./harvest.fixture.ts";

const database = useDatabase();
const DAYS = ["2026-08-01"];
const RECORDS = 12;
const KINDS = ["crossref", "pubmed", "arxiv", "europepmc", "openalex"] as const satisfies readonly SourceName[];
/** OAI-PMH says of a record that it is deleted; the others answer nothing of it. */
const SAYS_DELETED: readonly SourceName[] = ["arxiv"];

const simulators = new Map<SourceName, Simulator>();
let millrace: TestMillrace;

beforeAll(async () => {
  process.env["OPENALEX_API_KEY"] = "test-key-0001";
  for (const kind of KINDS) {
    const { start } = SIMULATORS[kind] as SimulatorKind;
    simulators.set(kind, await start({ unlimited: true, days: DAYS, recordsPerDay: RECORDS }));
  }
  millrace = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,worker",
      MILLRACE_HARVEST_ALLOW_PRIVATE: [...simulators.values()].map(({ origin }) => new URL(origin).host).join(","),
    },
  });
});
afterAll(async () => {
  await millrace.app.stop();
  await Promise.all([...simulators.values()].map((simulator) => simulator.close()));
  delete process.env["OPENALEX_API_KEY"];
});

function simulatorOf(kind: SourceName): Simulator {
  const simulator = simulators.get(kind);
  if (!simulator) throw new Error(`there is no simulator of ${kind}`);
  return simulator;
}

/** The day harvested, by an endpoint of its own. */
async function harvested(kind: SourceName): Promise<string> {
  const simulator = simulatorOf(kind);
  const source = await applySource(millrace.api, kind, simulator, { update: { staleAfter: "P30D" } });
  const ended = await endOf(millrace.api, (await plan(millrace.api, { source, window: windowOf(simulator) })).planId);
  expect(ended).toMatchObject({ status: "COMPLETE" });
  return source;
}

/** Of all known records, 40 days after they were read. */
async function update(source: string): Promise<PlanReply> {
  for (const [table, column] of [
    ["ing_plan_slice", "ended_at"],
    ["ing_plan", "planned_at"],
  ]) {
    await database.query(
      `update harvest.${table} set ${column} = ${column} - interval '40 days' where provenance_code = $1`,
      [source],
    );
  }
  return endOf(millrace.api, (await plan(millrace.api, { source, operation: "UPDATE" })).planId);
}

/** The places of rows and their transactions: they change with every write to a row, whatever it writes. */
async function placesOf(source: string): Promise<Map<string, string>> {
  const rows = await database.query<{ key: string; place: string }>(
    `select r.item_key as key, r.ctid::text || ' ' || r.xmin::text as place from harvest.record r
     join harvest.reg_prov_endpoint_def e using (endpoint_id) where e.provenance_code = $1`,
    [source],
  );
  return new Map(rows.map(({ key, place }) => [key, place]));
}

async function stored(kind: SourceName, source: string) {
  const records = await recordsOf(millrace.api, source, simulatorOf(kind).records().length);
  return new Map(records.map((record) => [identityOf(kind, record).id, record]));
}

async function writtenSince(before: ReadonlyMap<string, string>, source: string): Promise<string[]> {
  const after = await placesOf(source);
  return [...after].filter(([key, place]) => before.get(key) !== place).map(([key]) => key);
}

describe.each(KINDS)("an update of %s", (kind) => {
  test("writes nothing where nothing has changed, and just what has", async () => {
    const simulator = simulatorOf(kind);
    const known = simulator.records().filter(({ deleted }) => !deleted);
    const source = await harvested(kind);
    const before = await placesOf(source);
    expect(before.size).toBe(simulator.records().length);
    expect(await update(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: {
        expected: known.length,
        unchanged: known.length,
        inserted: 0,
        updated: 0,
        deleted: 0,
        missing: 0,
      },
    });
    expect(await writtenSince(before, source)).toEqual([]);

    const [changed, other] = known;
    const title = `corrected work of ${kind}`;
    simulator.update({ id: changed?.id ?? "", title, updated: changed?.updated ?? "" });
    expect(await update(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { unchanged: known.length - 1, updated: 1, missing: 0 },
    });
    const now = await stored(kind, source);
    const record = now.get(changed?.id ?? "");
    expect(record).toMatchObject({ version: 2, deleted: false });
    expect(record && identityOf(kind, record).content).toBe(title);
    expect(now.get(other?.id ?? "")).toMatchObject({ version: 1 });
    expect(await writtenSince(before, source)).toEqual([record?.key]);
  });

  test("makes a tombstone of a record of which the source says that it is deleted, and else leaves it as it is", async () => {
    const simulator = simulatorOf(kind);
    const gone = simulator.records().find(({ deleted }) => !deleted)?.id ?? "";
    const source = await harvested(kind);
    const before = await placesOf(source);
    const key = (await stored(kind, source)).get(gone)?.key ?? "";
    simulator.remove(gone, "2026-08-01T23:59:59Z");
    const isTold = SAYS_DELETED.includes(kind);
    const ended = await update(source);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      reconciliation: { updated: 0, deleted: isTold ? 1 : 0, missing: isTold ? 0 : 1 },
    });
    expect(await writtenSince(before, source)).toEqual(isTold ? [key] : []);
    const { body } = await millrace.api.get(`/api/v1/harvest/records?source=${source}&key=${encodeURIComponent(key)}`);
    expect(body).toMatchObject({ items: [{ deleted: isTold, version: isTold ? 2 : 1 }] });
    const quarantined = await millrace.api.get(`/api/v1/harvest/quarantine?source=${source}`);
    expect(quarantined.body).toMatchObject({
      items: isTold ? [] : [{ key, reason: expect.stringContaining("stays as it is") }],
    });
  });
});

test("a DOI is asked for with every character that it has, and in any spelling", async () => {
  const doi = "10.5555/(sici)1099<a::b>3.0;c#d?e=f&g%2f+h/\u00fc";
  simulatorOf("crossref").add({ id: doi, updated: "2026-08-01T12:00:00Z" });
  const source = await harvested("crossref");
  const ids = [doi, doi.toUpperCase(), "10.5555/no-such-doi"];
  const ended = await endOf(millrace.api, (await plan(millrace.api, { source, operation: "UPDATE", ids })).planId);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 3, unchanged: 2, missing: 1 } });
  const { body } = await millrace.api.get(`/api/v1/harvest/quarantine?source=${source}`);
  expect(body).toMatchObject({ items: [{ key: "10.5555/no-such-doi" }] });
});

test("a work that OpenAlex has merged into another is a tombstone, and the other one is not asked for in its place", async () => {
  const simulator = simulatorOf("openalex");
  const source = await harvested("openalex");
  const [first, second] = [...(await placesOf(source)).keys()].toSorted();
  simulator.faults.set({ "merged-work": { next: 1, path: first?.split("/").at(-1) ?? "" } });
  const ended = await update(source);
  simulator.faults.clear();
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { deleted: 1, updated: 0, missing: 0 } });
  const now = await stored("openalex", source);
  expect(now.get(first ?? "")).toMatchObject({ deleted: true, version: 2, data: {} });
  expect(now.get(second ?? "")).toMatchObject({ deleted: false, version: 1 });
});
