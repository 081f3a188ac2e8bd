/** Stored events are read again after an upgrade: what an older version left out, or got wrong, is put right. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import { columnLineageFacet, dataset, type Json, lifecycleFacet, runEvent, schemaFacet } from "../events.fixture.ts";
import { migrationSql, testLineage } from "../lineage.fixture.ts";
import { createReread } from "./reread.ts";

const database = useDatabase();
const lineage = testLineage(database);
const log = recordingLog();
const FIRST = "00000000-0000-0000-0000-000000000000";

const at = (second: number, event: Json): Json => ({
  ...event,
  eventTime: `2026-03-01T10:00:${String(second).padStart(2, "0")}Z`,
});
const send = async (tenant: string, ...events: Json[]) => {
  for (const event of events) await lineage.send(tenant, event, { source: "COMPUTE_ENGINE" });
};
const mark = (tenant: string) =>
  database.query("update lineage.tenant set reread_after = $2 where id = $1", [tenant, FIRST]);

async function reread(): Promise<number> {
  const service = createReread({ db: database.db, log, onRun: () => {}, onChange: async () => {} });
  let assertions = 0;
  for (;;) {
    const counts = await service.runOnce();
    if (counts["tenants"] === 0) return assertions;
    assertions += counts["assertions"] ?? 0;
  }
}

test("column lineage that was applied without the tables gets them, page by page, and only where it is marked", async () => {
  const [tenant, other] = [await lineage.tenant(), await lineage.tenant()];
  const model = (n: number) =>
    at(
      1,
      runEvent({
        jobName: `model ${n}`,
        outputs: [dataset("file", `/w/out${n}`, columnLineageFacet({ a: [["file", `/w/in${n}`, "a"]] }))],
      }),
    );
  for (const id of [tenant, other]) await send(id, ...Array.from({ length: 120 }, (_, n) => model(n)));
  const before = await lineage.graph(tenant);
  await database.query("delete from lineage.edge where kind = 'INPUT_OF'");
  await database.query("update lineage.assertion set in_full = false");
  await mark(tenant);
  expect(await reread()).toBe(120);
  expect(await lineage.graph(tenant)).toEqual(before);
  expect((await lineage.graph(other)).edges.join()).not.toContain("INPUT_OF");
  expect(await database.query("select id from lineage.tenant where reread_after is not null")).toEqual([]);
});

test("a renamed table keeps under its new name what is read again of the time before", async () => {
  const tenant = await lineage.tenant();
  const facet = columnLineageFacet({ a: [["file", "/w/in", "a"]] });
  const model = runEvent({ jobName: "model", outputs: [dataset("file", "/w/old", facet)] });
  const renamed = runEvent({
    jobName: "rename",
    outputs: [dataset("file", "/w/new", lifecycleFacet("RENAME", { namespace: "file", name: "/w/old" }))],
  });
  await send(tenant, at(1, model), at(2, renamed), at(3, model));
  const before = await lineage.graph(tenant);
  await database.query("delete from lineage.edge where kind = 'INPUT_OF'");
  await mark(tenant);
  await reread();
  expect(await lineage.graph(tenant)).toEqual(before);
});

test("a table whose lineage a failed rename has ended gets it back", async () => {
  const tenant = await lineage.tenant();
  const load = runEvent({ jobName: "load", inputs: [dataset("file", "/w/in")], outputs: [dataset("file", "/w/out")] });
  const failed = runEvent({
    jobName: "rename",
    outputs: [dataset("file", "/w/out", lifecycleFacet("RENAME", { namespace: "file", name: "/w/outout" }))],
  });
  await send(tenant, at(1, load), at(2, failed));
  const before = await lineage.graph(tenant);
  // As an older version has left it: the rename counts, and took the edges of its target.
  await database.query("update lineage.ending set reported = null, doubt = null where tenant_id = $1", [tenant]);
  await database.query("delete from lineage.edge where tenant_id = $1 and kind = 'OUTPUT_TO'", [tenant]);
  await mark(tenant);
  await reread();
  expect(await lineage.graph(tenant)).toEqual(before);
});

test("an event that cannot be read again is left as it is, and the others are read", async () => {
  const tenant = await lineage.tenant();
  const flow = (name: string) =>
    runEvent({ jobName: name, inputs: [dataset("file", "/w/in")], outputs: [dataset("file", `/w/${name}`)] });
  await send(tenant, at(1, flow("a")), at(2, flow("b")), at(3, flow("c")));
  const before = await lineage.graph(tenant);
  await database.query("delete from lineage.edge where tenant_id = $1 and kind = 'OUTPUT_TO'", [tenant]);
  await database.query(
    `update lineage.assertion_event set event = '{"eventTime": 1}' where (tenant_id, key) =
       (select tenant_id, key from lineage.assertion where tenant_id = $1 order by key offset 1 limit 1)`,
    [tenant],
  );
  await mark(tenant);
  expect(await reread()).toBe(3);
  expect((await lineage.graph(tenant)).edges).toHaveLength(before.edges.length - 1);
  expect(log.lines).toMatchObject([{ level: "error", message: "a stored event could not be read again" }]);
});

describe("what an event from the future has told", () => {
  const SQL = migrationSql("000011_lineage_repairs");
  /** The part of the migration that is about it, as it ran on what older versions have stored. */
  const repair = SQL.slice(SQL.indexOf("update lineage.lineage_events"), SQL.indexOf("end $$;") + "end $$;".length);

  const upgrade = () => database.db.exclusive((client) => client.query(repair));

  test("counts from its arrival on after the upgrade", async () => {
    const tenant = await lineage.tenant();
    const table = (facets: Json, jobName: string, eventTime: string) =>
      runEvent({ jobName, eventTime, outputs: [dataset("file", "/w/out", facets)] });
    const described = (description: string, eventTime: string) =>
      table({ documentation: { description }, ...schemaFacet(["x"]) }, "describe", eventTime);
    const soon = () => new Date(Date.now() + 60_000).toISOString();
    await send(
      tenant,
      described("old", "2026-03-01T10:00:00Z"),
      table(lifecycleFacet("DROP"), "drop", "2200-01-01T00:00:00Z"),
      described("from the future", "2201-01-01T00:00:00Z"),
      described("now", soon()),
    );
    const TABLE = "TABLE external/file///w/out";
    expect((await lineage.graph(tenant)).nodes[TABLE]).toMatchObject({ description: "from the future" });
    await upgrade();
    await mark(tenant);
    await reread();
    expect((await lineage.graph(tenant)).nodes[TABLE]).toMatchObject({ description: "now" });
    await send(tenant, described("later", new Date(Date.now() + 120_000).toISOString()));
    expect((await lineage.graph(tenant)).nodes[TABLE]).toMatchObject({ description: "later" });
  });

  test("counts from its arrival when it was buffered and is applied later", async () => {
    const tenant = await lineage.tenant("SYNCING");
    const event = runEvent({ eventTime: "2200-01-01T00:00:00Z", inputs: [dataset("file", "/w/buffered")] });
    expect(await lineage.send(tenant, event, { source: "COMPUTE_ENGINE" })).toMatchObject({ state: "BUFFERED" });
    await upgrade();
    await lineage.ingest.makeReady(tenant);
    const [assertion] = await database.query<{ last_at: string }>(
      "select last_at::text from lineage.assertion where tenant_id = $1",
      [tenant],
    );
    expect(Number(assertion?.last_at) / 1_000).toBeLessThan(Date.now() + 1_000);
  });

  test("hides no table that was told of since", async () => {
    const tenant = await lineage.tenant();
    const use = (jobName: string, eventTime: string) =>
      runEvent({ jobName, eventTime, inputs: [dataset("file", "/w/hidden")] });
    const drop = runEvent({
      eventTime: "2200-01-01T00:00:00Z",
      outputs: [dataset("file", "/w/hidden", lifecycleFacet("DROP"))],
    });
    await send(
      tenant,
      use("early", "2026-03-01T10:00:00Z"),
      drop,
      use("late", new Date(Date.now() + 60_000).toISOString()),
    );
    expect((await lineage.graph(tenant)).edges).toEqual([]);
    await upgrade();
    await mark(tenant);
    await reread();
    expect((await lineage.graph(tenant)).edges).toEqual([
      "CATALOG external/file HAS_TABLE TABLE external/file///w/hidden",
      "TABLE external/file///w/hidden INPUT_OF JOB spark/late",
    ]);
  });
});
