import { expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { openHintStream } from "../../../test/hint-stream.ts";
import { until } from "../../../test/until.ts";
import { correct, itemsOf, type Script, useScripted } from "../run/scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);
const BASE = "/api/v1/harvest";
const get = async <Body = Json>(path: string) => (await harvests.api.get<Body>(BASE + path)).body;

/** Of a slow source. */
const ANSWER_MS = 60;
const DAYS = ["2026-08-01", "2026-08-02", "2026-08-03"];
const items = DAYS.flatMap((day) => itemsOf(15, day));
/** The second day is refused. */
const refusing: Script = (asked) =>
  asked.query.get("from") === DAYS[1] ? { status: 400, body: { error: "bad day" } } : correct(items)(asked);

interface Stretch {
  kind: string;
  from: string;
  to: string;
  sliceId: number | null;
  reason: string | null;
}
const coverage = async (source: string) =>
  (
    await get<{ items: { watermark: string | null; stretches: Stretch[]; to: string }[] }>(
      `/sources/${source}/coverage`,
    )
  ).items[0];
const shown = (stretches: readonly Stretch[] = []) =>
  stretches.slice(0, 4).map(({ kind, from }) => [kind, from.slice(0, 10)]);

test("a source with a window that failed says so, draws the gap, and is whole again once the gap is accepted", async () => {
  const source = await harvests.source(refusing);
  const { planId } = await harvests.harvest(source, 3);
  const summary = await get(`/sources/${source}`);
  expect(summary).toMatchObject({
    source,
    endpoints: 1,
    openPlans: 0,
    lastPlan: { planId, status: "FAILED", reason: expect.stringContaining("1 of 3 slices are not complete") },
    missingWindows: 1,
    watermark: { namespace: "items", at: "2026-08-02T00:00:00.000Z", lagSeconds: expect.any(Number) },
    waiting: null,
    gates: [{ key: source, ratePerSec: 5_000, quotaUsed: null, cooldownUntil: null }],
  });
  const all = await get<{ items: Json[]; total: number }>(`/sources?q=${source}`);
  expect(all).toMatchObject({ total: 1, items: [{ ...summary, gates: expect.any(Array) }] });

  const before = await coverage(source);
  expect(before?.watermark).toBe("2026-08-02T00:00:00.000Z");
  expect(shown(before?.stretches)).toEqual([
    ["complete", DAYS[0]],
    ["gap", DAYS[1]],
    ["complete", DAYS[2]],
    ["none", "2026-08-04"],
  ]);
  const gap = before?.stretches[1];
  expect(gap?.reason).toContain("answered 400");

  const stream = await openHintStream(harvests.millrace.url);
  const accepted = await harvests.api.post(`${BASE}/plans/${planId}/slices/${gap?.sliceId}:accept`, {
    reason: "The day is lost.",
  });
  expect(accepted.status).toBe(200);
  await stream.hint("plan", planId);
  await stream.hint("cursor", `${source}/items`);
  const after = await coverage(source);
  expect(after?.watermark).toBe("2026-08-04T00:00:00.000Z");
  expect(shown(after?.stretches)[1]).toEqual(["accepted", DAYS[1]]);
  expect(await get(`/sources/${source}`)).toMatchObject({ missingWindows: 0 });
});

test("a source whose first window failed has a time line before it has a watermark", async () => {
  const source = await harvests.source(() => ({ status: 400, body: {} }));
  await harvests.harvest(source, 1);
  const shownNow = await coverage(source);
  expect(shownNow?.watermark).toBeNull();
  expect(shown(shownNow?.stretches)[0]).toEqual(["gap", DAYS[0]]);
  expect(await get(`/sources/${source}`)).toMatchObject({ watermark: null, missingWindows: 1 });
});

test("the runs of a plan come in pages, and a slice shows its tasks with their runs", async () => {
  const source = await harvests.source(refusing);
  const { planId } = await harvests.harvest(source, 3);
  interface Run {
    runId: number;
    sliceId: number;
    status: string;
    error: string | null;
  }
  const first = await get<{ items: Run[]; next: string }>(`/plans/${planId}/runs?limit=2`);
  const second = await get<{ items: Run[]; next: null }>(`/plans/${planId}/runs?limit=2&after=${first.next}`);
  const runs = [...first.items, ...second.items];
  expect(runs.map(({ status }) => status).toSorted()).toEqual(["FAILED", "SUCCEEDED", "SUCCEEDED"]);
  expect(second.next).toBeNull();
  const failed = runs.find(({ status }) => status === "FAILED");
  expect(failed?.error).toContain("answered 400");
  expect(await get(`/plans/${planId}/slices/${failed?.sliceId}`)).toMatchObject({
    sliceId: failed?.sliceId,
    status: "FAILED",
    tasks: [{ status: "FAILED", runs: [{ runId: failed?.runId, status: "FAILED", attempt: 1 }] }],
  });
  const unknown = await harvests.api.get(`${BASE}/plans/${planId}/slices/999999`);
  expect(unknown).toMatchObject({ status: 404, body: { code: "HARVEST_SLICE_NOT_FOUND" } });
  const wrong = await harvests.api.get(`${BASE}/plans/${planId}/runs?after=999999999999999999.1`);
  expect(wrong).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
});

test("the time of a source is told by waiting at its gate and waiting for its answers", async () => {
  const gated = await harvests.source(correct(items), {
    rateLimit: { refillRatePerSec: 10, providerRatePerSec: 10, burstCapacity: 1 },
  });
  const slow = await harvests.source(async (asked) => {
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    return correct(items)(asked);
  });
  await Promise.all([harvests.harvest(gated, 3), harvests.harvest(slow, 3)]);
  interface Pace {
    runs: number;
    failed: number;
    requests: number;
    records: number;
    waitMs: number;
    answerMs: number;
    busyMs: number;
    buckets: { runs: number }[];
    failures: unknown[];
  }
  const [ofGated, ofSlow] = await Promise.all(
    [gated, slow].map((source) => get<Pace>(`/sources/${source}/pace?hours=1`)),
  );
  expect(ofGated).toMatchObject({ runs: 3, failed: 0, records: 45, failures: [] });
  expect(ofGated?.requests).toBeGreaterThanOrEqual(6);
  // The second of two requests waits for a tenth of a second, and each answer takes its time.
  expect(ofGated?.waitMs).toBeGreaterThan(100);
  expect(ofSlow?.answerMs).toBeGreaterThan(6 * ANSWER_MS * 0.9);
  expect(ofSlow?.buckets.reduce((sum, { runs }) => sum + runs, 0)).toBe(3);
  expect(ofSlow?.answerMs).toBeLessThanOrEqual(ofSlow?.busyMs ?? 0);
});

test("a run under way counts by its pages", async () => {
  let go: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  const source = await harvests.source(async (asked) => {
    if (asked.query.get("offset") === "20") await held;
    return correct(itemsOf(25))(asked);
  });
  const planId = await harvests.plan(source, 1);
  const pace = await until(async () => {
    const found = await get<{ running: number; requests: number; records: number }>(`/sources/${source}/pace?hours=1`);
    return found.requests >= 2 && found;
  }, "pages of a run under way");
  expect(pace).toMatchObject({ runs: 1, running: 1, requests: 2, records: 20 });
  expect(await get(`/sources/${source}`)).toMatchObject({ openPlans: 1 });
  go();
  await until(async () => (await get(`/plans/${planId}`))["status"] === "COMPLETE", "the end of the plan");
});

test("a pause that the source asks for is shown at the source, at its gate and in its time", async () => {
  const source = await harvests.source(() => ({ status: 429, headers: { "retry-after": "600" }, body: {} }));
  const planId = await harvests.plan(source, 1);
  const { reason } = await harvests.waits(planId);
  expect(await get(`/sources/${source}`)).toMatchObject({
    openPlans: 1,
    waiting: { reason, tasks: 1, until: expect.any(String) },
    gates: [{ key: source, cooldownUntil: expect.any(String) }],
  });
  const gates = await get<{ items: Json[] }>(`/sources/${source}/gates`);
  expect(gates.items).toMatchObject([{ key: source, waiting: 1, declaredBy: "source", quotas: [] }]);
  expect(gates.items[0]?.["currentRatePerSec"]).toBeLessThan(5_000);
  expect(await get(`/sources/${source}/pace`)).toMatchObject({
    throttled: 1,
    parked: [{ reason, times: 1, ms: expect.any(Number) }],
  });
  await harvests.api.post(`${BASE}/plans/${planId}:cancel`);
});

test.each(["", "/gates", "/pace", "/coverage"])("an unknown source is 404 at /sources/nobody%s", async (path) => {
  const answer = await harvests.api.get(`${BASE}/sources/nobody${path}`);
  expect(answer).toMatchObject({ status: 404, body: { code: "SOURCE_NOT_FOUND" } });
});
