/** Reading plans and what is below them: slices, tasks, runs, batches; and how far the cursors are. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { UUID } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { harvestError } from "../catalogue.ts";
import * as cursors from "../store/cursors/cursor-reads.ts";
import * as plans from "../store/plans/plan-reads.ts";
import * as tasks from "../store/queue/task-reads.ts";
import { closedUntil, instantOf, partPeriods } from "./window.ts";

export interface PlanDetail {
  plan: plans.FoundPlan;
  slices: plans.SliceSums[];
  tasks: plans.TaskSums[];
  gaps: plans.SliceRow[];
  divided: plans.DividedSlice[];
  waits: plans.Wait[];
  landings: plans.LandingRow[];
  landingSums: { status_code: plans.LandingState; windows: number }[];
  /** The opTimes of windows that do not land because the plan has only a part of them; none while it goes on. */
  partLandings: string[];
  hasLake: boolean;
}

export interface SliceDetail {
  slice: plans.SliceRow;
  tasks: tasks.TaskRow[];
  runs: tasks.TaskRunRow[];
}

export interface MeasuredCursor extends cursors.CursorRow {
  /** The last instant that could be harvested by now. */
  closedUntil: Date | null;
}

export type Reads = ReturnType<typeof createReads>;

/** Of each list in the page of a plan. */
const DETAILS_MAX = 100;
const WAITS_MAX = 10;
const CURSORS_MAX = 10_000;
const NUMBER = /^\d{1,18}$/;
const INTEGER_MAX = 2 ** 31 - 1;
const TASK_ID_MAX = "9223372036854775807";
const SLICE_TASKS_MAX = 20;
const TASK_RUNS_MAX = 20;

export function createReads({ db, clock, lake }: { db: Db; clock: Clock; lake: object | undefined }) {
  async function planOf(planId: string): Promise<plans.FoundPlan> {
    const plan = UUID.test(planId) ? await plans.findPlan(db, planId) : undefined;
    if (!plan) throw harvestError("PLAN_NOT_FOUND", { id: planId });
    return plan;
  }

  /** Another plan may have, or bring, the rest of the window. */
  async function partLandingsOf(plan: plans.FoundPlan): Promise<string[]> {
    const { ended_at, endpoint_id, landing_grain: grain, timezone, window_from: from, window_to: to } = plan;
    if (ended_at === null || grain === null || timezone === null || !from || !to) return [];
    const parts = partPeriods(timezone, grain, { from, to });
    if (parts.length === 0) return [];
    const queued = await plans.queuedLandings(db, endpoint_id, parts);
    return parts.filter((opTime) => !queued.includes(opTime));
  }

  return {
    plans: (filter: plans.PlanFilter, limit: number) => plans.listPlans(db, filter, limit),

    async plan(planId: string): Promise<PlanDetail> {
      // Before its slices: those of a plan that has ended do not change any more.
      const plan = await planOf(planId);
      const [slices, counted, gaps, divided, waits, landings, landingSums, partLandings] = await Promise.all([
        plans.sliceSums(db, planId),
        plans.taskSums(db, planId),
        plans.gapSlices(db, planId, DETAILS_MAX),
        plans.dividedSlices(db, planId, DETAILS_MAX),
        plan.ended_at === null ? plans.taskWaits(db, planId, WAITS_MAX) : [],
        plans.landingsOf(db, planId, DETAILS_MAX),
        plans.landingSums(db, planId),
        partLandingsOf(plan),
      ]);
      const hasLake = lake !== undefined;
      return { plan, slices, tasks: counted, gaps, divided, waits, landings, landingSums, partLandings, hasLake };
    },

    async slices(planId: string, page: { status?: string | undefined; after?: number | undefined }, limit: number) {
      const { plan_id } = await planOf(planId);
      return plans.listSlices(db, { plan: plan_id, status: page.status, after: page.after }, limit);
    },

    async slice({ planId, sliceId }: { planId: string; sliceId: string }): Promise<SliceDetail> {
      const { plan_id } = await planOf(planId);
      const slice = NUMBER.test(sliceId) ? await plans.findSlice(db, plan_id, sliceId) : undefined;
      if (!slice) throw harvestError("HARVEST_SLICE_NOT_FOUND", { plan: planId, id: sliceId });
      const found = await tasks.tasksOfSlice(db, sliceId, SLICE_TASKS_MAX);
      const runs = await tasks.runsOfTasks(
        db,
        found.map(({ task_id }) => task_id),
        TASK_RUNS_MAX,
      );
      return { slice, tasks: found, runs };
    },

    async planRuns(planId: string, after: string | undefined, limit: number) {
      const { plan_id } = await planOf(planId);
      const [taskId = TASK_ID_MAX, attempt = 0] = after === undefined ? [] : pairOf(after);
      return tasks.runsOfPlan(db, plan_id, { taskId: String(taskId), attempt }, limit);
    },

    async planTasks(planId: string, page: { status?: string | undefined; after?: string | undefined }, limit: number) {
      const { plan_id } = await planOf(planId);
      return tasks.listTasks(db, { ...EVERY_TASK, plan: plan_id, status: page.status, after: page.after }, limit);
    },

    tasks: (filter: Omit<tasks.TaskFilter, "plan">, limit: number) =>
      tasks.listTasks(db, { ...EVERY_TASK, ...filter }, limit),

    async runs(taskId: string, before: number | undefined, limit: number) {
      const exists = NUMBER.test(taskId) && (await tasks.taskExists(db, taskId));
      if (!exists) throw harvestError("HARVEST_TASK_NOT_FOUND", { id: taskId });
      return tasks.listRuns(db, taskId, before ?? INTEGER_MAX, limit);
    },

    async batches(runId: string, after: string | undefined, limit: number) {
      const month = NUMBER.test(runId) ? await tasks.runMonth(db, runId) : undefined;
      if (month === undefined) throw harvestError("HARVEST_RUN_NOT_FOUND", { id: runId });
      return tasks.listBatches(db, { runId, month }, batchPosition(after), limit);
    },

    async cursors(filter: cursors.CursorFilter): Promise<MeasuredCursor[]> {
      const now = new Date(clock.now());
      const rows = await cursors.listCursors(db, filter, CURSORS_MAX);
      return rows.map((row) => ({ ...row, closedUntil: closedFor(row, now) }));
    },

    cursorEvents: (cursor: { source: string; operation: string; namespace: string }, limit: number) =>
      cursors.listCursorEvents(db, cursor, limit),
  };
}

/** What could be harvested by now; null for other operations, which do not follow time. */
export function closedFor({ operation_code, window }: cursors.CursorRow, now: Date): Date | null {
  return operation_code === "HARVEST" && window ? closedUntil(window, now) : null;
}

/**
 * What the cursor has still before it: to what could be harvested, or for BACKFILL back to the earliest record of the source. Null if
 * that is not known, or the cursor is no time.
 */
export function lagSecondsOf(
  row: Pick<cursors.CursorRow, "operation_code" | "normalized_instant" | "window">,
  closed: Date | null,
): number | null {
  const { operation_code, normalized_instant: at, window } = row;
  if (!at) return null;
  const seconds = (from: Date, to: Date) => Math.max(0, Math.round((to.getTime() - from.getTime()) / 1_000));
  if (operation_code !== "BACKFILL") return closed && seconds(at, closed);
  const earliest = window?.earliest === undefined ? undefined : instantOf(window.earliest, window.timezone);
  return earliest ? seconds(earliest, at) : null;
}

const EVERY_TASK = {
  plan: undefined,
  source: undefined,
  endpoint: undefined,
  operation: undefined,
  status: undefined,
  after: undefined,
} satisfies tasks.TaskFilter;

function batchPosition(after: string | undefined): { generation: number; batchNo: number } {
  if (after === undefined) return { generation: 0, batchNo: 0 };
  const [generation, batchNo] = pairOf(after);
  if (generation <= INTEGER_MAX) return { generation, batchNo };
  throw invalid(NOT_NEXT);
}

const NOT_NEXT = "The parameter `after` must be the `next` of an earlier reply";

/** Of two numbers, of which the second is an integer. */
function pairOf(after: string): [first: number, second: number] {
  const [first = Number.NaN, second = Number.NaN] = after.split(".").map(Number);
  if (first <= Number.MAX_SAFE_INTEGER && second <= INTEGER_MAX) return [first, second];
  throw invalid(NOT_NEXT);
}
