/** Plans for tests of their output. */
import type { Landing, PlanDetail } from "./api.ts";

export const PLAN_ID = "01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b";
export const BEGIN = Date.parse("2026-08-22T10:00:00.000Z");

/** A time in seconds after the plan was made. */
export const at = (seconds: number) => new Date(BEGIN + seconds * 1_000).toISOString();

/** A plan of two days that nothing has run of. */
export function planOf(fields: Partial<Omit<PlanDetail, "reconciliation">> & { counts?: object } = {}): PlanDetail {
  const { counts, ...others } = fields;
  const none = {
    received: 0,
    repeated: 0,
    acceptedGaps: 0,
    inserted: 0,
    updated: 0,
    unchanged: 0,
    deleted: 0,
    quarantined: 0,
    missing: 0,
    gaps: 0,
  };
  const windows: NonNullable<PlanDetail["landing"]>["windows"] = {};
  for (const { status } of others.landings ?? []) windows[status] = (windows[status] ?? 0) + 1;
  return {
    planId: PLAN_ID,
    status: "READY",
    source: "shop",
    endpoint: "orders",
    operation: "HARVEST",
    namespace: "orders",
    window: { from: "2026-08-20T00:00:00.000Z", to: "2026-08-22T00:00:00.000Z" },
    priority: 100,
    createdAt: at(0),
    endedAt: null,
    unslicedFrom: null,
    slices: { READY: 2 },
    tasks: { QUEUED: 2 },
    reconciliation: { expected: null, ...none, ...counts },
    gapWindows: [],
    waits: [],
    landing: { table: "shop_orders", windows, obstacle: null },
    landings: [],
    ...others,
  };
}

/** The same after 12.3 s, complete. */
export function completeOf(fields: Parameters<typeof planOf>[0] = {}): PlanDetail {
  return planOf({
    status: "COMPLETE",
    endedAt: at(12.3),
    slices: { COMPLETE: 2 },
    tasks: { SUCCEEDED: 2 },
    counts: { expected: 6_403, received: 6_403, inserted: 6_000, updated: 3, unchanged: 400 },
    landings: [landingOf("20260820", { rows: 6_000 }), landingOf("20260821", { rows: 403 })],
    ...fields,
  });
}

/** The same with a day that failed. */
export function failedOf(fields: Parameters<typeof planOf>[0] = {}): PlanDetail {
  return completeOf({
    status: "FAILED",
    slices: { COMPLETE: 1, FAILED: 1 },
    counts: { expected: 6_403, received: 6_000, inserted: 6_000, gaps: 1 },
    landings: [landingOf("20260820", { rows: 6_000 })],
    gapWindows: [
      {
        sliceId: 7,
        window: { from: "2026-08-21T00:00:00.000Z", to: "2026-08-22T00:00:00.000Z" },
        status: "FAILED",
        reason: "GET https://api.example.org/orders answered 500",
        missing: 403,
        accepted: null,
      },
    ],
    ...fields,
  });
}

export function landingOf(opTime: string, fields: Partial<Landing> = {}): Landing {
  return { table: "shop_orders", opTime, status: "LANDED", rows: 1, error: null, ...fields };
}
