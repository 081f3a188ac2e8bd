/** A backfill beside daily harvests of the same source, while its records change: both are complete, and no record is older than it should be. */
import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startMillrace } from "../../test/millrace.ts";
import { mulberry32 } from "../kernel/mulberry32.ts";
import { DAY_MS } from "../kernel/time/units.ts";
import { startCrossref, startPubmed } from "../simulators/index.ts";
import { applySource, endOf, identityOf, plan, recordsOf } from "./harvest.fixture.ts";

const database = useDatabase();
const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
/** A year in the long form. */
const PAST = LONG ? 365 : 40;
const HARVESTS = LONG ? 14 : 5;
const PER_DAY = LONG ? 20 : 12;
const CHANGES = 10;

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

test(`a backfill of ${PAST} days and ${HARVESTS} daily harvests`, { timeout: LONG ? 900_000 : 120_000 }, async () => {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const first = today - (PAST + HARVESTS + 2) * DAY_MS;
  const days = Array.from({ length: PAST + HARVESTS }, (_, index) => dayOf(first + index * DAY_MS));
  const began = days[PAST] ?? "";
  const simulator = await startCrossref({
    unlimited: true,
    days,
    recordsPerDay: PER_DAY,
    seed: 3,
    faultDelayMs: 5,
    faults: { "http-500": 0.02, "answer-lost": 0.02, "http-429": 0.01 },
    retryAfterSeconds: 0.05,
  });
  onTestFinished(() => simulator.close());
  const { app, api } = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(simulator.origin).host,
    },
  });
  onTestFinished(() => app.stop());
  const source = await applySource(api, "crossref", simulator, {
    pagination: { pageSize: 5 },
    window: { safetyLag: "PT0S", earliest: days[0] },
  });

  const harvest = async (day: string, to = dayOf(Date.parse(day) + DAY_MS)) =>
    endOf(api, (await plan(api, { source, window: { from: day, to } })).planId);
  expect(await harvest(began)).toMatchObject({ status: "COMPLETE" });
  const back = await plan(api, { source, operation: "BACKFILL" });
  expect(back).toMatchObject({
    window: { from: `${days[0]}T00:00:00.000Z`, to: `${began}T00:00:00.000Z` },
    priority: 300,
  });
  const random = mulberry32(7);
  const past = simulator.records({ from: days[0] ?? "", to: began });
  for (const day of days.slice(PAST + 1)) {
    // Records of the past change, and belong to this day from now on: some before the backfill has read them, some after.
    for (let n = 0; n < CHANGES; n += 1) {
      const { id } = past[Math.floor(random() * past.length)] ?? { id: "" };
      simulator.update({ id, updated: `${day}T12:00:00Z`, title: `changed on ${day}` });
    }
    const harvested = await harvest(day);
    expect(harvested).toMatchObject({ status: "COMPLETE", reconciliation: { gaps: 0 } });
  }
  const ended = await endOf(api, back.planId, LONG ? 600_000 : 90_000);
  expect(ended).toMatchObject({ status: "COMPLETE", slices: { COMPLETE: PAST }, reconciliation: { gaps: 0 } });

  const now = simulator.records().map(({ id, content }) => ({ id, content }));
  const stored = (await recordsOf(api, source, now.length)).map((record) => {
    const { id, content } = identityOf("crossref", record);
    return { id, content };
  });
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  expect(stored.sort(byId)).toEqual(now.sort(byId));
  // No version was replaced by an older one.
  const [older] = await database.query<{ n: number }>(
    `select count(*)::int as n from harvest.record r join harvest.record_version v using (endpoint_id, item_key)
     where v.source_time > r.source_time`,
  );
  expect(older).toEqual({ n: 0 });
  const { body } = await api.get<{ items: object[] }>(`/api/v1/harvest/cursors?source=${source}`);
  expect(body.items).toMatchObject([
    { operation: "BACKFILL", value: `${days[0]}T00:00:00.000Z`, lagSeconds: 0 },
    { operation: "HARVEST", value: `${dayOf(first + days.length * DAY_MS)}T00:00:00.000Z` },
  ]);
});

/** The records that are known go stale: what has been read so far was 40 days ago. */
async function age(source: string): Promise<void> {
  await database.query(
    `update harvest.ing_plan_slice set ended_at = ended_at - interval '40 days'
     where provenance_code = $1 and ended_at is not null`,
    [source],
  );
  await database.query(
    `update harvest.ing_plan set planned_at = planned_at - interval '40 days'
     where provenance_code = $1 and ended_at is not null`,
    [source],
  );
}

test("the three operations of PubMed, whose windows do not show what changes later", {
  timeout: LONG ? 900_000 : 120_000,
}, async () => {
  const days = Array.from({ length: LONG ? 365 : 12 }, (_, index) => dayOf(Date.UTC(2025, 7, 1) + index * DAY_MS));
  const began = days.at(-3) ?? "";
  const simulator = await startPubmed({
    unlimited: true,
    days,
    recordsPerDay: PER_DAY,
    seed: 5,
    faultDelayMs: 5,
    faults: { "http-500": 0.02, "answer-lost": 0.02 },
  });
  onTestFinished(() => simulator.close());
  const { app, api } = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(simulator.origin).host,
    },
  });
  onTestFinished(() => app.stop());
  const source = await applySource(api, "pubmed", simulator, {
    pagination: { pageSize: 5 },
    batching: { idBatchSize: LONG ? 50 : 5 },
    update: { staleAfter: "P30D", sliceRecords: LONG ? 500 : 20 },
    window: { earliest: days[0] },
  });
  const ended = async (body: object) =>
    endOf(api, (await plan(api, { source, ...body })).planId, LONG ? 300_000 : 90_000);
  const day = (from: string) => ({ window: { from, to: dayOf(Date.parse(from) + DAY_MS) } });
  expect(await ended(day(began))).toMatchObject({ status: "COMPLETE" });
  const back = await plan(api, { source, operation: "BACKFILL" });
  const random = mulberry32(11);
  const known = simulator.records({ from: days[0] ?? "", to: dayOf(Date.parse(began) + DAY_MS) });
  const updates: number[] = [];
  for (const next of days.slice(-2)) {
    const ids = Array.from({ length: CHANGES }, () => known[Math.floor(random() * known.length)]?.id ?? "");
    for (const id of ids) simulator.update({ id, title: `corrected before ${next}` });
    await age(source);
    const [harvested, updated] = await Promise.all([ended(day(next)), ended({ operation: "UPDATE" })]);
    expect(harvested).toMatchObject({ status: "COMPLETE", reconciliation: { gaps: 0 } });
    expect(updated).toMatchObject({ status: "COMPLETE", reconciliation: { missing: 0, gaps: 0 } });
    updates.push(updated.reconciliation["received"] ?? 0);
  }
  // The first one knew the day with which it began, the second one what came since, too.
  expect(updates[0]).toBeGreaterThanOrEqual(PER_DAY);
  expect(updates[1]).toBeGreaterThan(updates[0] ?? 0);
  expect(await endOf(api, back.planId, LONG ? 600_000 : 90_000)).toMatchObject({
    status: "COMPLETE",
    reconciliation: { gaps: 0 },
  });
  // What was corrected after the backfill had read it is found once more.
  await age(source);
  expect(await ended({ operation: "UPDATE" })).toMatchObject({
    status: "COMPLETE",
    reconciliation: { received: simulator.records().length, missing: 0, gaps: 0 },
  });
  const now = simulator.records().map(({ id, content }) => ({ id, content }));
  const stored = (await recordsOf(api, source, now.length)).map((record) => {
    const { id, content } = identityOf("pubmed", record);
    return { id, content };
  });
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  expect(stored.sort(byId)).toEqual(now.sort(byId));
});
