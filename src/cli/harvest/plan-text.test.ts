/** Plans as text: the reconciliation, windows, gaps and advice. */
import { describe, expect, test } from "vitest";
import { exitCodeFor, isOver } from "./api.ts";
import { draftText } from "./draft-text.ts";
import { completeOf, failedOf, landingOf, planOf } from "./plan.fixture.ts";
import { openSliceLines, outcomeLines, shownTime } from "./plan-text.ts";

describe("the outcome of a plan", () => {
  test("is its reconciliation, and a line for each window that landed, in the order of time", () => {
    const plan = completeOf({ landings: [landingOf("20260821", { rows: 403 }), landingOf("20260820")] });
    expect(outcomeLines(plan, [])).toEqual([
      "expected 6,403, received 6,403: inserted 6,000, updated 3, unchanged 400, deleted 0, quarantined 0, missing 0, gaps 0",
      "landed shop_orders 20260820: 1 row",
      "landed shop_orders 20260821: 403 rows",
    ]);
  });

  test("names slices that were divided, with their parts by state", () => {
    const window = { from: "2026-08-20T00:00:00.000Z", to: "2026-08-21T00:00:00.000Z" };
    const divided = [{ sliceId: 12, window, expected: 266_421, by: ["edat"], parts: { COMPLETE: 38, READY: 3 } }];
    expect(outcomeLines({ ...completeOf(), divided }, [])[1]).toBe(
      "divided 2026-08-20 to 2026-08-21 by edat, slice 12, 266,421 records: 38 of 41 parts COMPLETE, 3 READY",
    );
  });

  test("says what is expected where the source announces no total", () => {
    const plan = completeOf({ counts: { expected: null, received: 2, inserted: 2 } });
    const [line] = outcomeLines({ ...plan, estimate: { records: 1_200, basis: "HISTORY" } }, []);
    expect(line).toMatch(/^expected about 1,200 records \(earlier windows\), received 2: /);
  });

  test("says if the source announces no total", () => {
    const [line] = outcomeLines(completeOf({ counts: { expected: null, received: 2, inserted: 2 } }), []);
    expect(line).toMatch(/^expected unknown, received 2: inserted 2,/);
  });

  test("names each gap with its reason, and the command that fills all of them", () => {
    const [first] = failedOf().gapWindows;
    const window = { from: "2026-08-20T06:00:00.000Z", to: "2026-08-20T12:00:00.000Z" };
    const gaps = [
      { sliceId: 5, window, status: "INCOMPLETE" as const, reason: null, missing: null, accepted: null },
      ...(first ? [first] : []),
    ];
    const plan = failedOf({ gapWindows: gaps, counts: { gaps: 4 } });
    expect(outcomeLines(plan, ["region=eu"]).slice(2)).toEqual([
      "gap 2026-08-20T06:00:00Z to 2026-08-20T12:00:00Z INCOMPLETE, slice 5: no reason is known",
      "gap 2026-08-21 to 2026-08-22 FAILED, slice 7, 403 records missing: GET https://api.example.org/orders answered 500",
      `and 2 more gaps: millrace harvest tasks --plan ${plan.planId}`,
      "When the reasons are removed, `millrace harvest run shop --endpoint orders --from 2026-08-20T06:00:00Z --to 2026-08-22T00:00:00Z --param region=eu` fills the gaps.",
      `One that stays can be accepted: \`millrace harvest accept ${plan.planId} 5 --reason TEXT\`.`,
    ]);
  });

  test("names who has accepted a gap, and gives no advice about it", () => {
    const [first] = failedOf().gapWindows;
    const accepted = { at: "2026-08-23T00:00:00.000Z", by: "ann", reason: "not needed" };
    const gapWindows = first ? [{ ...first, accepted }] : [];
    const plan = failedOf({ gapWindows, counts: { received: 6_000, inserted: 6_000, gaps: 1, acceptedGaps: 1 } });
    const lines = outcomeLines(plan, []);
    expect(lines[0]).toMatch(/, gaps 1 \(1 accepted\)$/);
    expect(lines.at(-1)).toMatch(/answered 500 \(accepted by ann: not needed\)$/);
  });

  test("counts what came again after a restart", () => {
    const counts = { expected: 2, received: 2, repeated: 1_003, inserted: 2, unchanged: 1_003 };
    const [line] = outcomeLines(completeOf({ counts }), []);
    expect(line).toMatch(/^expected 2, received 2, repeated 1,003: inserted 2, updated 0, unchanged 1,003,/);
  });

  test("does not invent the parameters of a plan that somebody else made", () => {
    const advice = (namespace: string) => outcomeLines(failedOf({ namespace }), undefined).at(-2);
    expect(advice("orders:1f2e3d4c")).toContain("--to 2026-08-22T00:00:00Z --param ...`");
    expect(advice("orders")).toContain("--to 2026-08-22T00:00:00Z`");
  });

  test("gives no advice before the end", () => {
    expect(outcomeLines(failedOf({ endedAt: null, status: "READY" }), []).at(-1)).toMatch(/^gap /);
  });

  test("shows windows that could not land, or not yet", () => {
    const landings = [
      landingOf("20260820", { status: "FAILED", error: "ENOSPC: no space left\non device" }),
      landingOf("20260821", { status: "PENDING", error: "ENOSPC" }),
      landingOf("20260822", { status: "LANDING" }),
      landingOf("20260823", { status: "PENDING" }),
    ];
    expect(outcomeLines(completeOf({ landings }), []).slice(1)).toEqual([
      "not landed shop_orders 20260820: ENOSPC: no space left",
      "to be landed shop_orders 20260821, tried again after: ENOSPC",
      "landing shop_orders 20260822",
      "to be landed shop_orders 20260823",
      "When the reason is removed, `millrace harvest run shop --endpoint orders --from 2026-08-20T00:00:00Z --to 2026-08-22T00:00:00Z` lands again.",
    ]);
  });

  test("says what became of a cancelled plan", () => {
    expect(outcomeLines(completeOf({ status: "CANCELLED" }), []).at(-1)).toBe(
      "The plan was cancelled. What it brought stays; `millrace harvest run shop --endpoint orders --from 2026-08-20T00:00:00Z --to 2026-08-22T00:00:00Z` brings the rest.",
    );
  });

  test("is harmless for a terminal", () => {
    const [gap] = failedOf().gapWindows;
    const plan = failedOf({ gapWindows: gap ? [{ ...gap, reason: "no\u001b[2J" }] : [] });
    expect(outcomeLines(plan, ["a=\u001b[2J"]).join("\n")).not.toContain("\u001b");
  });
});

test("open slices are named by their ids, with the commands that take one", () => {
  const plan = planOf();
  const window = { from: "2026-08-20T00:00:00.000Z", to: "2026-08-21T00:00:00.000Z" };
  const slice = { sliceId: 12, window, rootSliceId: null, isParted: false, expected: 5_000, received: 1_200 };
  const items = [
    slice,
    { ...slice, sliceId: 13, isParted: true },
    { ...slice, sliceId: 14, rootSliceId: 13, expected: null },
    { ...slice, sliceId: 15, window: null, expected: null, received: 0 },
  ];
  const lines = [
    "open 2026-08-20 to 2026-08-21, slice 12: received 1,200 of 5,000",
    "open 2026-08-20 to 2026-08-21, slice 13: divided into parts",
    "open 2026-08-20 to 2026-08-21, slice 14, a part of slice 13: received 1,200",
    "open slice 15: received 0",
  ];
  const why = `Why one does not finish: \`millrace harvest why ${plan.planId} 12\`.`;
  expect(openSliceLines(plan, { items, next: null })).toEqual([...lines, why]);
  const more = `and more open slices: \`millrace harvest tasks --plan ${plan.planId}\``;
  expect(openSliceLines(plan, { items, next: 15 })).toEqual([...lines, more, why]);
  expect(openSliceLines(plan, { items: [] })).toEqual([]);
});

const NO_LAKE = { table: "shop_orders", windows: { PENDING: 2 }, obstacle: "The server has no lake." };
const IN_PART = {
  table: "shop_orders",
  windows: { LANDED: 2 },
  obstacle: null,
  grain: "day" as const,
  partial: ["20260819", "20260822"],
};
const MANY = { table: "shop_orders", windows: { LANDED: 149, LANDING: 1 }, obstacle: null };

test("windows that are not listed are counted, and what keeps them from landing is told", () => {
  expect(outcomeLines(completeOf({ landing: MANY }), []).slice(3)).toEqual(["and 148 more windows"]);
  expect(outcomeLines(completeOf({ landing: IN_PART }), []).slice(3)).toEqual([
    "not landed shop_orders 20260819 and 20260822: only a part of the day is harvested",
  ]);
  expect(outcomeLines(completeOf({ landing: NO_LAKE, landings: [] }), []).slice(1)).toEqual([
    "and 2 more windows",
    "not landed: The server has no lake.",
  ]);
});

test("ids that the source lists but does not answer are counted", () => {
  expect(outcomeLines(completeOf({ counts: { missing: 3 } }), [])[0]).toContain("missing 3, gaps 0");
});

test.each([
  ["complete and landed", completeOf(), true, 0],
  ["complete without a table to land in", completeOf({ landing: null, landings: [] }), true, 0],
  ["complete, and there is no lake", completeOf({ landing: NO_LAKE, landings: [] }), true, 0],
  ["complete, and of many windows one lands that is not listed", completeOf({ landing: MANY }), false, 0],
  ["complete, and a window lands", completeOf({ landings: [landingOf("1", { status: "LANDING" })] }), false, 0],
  [
    "complete, and a window is to be landed",
    completeOf({ landings: [landingOf("1", { status: "PENDING" })] }),
    false,
    0,
  ],
  ["complete, and a window could not land", completeOf({ landings: [landingOf("1", { status: "FAILED" })] }), true, 1],
  ["failed", failedOf(), true, 1],
  ["cancelled", completeOf({ status: "CANCELLED" }), true, 8],
  ["failed, and a window lands", failedOf({ landings: [landingOf("1", { status: "LANDING" })] }), false, 1],
  ["running", planOf(), false, 0],
] as const)("a plan that is %s", (_, plan, over, exitCode) => {
  expect({ over: isOver(plan), exitCode: exitCodeFor(plan) }).toEqual({ over, exitCode });
});

test("only midnight is shown as a date", () => {
  expect(["2026-08-20T00:00:00.000Z", "2026-08-20T00:00:01.000Z"].map(shownTime)).toEqual([
    "2026-08-20",
    "2026-08-20T00:00:01Z",
  ]);
});

describe("a dry run", () => {
  const draft = {
    planId: null,
    source: "shop",
    endpoint: "orders",
    operation: "HARVEST",
    window: { from: "2026-08-20T00:00:00.000Z", to: "2026-08-20T06:00:00.000Z" },
    priority: 100,
    slices: 1_002,
    unslicedFrom: null,
    estimate: null,
    notes: ["The window ends at 2026-08-20T06:00:00Z: what is later may still change."],
    warnings: [{ field: "baseUrl", reason: "Requests go over http." }],
    windows: [
      {
        from: "2026-08-20T00:00:00.000Z",
        to: "2026-08-20T01:00:00.000Z",
        bounds: { from: "2026-08-20 00:00", until: "2026-08-20 00:59", to: "2026-08-20 01:00" },
        estimate: null,
        division: null,
      },
    ],
  };

  test("is the window, notes, warnings, and the slices with the bounds of their requests", () => {
    expect(draftText(draft)).toBe(
      `shop/orders, HARVEST, 2026-08-20 to 2026-08-20T06:00:00Z: 1,002 slices, priority 100.
The window ends at 2026-08-20T06:00:00Z: what is later may still change.
Warning: baseUrl: Requests go over http.

SLICE  FROM        TO                    \${window.from}    \${window.until}   \${window.to}
1      2026-08-20  2026-08-20T01:00:00Z  2026-08-20 00:00  2026-08-20 00:59  2026-08-20 01:00
and 1001 more slices`,
    );
  });

  test("shows what is expected of each slice, the ladder, and how slices are divided that are too large", () => {
    const estimate = (records: number) => ({ records, basis: "HISTORY" as const });
    const windows = [5, 40, 40, 60].map((records, day) => ({
      from: `2026-08-0${day + 1}T00:00:00.000Z`,
      to: `2026-08-0${day + 2}T00:00:00.000Z`,
      bounds: { from: "f", until: "u", to: "t" },
      estimate: estimate(records),
      division:
        [
          null,
          {
            by: "TIME",
            parts: 2,
            first: [
              { name: "a to b", records: 20 },
              { name: "b to c", records: 20 },
            ],
            isKnown: false,
          },
          { by: "kind", parts: 3, first: [{ name: "kind book", records: 15 }], isKnown: true },
          { by: "NONE", parts: 0, first: [], isKnown: false },
        ][day] ?? null,
    }));
    const ladder = [
      { name: "edat", type: "DATE", kind: "halves" as const, parts: ["edat 1 to 2", "edat 3 to 4"], count: 2 },
      { name: "kind", type: "VALUES", kind: "list" as const, parts: ["kind book"], count: 3 },
    ];
    const limits = { cap: 30, slice: 20 };
    const shown = { ...draft, slices: 4, notes: [], warnings: [], estimate: estimate(145), windows, ladder, limits };
    expect(draftText(shown)).toBe(
      `shop/orders, HARVEST, 2026-08-20 to 2026-08-20T06:00:00Z: 4 slices, about 145 records (earlier windows), priority 100.
Slices with more than 20 records are cut in time.
The source answers at most 30 records for one query. Slices with more are divided by time, then by edat (halves: edat 1 to 2 | edat 3 to 4), then by kind (3 parts: kind book and 2 more).

SLICE  FROM        TO          \${window.from}  \${window.until}  \${window.to}  EXPECTED
1      2026-08-01  2026-08-02  f               u                t             5
2      2026-08-02  2026-08-03  f               u                t             40
3      2026-08-03  2026-08-04  f               u                t             40
4      2026-08-04  2026-08-05  f               u                t             60

Slice 2 is expected to be divided by time into at least 2 parts, at first a to b: 20; b to c: 20.
Slice 3 was divided by kind into 3 parts: kind book: 15 and 2 more.
Slice 4 is expected to be over the cap, and nothing divides it: it will be INCOMPLETE.`,
    );
  });

  test("of slices by id shows their ids", () => {
    const parts = [{ number: { from: 1, until: 250 } }];
    const text = draftText({ ...draft, window: null, slices: 2, notes: [], warnings: [], windows: [], parts });
    expect(text.split("\n").slice(1)).toEqual([
      "",
      "SLICE  IDS",
      '1      {"number":{"from":1,"until":250}}',
      "and 1 more slice",
    ]);
  });

  test("of an endpoint without a window is one slice", () => {
    expect(draftText({ ...draft, window: null, slices: 1, notes: [], warnings: [], windows: [] })).toBe(
      "shop/orders, HARVEST, without a window: 1 slice, priority 100.",
    );
  });
});
