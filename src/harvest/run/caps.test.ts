/** What PubMed and Crossref are known for: a cap that is never passed in silence, and one token for all pages. */
import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startMillrace } from "../../../test/millrace.ts";
import { startCrossref, startPubmed } from "../../simulators/index.ts";
import { applySource, endOf, plan, recordsOf, windowOf } from "../harvest.fixture.ts";

const database = useDatabase();

async function millraceFor(simulator: { origin: string }) {
  const { app, api } = await startMillrace(database, {
    env: { MILLRACE_ROLES: "api,worker", MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(simulator.origin).host },
  });
  onTestFinished(() => app.stop());
  return api;
}

async function watermarkOf(source: string): Promise<string | undefined> {
  const rows = await database.query<{ value: string }>(
    "select cursor_value as value from harvest.ing_cursor where provenance_code = $1",
    [source],
  );
  return rows[0]?.value;
}

describe("PubMed's cap", () => {
  const days = ["2026-08-01", "2026-08-02", "2026-08-03"];

  test("is never passed in silence: the day is a gap, the watermark stops before it, and other days are harvested", async () => {
    const simulator = await startPubmed({ days, recordsPerDay: 5, unlimited: true });
    onTestFinished(() => simulator.close());
    for (let n = 0; n < 10_495; n += 1) simulator.add({ updated: "2026-08-02T10:00:00Z" });
    const api = await millraceFor(simulator);
    const source = await applySource(api, "pubmed", simulator);
    const ended = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
    const reason =
      "the window has 10500 records, and the source answers no more than 9999 for one query; no dimension divides them: all have edat 2026-08-02";
    expect(ended).toMatchObject({
      status: "FAILED",
      slices: { COMPLETE: 2, INCOMPLETE: 1 },
      reconciliation: { received: 10, gaps: 1 },
      gapWindows: [{ status: "INCOMPLETE", reason, window: { from: "2026-08-02T00:00:00.000Z" } }],
    });
    expect(ended["remarks"]).toMatchObject({ reason: expect.stringContaining(reason) });
    expect(await recordsOf(api, source, 10)).toHaveLength(10);
    expect(await watermarkOf(source)).toBe("2026-08-02T00:00:00.000Z");
  });

  test("splits a wider window, down to days", async () => {
    const simulator = await startPubmed({ days, recordsPerDay: 20, unlimited: true });
    onTestFinished(() => simulator.close());
    const api = await millraceFor(simulator);
    const change = { window: { maxWindow: "P3D", recordsMax: 30 }, landing: undefined };
    const source = await applySource(api, "pubmed", simulator, change);
    const ended = await endOf(api, (await plan(api, { source, window: windowOf(simulator) })).planId);
    expect(ended).toMatchObject({
      status: "COMPLETE",
      slices: { SPLIT: 2, COMPLETE: 3 },
      reconciliation: { expected: 60, received: 60, gaps: 0 },
    });
    expect(await watermarkOf(source)).toBe("2026-08-04T00:00:00.000Z");
  });
});

test("Crossref's token is lost with an answer: the slice starts again, and nothing is missing", async () => {
  const simulator = await startCrossref({ days: ["2026-08-01"], recordsPerDay: 100, unlimited: true });
  onTestFinished(() => simulator.close());
  const api = await millraceFor(simulator);
  const source = await applySource(api, "crossref", simulator, { pagination: { pageSize: 20 } });
  const { planId } = await plan(api, { source, window: windowOf(simulator) });
  simulator.faults.set({ "answer-lost": { probability: 0.15 } });
  const ended = await endOf(api, planId);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 100, inserted: 100, gaps: 0 } });
  const lost = simulator.faults.table()["answer-lost"]?.struck ?? 0;
  const [slice] = await database.query<{ generation: number; batches: number }>(
    "select generation, batches from harvest.ing_plan_slice where plan_id = $1",
    [planId],
  );
  // The first page has no token yet, so it is asked for again.
  expect(slice?.generation).toBeLessThanOrEqual(1 + lost);
  const batches = await database.query<{ generation: number; n: number }>(
    `select generation, count(*)::int as n from harvest.ing_task_run_batch b join harvest.ing_plan_slice s using (slice_id, generation)
     where s.plan_id = $1 group by 1`,
    [planId],
  );
  expect(batches).toEqual([{ generation: slice?.generation, n: slice?.batches }]);
});
