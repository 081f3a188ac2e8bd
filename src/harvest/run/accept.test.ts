/** A gap that stays is accepted: the watermark passes it, and everyone sees that it did. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf } from "../harvest.fixture.ts";
import { harvestCheck } from "../health.ts";
import { correct, itemsOf, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);
const BASE = "/api/v1/harvest";

type Json = Record<string, unknown>;
const accept = async (planId: string, sliceId: unknown, body: unknown = { reason: " not needed " }) =>
  harvests.api.post(`${BASE}/plans/${planId}/slices/${String(sliceId)}:accept`, body);
const slicesOf = async (planId: string) =>
  ((await harvests.api.get(`${BASE}/plans/${planId}/slices`)).body as { items: (Json & { sliceId: number })[] }).items;
const cursorOf = async (source: string) =>
  ((await harvests.api.get(`${BASE}/cursors?source=${source}`)).body as { items: Json[] }).items[0];

/** Three days, the second of which has more records than the source answers for one query. */
async function cappedSource() {
  const items = ["2026-08-01", "2026-08-03"].flatMap((day) => itemsOf(5, day));
  const many = [...items, ...itemsOf(40, "2026-08-02")];
  const source = await harvests.source(correct(many), { window: { recordsMax: 30 } });
  const { planId, ...ended } = await harvests.harvest(source, 3);
  expect(ended).toMatchObject({ status: "FAILED", reconciliation: { gaps: 1, acceptedGaps: 0 } });
  const slices = await slicesOf(planId);
  const gap = slices.find(({ status }) => status === "INCOMPLETE");
  if (!gap) throw new Error("there is no gap");
  return { source, planId, gap, slices, items };
}

test("the watermark passes a gap that was accepted, once, and the slice stays what it is", async () => {
  const { source, planId, gap, items } = await cappedSource();
  expect(gap).toMatchObject({ accepted: null });
  expect(await cursorOf(source)).toMatchObject({ value: "2026-08-02T00:00:00.000Z", acceptedGaps: 0 });

  const verdict = async () => (await harvestCheck.look(database.db)).verdict;
  expect(await verdict()).toBe("warning");
  const answers = [await accept(planId, gap.sliceId), await accept(planId, gap.sliceId, { reason: "another one" })];
  const accepted = { by: expect.any(String) as string, at: expect.any(String) as string, reason: "not needed" };
  for (const { status, body } of answers) {
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { sliceId: gap.sliceId, status: "INCOMPLETE", accepted },
    });
  }
  const audited = await database.query(
    "select details from kernel.audit_log where action = 'slice.accept' and target = $1",
    [`${planId}/${gap.sliceId}`],
  );
  expect(audited).toEqual([{ details: { reason: "not needed", status: "INCOMPLETE" } }]);

  expect(await verdict()).toBe("ok");
  expect(await cursorOf(source)).toMatchObject({ value: "2026-08-04T00:00:00.000Z", acceptedGaps: 1, planId });
  const { body: plan } = await harvests.api.get(`${BASE}/plans/${planId}`);
  expect(plan).toMatchObject({
    status: "FAILED",
    reconciliation: { gaps: 1, acceptedGaps: 1 },
    gapWindows: [{ sliceId: gap.sliceId, status: "INCOMPLETE", accepted }],
  });

  // The source answers the day after all.
  harvests.server.on(source, correct([...items, ...itemsOf(7, "2026-08-02")]));
  expect(await harvests.harvest(source, 3)).toMatchObject({ status: "COMPLETE" });
  expect(await cursorOf(source)).toMatchObject({ value: "2026-08-04T00:00:00.000Z", acceptedGaps: 0 });
});

test("a plan of what is new leaves accepted gaps out", async () => {
  const { source, planId, gap } = await cappedSource();
  const planned = async () => {
    const { status, body } = await harvests.api.post(`${BASE}/plans?dryRun=true`, { source });
    const { window } = body as { window?: { from: string } };
    return { status, from: window?.from };
  };
  // The gap before the watermark, and what is new since.
  expect(await planned()).toEqual({ status: 200, from: "2026-08-02T00:00:00.000Z" });
  await accept(planId, gap.sliceId);
  expect(await planned()).toEqual({ status: 200, from: "2026-08-04T00:00:00.000Z" });
});

test("the gap of a slice that was cancelled without its plan can be accepted, also before any run of it", async () => {
  const days = ["2026-08-01", "2026-08-02", "2026-08-03"];
  const source = await harvests.source(correct(days.flatMap((day) => itemsOf(5, day))));
  await harvests.api.post(`${BASE}/sources/${source}:pause`, {});
  const planId = await harvests.plan(source, 3);
  const sliceId = (await slicesOf(planId))[1]?.sliceId;
  await harvests.api.post(`${BASE}/plans/${planId}/slices/${sliceId}:cancel`);
  await harvests.api.post(`${BASE}/sources/${source}:resume`, {});
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "FAILED", reconciliation: { gaps: 1 } });
  expect(await cursorOf(source)).toMatchObject({ value: "2026-08-02T00:00:00.000Z" });
  expect(await harvestCheck.look(database.db)).toMatchObject({
    found: expect.stringMatching(/^Missing: 1 window\. .* is CANCELLED: cancelled by MILLRACE_ADMIN_KEY\.$/) as string,
  });

  expect(await accept(planId, sliceId)).toMatchObject({
    status: 200,
    body: { status: "CANCELLED", accepted: { reason: "not needed" } },
  });
  expect(await cursorOf(source)).toMatchObject({ value: "2026-08-04T00:00:00.000Z", acceptedGaps: 1 });
  expect((await harvestCheck.look(database.db)).verdict).toBe("ok");
  const events = await harvests.api.get(`${BASE}/cursors/${source}/items/events`);
  expect(events.body).toMatchObject({ items: [{ sliceId, runId: null }, {}] });
  const timeline = await harvests.api.get(`${BASE}/cursors/${source}/items/timeline`);
  expect(timeline.body).toMatchObject({
    items: expect.arrayContaining([
      expect.objectContaining({ kind: "gap", sliceId }),
      expect.objectContaining({ kind: "accepted", sliceId, reason: "not needed" }),
    ]) as unknown,
  });
  const { body } = await harvests.api.get(`${BASE}/sources/${source}/coverage`);
  expect(JSON.stringify(body)).toContain(`"kind":"accepted","from":"2026-08-02T00:00:00.000Z"`);
  const why = await harvests.api.get(`${BASE}/plans/${planId}/slices/${sliceId}/why`);
  expect(why.body).toMatchObject({
    causes: [{ sentence: "It was cancelled by MILLRACE_ADMIN_KEY. MILLRACE_ADMIN_KEY has accepted the gap." }],
  });
});

test("slices that were cancelled with their plan are no gaps", async () => {
  const source = await harvests.source(correct(itemsOf(5)));
  await harvests.api.post(`${BASE}/sources/${source}:pause`, {});
  const planId = await harvests.plan(source);
  await harvests.api.post(`${BASE}/plans/${planId}:cancel`);
  const sliceId = (await slicesOf(planId))[0]?.sliceId;
  expect(await accept(planId, sliceId)).toMatchObject({
    status: 409,
    body: {
      code: "HARVEST_SLICE_NO_GAP",
      error: `Slice ${sliceId} is CANCELLED. Only a gap can be accepted: a slice that is FAILED or INCOMPLETE, or that was cancelled without its plan. This one was cancelled with its plan: the next plan takes its window.`,
    },
  });
});

test("only a gap can be accepted, with a reason", async () => {
  const { source, planId, gap, slices } = await cappedSource();
  const complete = slices.find(({ status }) => status === "COMPLETE")?.sliceId;
  expect(await accept(planId, complete)).toMatchObject({ status: 409, body: { code: "HARVEST_SLICE_NO_GAP" } });
  expect(await accept(planId, 999_999)).toMatchObject({ status: 404, body: { code: "HARVEST_SLICE_NOT_FOUND" } });
  expect(await accept(planId, "x")).toMatchObject({ status: 404, body: { code: "HARVEST_SLICE_NOT_FOUND" } });
  expect(await accept("x", gap.sliceId)).toMatchObject({ status: 404, body: { code: "PLAN_NOT_FOUND" } });
  for (const body of [{}, { reason: "" }, { reason: "  " }, undefined]) {
    expect(await accept(planId, gap.sliceId, body ?? null)).toMatchObject({ status: 400 });
  }
  expect(await cursorOf(source)).toMatchObject({ value: "2026-08-02T00:00:00.000Z" });
});
