/** The progress of plans: how far, how fast, how long; and their frames, on a simulated terminal too. */
import { describe, expect, test, vi } from "vitest";
import { testTerminal } from "../chain/terminal.fixture.ts";
import { frame } from "./frame.ts";
import { at, BEGIN, completeOf, failedOf, landingOf, planOf } from "./plan.fixture.ts";
import { createProgressMeter, progressText } from "./progress.ts";
import { drawnView } from "./views.ts";

const progressOf = (plan = planOf()) => createProgressMeter()(plan, 0);

describe("the share that is done", () => {
  test.each([
    ["nothing yet", planOf(), 0],
    ["no slices yet", planOf({ slices: {} }), 0],
    ["slices, where no total is announced", planOf({ slices: { COMPLETE: 1, READY: 3 } }), 0.25],
    [
      "records, of a slice that runs",
      planOf({ tasks: { EXECUTING: 2 }, counts: { expected: 100, received: 30 } }),
      0.3,
    ],
    [
      "records, with the slices that have not begun taken to be as large",
      planOf({ slices: { COMPLETE: 1, READY: 3 }, tasks: { EXECUTING: 1 }, counts: { expected: 100, received: 60 } }),
      0.3,
    ],
    [
      "quarantined records too",
      planOf({ tasks: { EXECUTING: 2 }, counts: { expected: 100, received: 20, quarantined: 10 } }),
      0.3,
    ],
    ["slices that were split by their children", planOf({ slices: { SPLIT: 1, COMPLETE: 1, READY: 1 } }), 0.5],
    [
      "more than was announced, and not ended",
      planOf({ tasks: { EXECUTING: 2 }, counts: { expected: 10, received: 11 } }),
      0.99,
    ],
    [
      "a window that is not sliced to its end",
      planOf({ status: "PARTIAL", slices: { COMPLETE: 1, READY: 1 }, unslicedFrom: "2026-08-21T00:00:00.000Z" }),
      0.25,
    ],
    ["a plan with gaps that has ended", failedOf(), 1],
  ] as const)("%s", (_, plan, share) => {
    expect(progressOf(plan).share).toBeCloseTo(share);
  });
});

describe("the speed", () => {
  const running = (received: number, expected = 1_000) =>
    planOf({ tasks: { EXECUTING: 2 }, counts: { expected, received } });

  test("is unknown until a second has passed, then counts the last seconds only", () => {
    const meter = createProgressMeter();
    expect(meter(running(0), 0)).toMatchObject({ perSecond: null, leftMs: null });
    expect(meter(running(50), 500)).toMatchObject({ perSecond: null, leftMs: null });
    expect(meter(running(100), 1_000)).toMatchObject({ perSecond: 100, leftMs: 9_000 });
    expect(meter(running(100), 30_000)).toMatchObject({ perSecond: 0, leftMs: null });
    expect(meter(running(300), 45_000).perSecond).toBeCloseTo(200 / 15);
  });

  test("is not negative when a slice starts again", () => {
    const meter = createProgressMeter();
    meter(running(500), 0);
    expect(meter(running(100), 2_000)).toMatchObject({ perSecond: 0, leftMs: null });
  });

  test("stands beside the counts, with the time that is left, until the end", () => {
    const meter = createProgressMeter();
    meter(running(0, 10_000), 0);
    expect(progressText(meter(running(2_480, 10_000), 2_000))).toBe(
      "0/2 slices, 2,480 of 10,000 records, 1,240/s, about 0:07 left",
    );
    expect(progressText(meter(completeOf(), 5_000))).toBe("2/2 slices, 6,403 of 6,403 records");
  });

  test("has an estimate of the total while slices have not begun", () => {
    const plan = planOf({ slices: { COMPLETE: 1, READY: 6 }, tasks: { EXECUTING: 1 }, counts: { expected: 1_000 } });
    expect(progressText(progressOf(plan))).toBe("1/7 slices, 0 of about 3,500 records");
    const partial = planOf({ tasks: { EXECUTING: 2 }, counts: { expected: 1_000 }, unslicedFrom: at(0) });
    expect(progressText(progressOf(partial))).toBe("0/2+ slices, 0 of about 1,000 records");
  });
});

describe("a frame", () => {
  const linesOf = (plan = planOf(), width = 200) =>
    frame({ plan, progress: progressOf(plan), now: BEGIN + 3_000, width, colour: false });

  test("is a headline and a bar", () => {
    const plan = planOf({ tasks: { EXECUTING: 2 }, counts: { expected: 10_000, received: 5_000 } });
    expect(linesOf(plan)).toEqual([
      "shop/orders  READY  3.0s  plan 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b  2026-08-20 to 2026-08-22",
      "███████████████░░░░░░░░░░░░░░░  0/2 slices, 5,000 of 10,000 records",
    ]);
  });

  test("says what tasks wait for if none runs", () => {
    const waits = [
      { reason: "The daily quota is used up.", tasks: 1, until: at(60) },
      { reason: "They wait for a worker.", tasks: 12, until: null },
    ];
    expect(linesOf(planOf({ waits })).slice(2)).toEqual([
      "1 task waits until 2026-08-22T10:01:00Z: The daily quota is used up.",
      "12 tasks wait: They wait for a worker.",
    ]);
    expect(linesOf(planOf({ waits, tasks: { QUEUED: 13, EXECUTING: 1 } }))).toHaveLength(2);
    const paced = [{ reason: "The gate shop lets 1 request a second pass.", tasks: 1, until: null }];
    expect(linesOf(planOf({ waits, waiting: paced, tasks: { EXECUTING: 1 } })).slice(2)).toEqual([
      "1 task waits: The gate shop lets 1 request a second pass.",
    ]);
    expect(linesOf(completeOf({ waits, waiting: paced }))).toHaveLength(2);
    const full = [{ reason: "The queue is full.", tasks: 0, until: null }];
    expect(linesOf(planOf({ waits: full, unslicedFrom: at(0) })).slice(1)).toEqual([
      "░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0/2+ slices, 0 records",
      "waits: The queue is full.",
    ]);
  });

  test("counts the windows that are to land", () => {
    const landings = [landingOf("20260820"), landingOf("20260821", { status: "PENDING" })];
    expect(linesOf(completeOf({ landings })).slice(2)).toEqual(["1 window to land"]);
    expect(linesOf(completeOf())).toHaveLength(2);
  });

  test.each(["PENDING", "LANDING"] as const)("says why a window that is %s could not land the last time", (status) => {
    const landings = [landingOf("20260820", { status: "PENDING" }), landingOf("20260821", { status, error: "ENOSPC" })];
    expect(linesOf(completeOf({ landings })).slice(2)).toEqual([
      "2 windows to land",
      "20260821 could not land and is tried again: ENOSPC.",
    ]);
    const givenUp = [landingOf("20260821", { status: "FAILED", error: "ENOSPC" })];
    expect(linesOf(completeOf({ landings: givenUp }))).toHaveLength(2);
  });

  test("fits a narrow window, and keeps the plan's id longer than its dates", () => {
    const lines = linesOf(completeOf(), 80);
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    expect(lines[0]).toContain("plan 01936f3a-5b7c-7d21-8f4e-1c2d3e4f5a6b");
  });
});

test("on a terminal the frame is redrawn, and the outcome stands below its last state", () => {
  vi.useFakeTimers({ now: BEGIN });
  try {
    const terminal = testTerminal(120, 20);
    const view = drawnView(terminal, []);
    view.onPlan(planOf());
    vi.advanceTimersByTime(1_000);
    expect(terminal.lines()[0]).toMatch(/^shop\/orders {2}READY {2}1\.0s/);
    expect(terminal.isCursorHidden()).toBe(true);
    view.onDisconnect("No Millrace answers.");
    expect(terminal.lines().at(-1)).toBe("Trying again. No Millrace answers.");
    view.onReconnect?.();
    const plan = completeOf({ landings: [landingOf("20260820", { rows: 6_403 })] });
    view.onPlan(plan);
    view.onEnd(plan);
    view.close();
    expect(terminal.lines().map((line) => line.slice(0, 50))).toEqual([
      "shop/orders  COMPLETE  12.3s  plan 01936f3a-5b7c-7",
      "██████████████████████████████  2/2 slices, 6,403 ",
      "expected 6,403, received 6,403: inserted 6,000, up",
      "landed shop_orders 20260820: 6,403 rows",
    ]);
    expect(terminal.isCursorHidden()).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
