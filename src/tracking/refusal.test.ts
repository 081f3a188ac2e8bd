/** Every possible refusal: each transition from each status, with each kind of fence, explained without a database. */
import { describe, expect, test } from "vitest";
import { ApiError } from "../kernel/errors.ts";
import { explainRefusal } from "./refusal.ts";
import { MOVES, QUEUE_STAGES, STATUSES, type Status, TRANSITIONS, type Transition } from "./states.ts";
import type { PresentCell } from "./store.ts";

const CELL = { filename: "20250101000000", shard: 3 };
const FENCES = { none: undefined, right: "7", wrong: "6" };
type Fence = keyof typeof FENCES;

function explain(
  transition: Transition,
  present: Partial<PresentCell>,
  move: { fence?: string; worker?: string } = {},
): { code: string; sentence: string } | { status: Status } {
  const outcome = explainRefusal(
    "shard-worker",
    transition,
    { ...CELL, ...move },
    {
      ...CELL,
      status: "new",
      status_before: "done",
      fence: null,
      worker: null,
      ...present,
    },
  );
  if (outcome instanceof ApiError) return { code: outcome.code, sentence: outcome.message };
  expect(outcome.changed).toBe(false);
  return { status: outcome.status };
}

describe("a refused move", () => {
  const repeatable = (transition: Transition) => transition !== "start";
  const cases = TRANSITIONS.flatMap((transition) => STATUSES.map((status) => ({ transition, status })));

  test.each(cases)("$transition of an unleased shard that is $status", ({ transition, status }) => {
    const explained = explain(transition, { status });
    if (repeatable(transition) && status === MOVES[transition].to) expect(explained).toEqual({ status });
    else expect(explained).toMatchObject({ code: "WRONG_STATUS", sentence: expect.stringContaining(`\`${status}\``) });
  });

  const finishes = (["done", "fail"] as const).flatMap((transition) =>
    (["started", "done", "failed"] as const).flatMap((status) =>
      (Object.keys(FENCES) as Fence[]).map((fence) => ({ transition, status, fence })),
    ),
  );

  test.each(finishes)(
    "$transition of a claimed shard that is $status, with $fence fence",
    ({ transition, status, fence }) => {
      const sent = FENCES[fence];
      const explained = explain(transition, { status, fence: "7" }, sent === undefined ? {} : { fence: sent });
      if (fence !== "right") expect(explained).toMatchObject({ code: "LEASE_LOST" });
      else if (status === MOVES[transition].to) expect(explained).toEqual({ status });
      else expect(explained).toMatchObject({ code: "WRONG_STATUS" });
    },
  );
});

describe("the sentence", () => {
  test.each(QUEUE_STAGES)("names %s, the file, the shard and the present status", (stage) => {
    const present = { ...CELL, status: "done", status_before: "done", fence: null, worker: null } as const;
    expect(explainRefusal(stage, "start", CELL, present)).toMatchObject({
      status: 409,
      message: `Cannot start ${stage} of 20250101000000, shard 3: it is \`done\`.`,
      details: { ...CELL, stage, transition: "start", status: "done" },
    });
  });

  test("says which stage has to be done first", () => {
    expect(explain("start", { status: "new", status_before: "failed" })).toMatchObject({
      sentence: expect.stringContaining("but shard-splitter is `failed` and must be `done` first"),
    });
  });

  test("says who holds a started shard", () => {
    expect(explain("start", { status: "started", worker: "loader-7" })).toMatchObject({
      sentence: expect.stringContaining("held by loader-7"),
    });
  });

  test("suggests another try when the status changed in between", () => {
    expect(explain("start", { status: "new" })).toMatchObject({ sentence: expect.stringContaining("Try again") });
  });

  test.each([
    ["missing", {}, "7", "Send the `fence` that the claim returned"],
    ["of a lease that ended", { fence: "6" }, null, "no longer leased"],
    ["of an older lease", { fence: "6" }, "7", "under a newer lease"],
  ])("says what is wrong with a fence that is %s", (_what, move, fence, words) => {
    expect(explain("done", { status: "started", fence }, move)).toMatchObject({
      sentence: expect.stringContaining(words),
    });
  });
});

describe("a second start", () => {
  test("is a harmless repeat by the same worker", () => {
    expect(explain("start", { status: "started", worker: "a" }, { worker: "a" })).toEqual({ status: "started" });
  });

  test.each([
    ["another worker", { status: "started", worker: "a" }, { worker: "b" }],
    ["a worker without a name", { status: "started", worker: null }, {}],
    ["the worker whose claim holds it", { status: "started", worker: "a", fence: "7" }, { worker: "a" }],
    ["the worker that has finished it", { status: "done", worker: null }, { worker: "a" }],
  ] as const)("is refused when it comes from %s", (_who, present, move) => {
    expect(explain("start", present, move)).toMatchObject({ code: "WRONG_STATUS" });
  });
});
