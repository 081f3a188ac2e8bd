/** Cuts a slice whose source announces no total before it is read, where its first page lets expect more than one slice should have. */
import { LeaseLost } from "../../kernel/work/run-control.ts";
import type { Page } from "../decode/index.ts";
import { type Estimate, type EstimateBasis, estimateOf, limitOf, sampledSize } from "../slice/estimate.ts";
import type { EndpointSpec } from "../spec/snapshot.ts";
import { setEstimate } from "../store/plans/estimates.ts";
import { taskLease } from "../store/queue/tasks.ts";
import type { PageContent } from "./page-content.ts";
import type { SliceEnd } from "./task.ts";
import { middle, type Walk, type WalkDeps } from "./walk.ts";

const BY = {
  TOTAL: "the total of the source",
  HINT: "a hint of the source",
  SAMPLE: "its first page",
  HISTORY: "earlier windows",
} as const satisfies Record<EstimateBasis, string>;

/** `page` is the first of several. */
export async function cutByEstimate(
  { db }: Pick<WalkDeps, "db">,
  walk: Walk,
  page: Page,
  { earliest, latest }: PageContent,
): Promise<SliceEnd | undefined> {
  const { task } = walk;
  const { spec } = task.source.list;
  const { window_from: from, window_to: to, part } = task.context;
  if (!spec.window || !from || !to || part) return undefined;
  const first = { records: page.items.length, earliest, latest };
  const sample = isLast(spec.pagination, first.records) ? undefined : sampledSize(spec.window, { from, to }, first);
  const estimate = estimateOf({ hint: page.hint, sample });
  if (!estimate) return undefined;
  const before = await db.tx(async (tx) => {
    const [held] = await taskLease.hold(tx, [task]);
    if (!held) throw new LeaseLost();
    return setEstimate(tx, { sliceId: task.context.slice_id, generation: walk.generation }, estimate);
  });
  const limit = limitOf(spec);
  const at = middle(task);
  if (limit === undefined || !at || estimate.records <= limit || isNoSize(estimate, before)) return undefined;
  const reason = `the window has about ${estimate.records} records by ${BY[estimate.basis]}, more than ${limit} of one slice`;
  return { kind: "split", reason, at };
}

/** The page after a short one is asked for to be sure, and is expected to be empty. Where a token leads to it, it is not. */
function isLast({ type, pageSize }: EndpointSpec["pagination"], records: number): boolean {
  return type !== "TOKEN" && type !== "URL" && records < pageSize;
}

/** A hint that does not become smaller with the window says nothing about it, and would have it cut down to `minWindow`. */
function isNoSize({ basis, records }: Estimate, before: Estimate | undefined): boolean {
  return basis === "HINT" && before?.basis === "HINT" && records >= before.records;
}
