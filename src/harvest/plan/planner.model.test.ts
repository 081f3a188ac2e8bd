/**
 * Random commands against the planner. After each, what plans, slices and tasks say of each other must hold: slices tile the
 * windows of their plans, a plan has the state that its slices give it, and no task is active without its slice. A failure prints
 * the seed and the shortest commands that reproduce it.
 */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { ApiError } from "../../kernel/errors.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { endSlice, insertChildren } from "../store/plans/slices.ts";
import { actor, usePlanner } from "./planner.fixture.ts";
import { middleOf } from "./window.ts";

const RUNS = process.env["MILLRACE_TEST_LONG"] ? 500 : 12;
const START_MS = Date.UTC(2026, 7, 1);
const QUEUED_MAX = 5;
/** Those of the source, so that slices of a day can be split. */
const UNITS = { granularityMs: 3_600_000, minWindowMs: 6 * 3_600_000 };

const database = useDatabase();
const planning = usePlanner(database);

type Command =
  | { do: "plan"; from: number; days: number }
  | { do: "plan what is missing" }
  | { do: "a day passes" }
  | { do: "end"; nth: number; as: "COMPLETE" | "INCOMPLETE" | "FAILED" }
  | { do: "split"; nth: number }
  | { do: "continue" }
  | { do: "cancel"; nth: number };

const nth = fc.nat({ max: 20 });
const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("plan" as const), from: fc.nat({ max: 20 }), days: fc.integer({ min: 1, max: 12 }) }),
    fc.constant({ do: "plan what is missing" as const }),
    fc.constant({ do: "a day passes" as const }),
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("end" as const),
        nth,
        as: fc.constantFrom("COMPLETE" as const, "COMPLETE" as const, "INCOMPLETE" as const, "FAILED" as const),
      }),
    },
    fc.record({ do: fc.constant("split" as const), nth }),
    { weight: 2, arbitrary: fc.constant({ do: "continue" as const }) },
    fc.record({ do: fc.constant("cancel" as const), nth }),
  ),
  { minLength: 5, maxLength: 40 },
);

interface Slice {
  slice_id: string;
  plan_id: string;
  status_code: string;
  window_from: Date;
  window_to: Date;
  active: number;
}
interface Plan {
  plan_id: string;
  status_code: string;
  plan_strategy: string;
  window_from: Date;
  window_to: Date;
  unsliced_from: Date | null;
}

let nowMs = START_MS;

const plans = () => database.query<Plan>("select * from harvest.ing_plan order by plan_id");
const slices = () =>
  database.query<Slice>(
    `select s.slice_id::text, s.plan_id, s.status_code, s.window_from, s.window_to,
            (select count(*)::int from harvest.ing_task t
             where t.slice_id = s.slice_id and t.status_code in ('QUEUED', 'EXECUTING')) as active
     from harvest.ing_plan_slice s order by s.window_from, s.slice_id`,
  );
const pick = <Item>(items: readonly Item[], index: number): Item | undefined =>
  items[index % Math.max(1, items.length)];

async function make(command: Command): Promise<void> {
  switch (command.do) {
    case "plan": {
      const from = new Date(START_MS - (command.from + 2) * DAY_MS);
      const to = new Date(from.getTime() + command.days * DAY_MS);
      const window = { from: from.toISOString(), to: to.toISOString() };
      await planning.planner.create({ source: "src", operation: "HARVEST", window }, actor);
      return;
    }
    case "plan what is missing":
      await planning.planner.create({ source: "src", operation: "HARVEST" }, actor);
      return;
    case "a day passes":
      nowMs += DAY_MS;
      planning.at(new Date(nowMs).toISOString());
      return;
    case "end": {
      const slice = pick(await openSlices(), command.nth);
      if (slice) await end(slice, command.as);
      return;
    }
    case "split": {
      const slice = pick(await openSlices(), command.nth);
      if (slice) await split(slice);
      return;
    }
    case "continue":
      await planning.planner.continuePlans();
      return;
    case "cancel": {
      const plan = pick(await plans(), command.nth);
      if (plan) await planning.planner.cancel(plan.plan_id, actor);
    }
  }
}

const openSlices = async () => (await slices()).filter(({ status_code }) => status_code === "READY");

async function end({ slice_id, plan_id }: Slice, state: "COMPLETE" | "INCOMPLETE" | "FAILED" | "SPLIT"): Promise<void> {
  await database.db.tx(async (tx) => {
    await tx.rows(FINISH, [slice_id]);
    await endSlice(tx, { sliceId: slice_id, generation: 1 }, state, state === "COMPLETE" ? null : "why");
    await planning.settle(tx, [plan_id]);
  });
}
const FINISH = {
  name: "test.finish_task",
  text: `update harvest.ing_task set status_code = 'SUCCEEDED', scheduled_at = null, finished_at = now()
         where slice_id = $1 and status_code = 'QUEUED' returning task_id::text`,
};

/** As the executor does: the children and the end of the parent in one transaction. */
async function split({ slice_id, plan_id, window_from, window_to }: Slice): Promise<void> {
  const middle = middleOf({ ...UNITS, timezone: "UTC" }, { from: window_from, to: window_to });
  if (!middle) return;
  const children = [
    { window_from, window_to: middle },
    { window_from: middle, window_to },
  ].map((window) => {
    const key = `${slice_id} ${window.window_from.toISOString()}`;
    return {
      ...window,
      slice_spec: {},
      slice_signature_hash: key,
      expr_hash: key,
      expr_snapshot: {},
      idempotent_key: key,
    };
  });
  await database.db.tx(async (tx) => {
    const [task] = await tx.rows<{ task_id: string }>(FINISH, [slice_id]);
    if (!task) throw new Error("the slice has no task");
    await insertChildren(tx, { planId: plan_id, sliceId: slice_id, taskId: task.task_id }, children);
    await endSlice(tx, { sliceId: slice_id, generation: 1 }, "SPLIT", null);
    await planning.settle(tx, [plan_id]);
  });
}

async function check(): Promise<void> {
  const [allPlans, allSlices] = [await plans(), await slices()];
  for (const plan of allPlans) {
    const mine = allSlices.filter(({ plan_id, status_code }) => plan_id === plan.plan_id && status_code !== "SPLIT");
    expect({ plan: plan.plan_id, status: plan.status_code }).toEqual({
      plan: plan.plan_id,
      status: stateOf(plan, mine),
    });
    for (const [index, slice] of mine.entries()) {
      const next = mine[index + 1];
      if (next) expect(slice.window_to.getTime()).toBeLessThanOrEqual(next.window_from.getTime());
    }
    if (plan.plan_strategy === "TIME" && plan.status_code !== "CANCELLED") {
      const widthMs = mine.reduce(
        (sum, { window_from, window_to }) => sum + window_to.getTime() - window_from.getTime(),
        0,
      );
      const slicedTo = plan.unsliced_from ?? plan.window_to;
      expect(widthMs).toBe(slicedTo.getTime() - plan.window_from.getTime());
    }
  }
  for (const { status_code, active } of allSlices) expect(active).toBe(status_code === "READY" ? 1 : 0);
  // Of what is missing, no two plans take the same part at the same time.
  const missing = new Set(allPlans.filter((plan) => plan.plan_strategy === "MISSING").map(({ plan_id }) => plan_id));
  const taken = allSlices.filter(({ plan_id, status_code }) => missing.has(plan_id) && status_code === "READY");
  for (const [index, slice] of taken.entries()) {
    const next = taken[index + 1];
    if (next) expect(slice.window_to.getTime()).toBeLessThanOrEqual(next.window_from.getTime());
  }
}

function stateOf({ status_code, unsliced_from }: Plan, mine: readonly Slice[]): string {
  if (status_code === "CANCELLED")
    return mine.some((slice) => slice.status_code === "READY") ? "with open slices" : "CANCELLED";
  if (unsliced_from !== null) return "PARTIAL";
  if (mine.some((slice) => slice.status_code === "READY")) return "READY";
  return mine.every((slice) => slice.status_code === "COMPLETE") ? "COMPLETE" : "FAILED";
}

test("plans, slices and tasks agree after any commands", { timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      await database.query(
        "truncate harvest.ing_schedule_instance, harvest.ing_plan, harvest.ing_plan_slice, harvest.ing_task cascade",
      );
      await planning.addSource("src", { queuedTasksMax: QUEUED_MAX, window: { ...UNITS, earliest: "2026-07-20" } });
      nowMs = START_MS + 12 * 3_600_000;
      planning.at(new Date(nowMs).toISOString());
      for (const command of list) {
        await make(command).catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error; // Refused, as it should be.
        });
        await check();
      }
    }),
    { numRuns: RUNS },
  );
});
