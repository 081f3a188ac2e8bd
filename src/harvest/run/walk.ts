/** The progress of a slice through its pages: where it is, what came, and the ends that every part of it can reach. */
import { LeaseLost } from "../../kernel/work/run-control.ts";
import type { Pauses } from "../control/pauses.ts";
import type { Credentials } from "../definition/credentials.ts";
import { middleOf } from "../plan/window.ts";
import { capOf } from "../slice/estimate.ts";
import type { Fragments } from "../slice/fragments.ts";
import { intoPages, recordsOn } from "../slice/pages.ts";
import { pagesOf, shownPart } from "../slice/parts.ts";
import { dimensionsOf } from "../spec/snapshot.ts";
import { claimClean, restartSlice } from "../store/plans/slices.ts";
import { taskLease } from "../store/queue/tasks.ts";
import { readIdHashes } from "../store/records/batches.ts";
import { createFailures, type Failures } from "./failures.ts";
import { type Exchange, type FetchDeps, type Fetched, PAUSED_MS } from "./fetch.ts";
import type { CommitDeps } from "./page-commit.ts";
import type { PageContent } from "./page-content.ts";
import { canResume, firstPosition, type Position } from "./position.ts";
import { whenReachable } from "./retry-later.ts";
import { RunStats } from "./run-stats.ts";
import { createSeenIds, type SeenIds } from "./seen-ids.ts";
import type { PreparedTask, SliceEnd } from "./task.ts";

export interface WalkDeps extends FetchDeps, CommitDeps {
  credentials: Pick<Credentials, "resolve">;
  pauses: Pick<Pauses, "holds">;
}

/** The progress of a walk; what is committed of it is also in the slice. */
export interface Walk {
  readonly task: PreparedTask;
  readonly stats: RunStats;
  readonly signal: AbortSignal;
  readonly failures: Failures;
  readonly seen: SeenIds;
  /** Of the part that the slice is, if it is one. */
  readonly fragments: Fragments;
  /** The source has refused access, and answered nothing since: other tasks wait for what this one is told. */
  isRefused: boolean;
  generation: number;
  /** Of the last committed page. */
  batchNo: number;
  position: Position;
  expected: number | undefined;
  received: number;
  quarantined: number;
  missing: number;
  /** The latest time of a record. */
  latest: Date | undefined;
  startedMs: number;
}

/** The walk cannot go on from where it is. */
export interface Restart {
  kind: "restart";
  /** A token was lost with an answer, or the counts do not agree. */
  cause: "token" | "counts";
  reason: string;
}

/** The slice is over a cap of its source and cannot be cut in time: its ladder divides it. */
export interface Divide {
  kind: "divide";
  reason: string;
  /** What the source announced, if it did. */
  total: number | undefined;
  /** What a part may have. Unset: half of it. */
  cap?: number;
}

export type WalkEnd = SliceEnd | Restart | Divide;

/** About 100 bytes each. */
const IDS_MAX = 5_000_000;
/** The number of an id is that of its page and its place on it, in 31 bits. */
const ID_PAGES_MAX = 20_000;
const ERROR_SHARE_AFTER = 20;
const PAUSE_AFTER_ERRORS_MS = 30_000;

export function createWalk({ clock }: WalkDeps, task: PreparedTask, signal: AbortSignal): Walk {
  const { context, source } = task;
  return {
    task,
    signal,
    stats: new RunStats(),
    failures: createFailures(),
    seen: createSeenIds(),
    fragments: source.list.fragments(context.part),
    isRefused: context.is_refused,
    generation: context.generation,
    batchNo: context.batches,
    position: firstPosition(source.list.spec, pagesOf(context.part)),
    expected: context.expected === null ? undefined : Number(context.expected),
    received: Number(context.received),
    quarantined: Number(context.quarantined),
    missing: Number(context.missing),
    latest: undefined,
    startedMs: clock.now(),
  };
}

/** Goes on where an earlier run stopped, or starts the slice again. */
export async function resumeWalk(deps: WalkDeps, walk: Walk): Promise<void> {
  const { context, source } = walk.task;
  if (context.batches === 0 || context.position === null) return;
  const position = context.position as Position;
  const ageMs = deps.clock.now() - (context.position_at?.getTime() ?? 0);
  const resumable = canResume(source.list.spec, position, ageMs);
  if (!resumable.resume) {
    await restart(deps, walk, resumable.reason);
    return;
  }
  walk.position = position;
  if (position.isClean) await claimToken(deps, walk);
  const { plan_month: planMonth, slice_id: sliceId } = context;
  for (const hashes of await readIdHashes(deps.db, { planMonth, sliceId, generation: walk.generation })) {
    walk.seen.addHashes(hashes);
  }
}

/** From here on, a lost process means a lost token. */
async function claimToken({ db }: WalkDeps, { task, generation }: Walk): Promise<void> {
  await db.tx(async (tx) => {
    const [held] = await taskLease.hold(tx, [task]);
    if (!held) throw new LeaseLost();
    await claimClean(tx, { sliceId: task.context.slice_id, generation });
  });
}

export async function restart(deps: WalkDeps, walk: Walk, reason: string): Promise<void> {
  const { task } = walk;
  walk.stats.restarts.push(reason);
  const generation = await deps.db.tx(async (tx) => {
    const [held] = await taskLease.hold(tx, [task]);
    return held && (await restartSlice(tx, task.context.slice_id, walk.generation));
  });
  if (generation === undefined) throw new LeaseLost();
  walk.seen.clear();
  walk.generation = generation;
  walk.batchNo = 0;
  walk.position = firstPosition(task.source.list.spec, pagesOf(task.context.part));
  walk.expected = undefined;
  walk.received = 0;
  walk.quarantined = 0;
  walk.missing = 0;
}

/** What the slice has of the records that its list announces. */
export function announced({ task: { context, source } }: Walk, total: number): number {
  const pages = pagesOf(context.part);
  return pages ? recordsOn(pages, source.list.spec.pagination.pageSize, total) : total;
}

/** What the page adds to the slice. The second phase has its own ids beside those of the list. */
export function countNew({ seen }: Walk, content: PageContent, prefix = "") {
  const records = seen.add(content.records.map(({ item_key }) => prefix + item_key));
  const quarantined = seen.add(content.quarantinedIds.map((id) => `?${id}`));
  return {
    hashes: Buffer.concat([records.hashes, quarantined.hashes]),
    received: records.added,
    quarantined: quarantined.added,
    added: records.added + quarantined.added,
  };
}

/** A slice over its source's cap, or larger than a slice should be. */
export function tooLarge({ task }: Walk, total: number): SliceEnd | Divide | undefined {
  const { window } = task.source.list.spec;
  const cap = capOf(task.source.list.spec);
  if (cap && total > cap.records) {
    const { part } = task.context;
    const whole = part ? `the part ${shownPart(part)}` : "the window";
    return withSmallerSlice(task, `${whole} has ${total} records, and the source ${cap.rule}`, {
      total,
      cap: cap.records,
    });
  }
  const pages = task.context.part ? undefined : intoPages(task.source.list.spec, total);
  if (pages) {
    const reason = `the list has ${total} records, and is divided into ${pages.length} parts of pages`;
    return { kind: "parts", reason, total, parts: pages };
  }
  const at = middle(task);
  if (window?.sliceRecords !== undefined && total > window.sliceRecords && at) {
    return {
      kind: "split",
      reason: `the window has ${total} records, more than ${window.sliceRecords} of one slice`,
      at,
      total,
    };
  }
  return undefined;
}

/** As `withSmallerWindow`; what cannot be cut in time is divided by the ladder, if there is one. */
export function withSmallerSlice(
  task: PreparedTask,
  reason: string,
  { total, cap }: { total?: number | undefined; cap?: number } = {},
): SliceEnd | Divide {
  const end = withSmallerWindow(task, reason);
  const hasLadder = dimensionsOf(task.source.list.spec.slicing).length > 0 && !pagesOf(task.context.part);
  if (end.kind === "split") return { ...end, total };
  if (end.kind !== "incomplete" || !hasLadder) return end;
  return { kind: "divide", reason, total, ...(cap === undefined ? {} : { cap }) };
}

/** Two slices of half the window, or an end with a gap where the window cannot be cut. */
export function withSmallerWindow(task: PreparedTask, reason: string): SliceEnd {
  const at = middle(task);
  return at ? { kind: "split", reason, at } : { kind: "incomplete", reason };
}

/** Why a slice has more ids than one walk can keep apart. */
export function overIdLimit({ seen, batchNo, task }: Walk): string | undefined {
  if (seen.size > IDS_MAX) return `the slice has more than ${IDS_MAX} records; give \`window.sliceRecords\``;
  if (task.source.detail && batchNo >= ID_PAGES_MAX) return `the list of ids has more than ${ID_PAGES_MAX} pages`;
  return undefined;
}

/** Where the window of the slice can be cut. */
export function middle({ context, source }: PreparedTask): Date | undefined {
  const { window } = source.list.spec;
  if (!window || !context.window_from || !context.window_to || context.part) return undefined;
  return middleOf(window, { from: context.window_from, to: context.window_to });
}

/** Why a run ends between two pages although there are more. */
export function overBudget({ clock, pauses }: WalkDeps, { stats, startedMs, task }: Walk): SliceEnd | undefined {
  // The task is claimed again when the pause ends. This process may not know of that end yet, and a run that divides a slice would
  // then stop before it gets anywhere, so it is not claimed at once.
  if (pauses.holds(task.context)) {
    return { kind: "later", isClean: true, delayMs: PAUSED_MS, reason: "it was paused" };
  }
  const { maxRequests, maxDurationSec, errorShareMax } = task.source.list.spec.budget;
  if (stats.requests >= maxRequests)
    return { kind: "later", isClean: true, delayMs: 0, reason: `a run makes ${maxRequests} requests` };
  if (clock.now() - startedMs >= maxDurationSec * 1_000) {
    return { kind: "later", isClean: true, delayMs: 0, reason: `a run takes ${maxDurationSec} seconds` };
  }
  if (stats.requests >= ERROR_SHARE_AFTER && stats.failures / stats.requests > errorShareMax) {
    const reason = `${stats.failures} of ${stats.requests} requests failed`;
    return { kind: "later", isClean: true, delayMs: PAUSE_AFTER_ERRORS_MS, reason };
  }
  return undefined;
}

export function endOf(
  { random }: Pick<WalkDeps, "random">,
  walk: Walk,
  fetched: Exclude<Fetched, { kind: "page" }>,
): WalkEnd {
  if (fetched.kind === "park") {
    const { kind: _, ...wait } = fetched;
    return { kind: "later", isClean: true, ...wait };
  }
  switch (fetched.kind) {
    case "restart":
      return { kind: "restart", cause: "token", reason: fetched.reason };
    case "split":
      return withSmallerSlice(walk.task, fetched.reason, { total: walk.expected });
    case "failed":
      return { kind: "failed", reason: fetched.reason, isRefused: isRefused(walk, fetched) };
    case "unreachable":
      return whenReachable(walk, fetched.reason, random);
  }
}

/**
 * Whether further requests of the endpoint would be refused too. Not where nothing was asked, because of a setting of this process; nor
 * where the source keeps some records to itself.
 */
function isRefused(
  { position }: Walk,
  { level, exchange }: { level: string; exchange: Exchange | undefined },
): boolean {
  return level === "L4" && exchange !== undefined && (!position.isListed || exchange.status === 401);
}
