/** Every move of a plan, a slice and a task is tried from every state: legal ones are made, all others change nothing. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { PLAN_NEXT, type PlanState, SLICE_NEXT, type SliceState, TASK_NEXT, type TaskState } from "../states.ts";
import { cancelPlan, settlePlans } from "../store/plans/plan-ends.ts";
import { beginSlicing, endSlicing, giveUpSlicing } from "../store/plans/plans.ts";
import { endSlice, restartSlice } from "../store/plans/slices.ts";
import { taskLease } from "../store/queue/tasks.ts";
import { actor, usePlanner } from "./planner.fixture.ts";

const database = useDatabase();
const planning = usePlanner(database);
const FENCE = "7";
const ENDED = ["COMPLETE", "FAILED", "CANCELLED", "INCOMPLETE", "SPLIT"];
const FINISHED = ["SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"];
let planId = "";
let sliceId = "";
let taskId = "";
let session = "";

beforeEach(async () => {
  await planning.addSource("src");
  const window = { from: "2026-08-01", to: "2026-08-02" };
  ({ planId } = await planning.planner.create({ source: "src", operation: "HARVEST", window }, actor));
  const [row] = await database.query<{ slice_id: string; task_id: string }>(
    "select slice_id::text, task_id::text from harvest.ing_task",
  );
  sliceId = row?.slice_id ?? "";
  taskId = row?.task_id ?? "";
  const [opened] = await database.query<{ id: string }>(
    `insert into kernel.session (process, roles, version, expires_at) values ('test', '{}', 'test', now() + interval '1 day')
     returning id::text`,
  );
  session = opened?.id ?? "";
});

const inTx = (work: Parameters<typeof database.db.tx>[0]) => () => database.db.tx(work);
const rows = () =>
  database.query<{ plan: string; slice: string; task: string }>(
    `select p.status_code as plan, s.status_code as slice, t.status_code as task, p.*, s.*, t.*
     from harvest.ing_plan p join harvest.ing_plan_slice s using (plan_id) join harvest.ing_task t using (slice_id)`,
  );

async function bring(what: "plan" | "slice" | "task", status: string): Promise<void> {
  const statements = {
    plan: `update harvest.ing_plan set status_code = $1, unsliced_from = case when $1 = 'PARTIAL' then window_from end,
             ended_at = case when $1 = any($2) then now() end`,
    slice: `update harvest.ing_plan_slice set status_code = $1, reason = 'why', ended_at = case when $1 = any($2) then now() end`,
    task: `update harvest.ing_task set status_code = $1, scheduled_at = case when $1 = 'QUEUED' then now() end,
             session_id = case when $1 = 'EXECUTING' then $3::bigint end, fence = case when $1 = 'EXECUTING' then ${FENCE} end,
             finished_at = case when $1 = any($2) then now() end`,
  };
  const ends = what === "task" ? FINISHED : ENDED;
  await database.query(statements[what], what === "task" ? [status, ends, session] : [status, ends]);
}

interface Move<State> {
  make: () => Promise<unknown>;
  from: readonly State[];
  to: State;
  /** Beside the row that moves, as it has to be for the move. */
  given?: () => Promise<void>;
}

const OPEN: readonly PlanState[] = ["DRAFT", "SLICING", "PARTIAL", "READY"];
const cancel = inTx((tx) => cancelPlan(tx, planId, "why"));

const PLAN_MOVES: Record<string, Move<PlanState>> = {
  "begin slicing": { make: inTx((tx) => beginSlicing(tx, planId)), from: ["DRAFT", "PARTIAL"], to: "SLICING" },
  "end slicing": { make: inTx((tx) => endSlicing(tx, planId, null)), from: ["SLICING"], to: "READY" },
  "end slicing in part": { make: inTx((tx) => endSlicing(tx, planId, new Date())), from: ["SLICING"], to: "PARTIAL" },
  "give up slicing": { make: inTx((tx) => giveUpSlicing(tx, planId, "why")), from: ["PARTIAL"], to: "READY" },
  "settle a complete one": {
    make: inTx((tx) => settlePlans(tx, [planId])),
    given: () => bring("slice", "COMPLETE"),
    from: ["READY"],
    to: "COMPLETE",
  },
  "settle one with a gap": {
    make: inTx((tx) => settlePlans(tx, [planId])),
    given: () => bring("slice", "INCOMPLETE"),
    from: ["READY"],
    to: "FAILED",
  },
  "settle one with an open slice": { make: inTx((tx) => settlePlans(tx, [planId])), from: [], to: "COMPLETE" },
  cancel: {
    make: cancel,
    from: OPEN,
    to: "CANCELLED",
    given: () => bring("task", "SUCCEEDED").then(() => bring("slice", "COMPLETE")),
  },
};

const held = () => ({ task_id: taskId, fence: FENCE });
const end = (state: "COMPLETE" | "INCOMPLETE" | "SPLIT" | "FAILED"): Move<SliceState> => ({
  make: inTx((tx) => endSlice(tx, { sliceId, generation: 1 }, state, "why")),
  from: ["READY"],
  to: state,
});
const SLICE_MOVES: Record<string, Move<SliceState>> = {
  complete: end("COMPLETE"),
  incomplete: end("INCOMPLETE"),
  split: end("SPLIT"),
  fail: end("FAILED"),
  "start again": { make: inTx((tx) => restartSlice(tx, sliceId, 1)), from: ["READY"], to: "READY" },
  "end another generation": {
    make: inTx((tx) => endSlice(tx, { sliceId, generation: 2 }, "COMPLETE", null)),
    from: [],
    to: "COMPLETE",
  },
  cancel: { make: cancel, from: ["READY"], to: "CANCELLED", given: () => bring("task", "SUCCEEDED") },
};

const TASK_MOVES: Record<string, Move<TaskState>> = {
  claim: { make: () => taskLease.claim(database.db, { limit: 9, holder: session }), from: ["QUEUED"], to: "EXECUTING" },
  succeed: { make: () => taskLease.finish(database.db, "succeeded", [held()]), from: ["EXECUTING"], to: "SUCCEEDED" },
  "end in part": {
    make: () => taskLease.finish(database.db, "partial", [{ ...held(), error: "why" }]),
    from: ["EXECUTING"],
    to: "PARTIAL",
  },
  fail: {
    make: () => taskLease.finish(database.db, "failed", [{ ...held(), error: "why" }]),
    from: ["EXECUTING"],
    to: "FAILED",
  },
  wait: {
    make: () =>
      taskLease.finish(database.db, "later", [
        { ...held(), delay_seconds: 60, wait_reason: "why", wait_gate: "", failed_tries: 0 },
      ]),
    from: ["EXECUTING"],
    to: "QUEUED",
  },
  release: { make: () => taskLease.release(database.db, [held()]), from: ["EXECUTING"], to: "QUEUED" },
  cancel: { make: cancel, from: ["QUEUED", "EXECUTING"], to: "CANCELLED" },
};

function tryAll<State extends string>(
  what: "plan" | "slice" | "task",
  moves: Record<string, Move<State>>,
  next: Record<State, readonly State[]>,
) {
  describe.each(Object.entries<Move<State>>(moves))(`a ${what}: %s`, (_, { make, from, to, given }) => {
    test.each(Object.keys(next) as State[])("from %s", async (status) => {
      await given?.();
      await bring(what, status);
      const before = await rows();
      await make();
      const after = await rows();
      if (from.includes(status)) {
        expect(after[0]?.[what]).toBe(to);
        if (status !== to) expect(next[status]).toContain(to);
      } else {
        expect(after[0]?.[what]).toBe(before[0]?.[what]);
        if (make !== cancel) expect(after).toEqual(before);
      }
    });
  });
}

tryAll("plan", PLAN_MOVES, PLAN_NEXT);
tryAll("slice", SLICE_MOVES, SLICE_NEXT);
tryAll("task", TASK_MOVES, TASK_NEXT);

test.each([
  ["ing_plan", "plan_states", Object.keys(PLAN_NEXT)],
  ["ing_plan_slice", "slice_states", Object.keys(SLICE_NEXT)],
  ["ing_task", "task_states", Object.keys(TASK_NEXT)],
  ["ing_task_run", "run_states", ["RUNNING", "SUCCEEDED", "FAILED", "PARTIAL", "CANCELLED"]],
  ["ing_task_run_batch", "batch_states", ["SUCCEEDED"]],
])("%s has the states that are written, and no others", async (table, constraint, states) => {
  const [row] = await database.query<{ text: string }>(
    "select pg_get_constraintdef(oid) as text from pg_constraint where conrelid = ('harvest.' || $1)::regclass and conname = $2",
    [table, constraint],
  );
  expect([...(row?.text ?? "").matchAll(/'([A-Z]+)'/g)].map(([, state = ""]) => state).toSorted()).toEqual(
    states.toSorted(),
  );
});

test("no move of a plan is missing from these", () => {
  const made = Object.values(PLAN_MOVES).flatMap(({ from, to }) => from.map((state) => `${state} -> ${to}`));
  const told = Object.entries(PLAN_NEXT).flatMap(([from, states]) => states.map((to) => `${from} -> ${to}`));
  expect([...new Set(made)].toSorted()).toEqual(told.toSorted());
});
