/**
 * Divides a slice that is over a cap of its source, and that cannot be cut in time, into parts by its ladder. It only counts.
 *
 * A run that stops before anything is divided leaves what it has counted in its checkpoint: a step by a list has as many counts
 * as that has values, and may take longer than the time between two harvests.
 */
import { type Count, divide } from "../slice/divide.ts";
import type { Part } from "../slice/parts.ts";
import { dimensionsOf } from "../spec/snapshot.ts";
import { countsOfTask } from "../store/queue/tasks.ts";
import { makeWay } from "./background.ts";
import { fetchAt } from "./page-at.ts";
import { firstPosition } from "./position.ts";
import type { SliceEnd } from "./task.ts";
import { type Divide, endOf, overBudget, type Walk, type WalkDeps } from "./walk.ts";

/** After a count that was lost. */
const RECOUNT_MS = 1_000;

export async function divideSlice(deps: WalkDeps, walk: Walk, { reason, total, cap }: Divide): Promise<SliceEnd> {
  const { context, source } = walk.task;
  const { spec } = source.list;
  const countNow: Count<SliceEnd> = async (part) => {
    const stop = overBudget(deps, walk) ?? (await makeWay(deps, walk));
    return stop ? { stop } : countPart(deps, walk, part);
  };
  const counted = total === undefined ? await countNow(context.part ?? {}) : { total };
  if ("stop" in counted) return counted.stop;
  const whole = { part: context.part ?? {}, total: counted.total };
  const counts = await keptCounts(deps, walk, whole.total);
  const count: Count<SliceEnd> = async (part) => {
    const key = JSON.stringify(part);
    const known = counts.get(key);
    const answer = known === undefined ? await countNow(part) : { total: known };
    if ("total" in answer) counts.set(key, answer.total);
    return answer;
  };
  const divided = await divide(
    {
      ladder: dimensionsOf(spec.slicing),
      cap: cap ?? Math.floor(whole.total / 2),
      tolerance: toleranceOf(walk),
      count,
    },
    whole,
  );
  if ("problem" in divided) return { kind: "incomplete", reason: `${reason}; ${divided.problem}` };
  const { parts, stop } = divided;
  if (stop && parts.every(({ part }) => part === whole.part)) {
    walk.position = { ...walk.position, counted: { total: whole.total, parts: Object.fromEntries(counts) } };
    return stop;
  }
  return { kind: "parts", reason: `${reason}; it is divided into ${parts.length} parts`, total: whole.total, parts };
}

/** None if the slice has another total since: the parts would not add up. */
async function keptCounts({ db }: WalkDeps, { task }: Walk, total: number): Promise<Map<string, number>> {
  const kept = await countsOfTask(db, task.context.task_id);
  return new Map(kept?.total === total ? Object.entries(kept.parts) : []);
}

function toleranceOf({ task }: Walk): number {
  return task.source.list.spec.window?.tolerance ?? 0;
}

/** By the probe, or by the first page where there is none. */
async function countPart(deps: WalkDeps, walk: Walk, part: Part): Promise<{ total: number } | { stop: SliceEnd }> {
  const { list } = walk.task.source;
  const isProbe = list.spec.window?.probe !== undefined;
  const fetched = await fetchAt(deps, walk, list, firstPosition(list.spec), { isProbe, part });
  if (fetched.kind === "page") {
    const { total = fetched.page.items.length === 0 && !isProbe ? 0 : undefined } = fetched.page;
    if (total !== undefined) return { total };
    return { stop: { kind: "incomplete", reason: "the source announces no total for a part of the slice" } };
  }
  const ended = endOf(deps, walk, fetched);
  if (ended.kind === "restart") {
    return { stop: { kind: "later", isClean: true, delayMs: RECOUNT_MS, reason: ended.reason } };
  }
  return { stop: ended.kind === "divide" ? { kind: "incomplete", reason: ended.reason } : ended };
}
