/**
 * Walks through the pages of a slice and commits each. The next page is fetched while the last one is being committed.
 *
 * A walk is one generation of the slice: it begins at the first page, or where an earlier run left it. If a token was lost, the
 * source changed under the walk or the counts do not agree, the slice starts again with the next generation; records that are
 * already there stay, and come again as unchanged.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import { type ExponentialPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import { isOfQuarantine } from "../slice/parts.ts";
import { walkDetails } from "./detail-walk.ts";
import { divideSlice } from "./divide-slice.ts";
import { probe, walkList } from "./list-walk.ts";
import type { SliceEnd } from "./task.ts";
import { answeringOf, isUpdate, listKnown } from "./update-walk.ts";
import {
  type Restart,
  restart,
  resumeWalk,
  type Walk,
  type WalkDeps,
  type WalkEnd,
  withSmallerSlice,
  withSmallerWindow,
} from "./walk.ts";

/** Over all runs of a slice: each of them may count its restarts from zero. */
const GENERATIONS_MAX = 50;
/** In one run, by cause. More of them mean a source that is down, or that changes faster than it can be read. */
const RESTARTS_MAX = { token: 20, counts: 3 } as const satisfies Record<Restart["cause"], number>;
/** A lost token is a failed request: the next attempt waits. */
const RESTART_DELAY: Omit<ExponentialPolicy, "maxAttempts"> = { baseMs: 100, factor: 2, capMs: 10_000, jitter: 0.5 };

/** Of known records. If fewer are not answered, they may well be gone; if these are most of them, the endpoint is the likelier cause. */
const MISSING_MIN = 10;

export async function walkSlice(deps: WalkDeps, walk: Walk): Promise<SliceEnd> {
  const { task, signal } = walk;
  await resumeWalk(deps, walk);
  const restarts = { token: 0, counts: 0 };
  for (;;) {
    const end = await walkOnce(deps, walk);
    if (end.kind === "divide") return divideSlice(deps, walk, end);
    if (end.kind !== "restart") return end;
    const { cause, reason } = end;
    restarts[cause] += 1;
    const count = restarts[cause];
    // A shorter window has fewer pages to lose, and changes less while it is read.
    if (count > RESTARTS_MAX[cause] || walk.generation >= GENERATIONS_MAX) {
      return withSmallerWindow(task, `${reason}; it was started ${walk.generation} times`);
    }
    await restart(deps, walk, reason);
    if (cause === "token") {
      const delayMs = retryDelayMs({ ...RESTART_DELAY, maxAttempts: Number.POSITIVE_INFINITY }, count, deps.random);
      await sleepFor(delayMs, undefined, { signal });
    }
  }
}

async function walkOnce(deps: WalkDeps, walk: Walk): Promise<WalkEnd> {
  if (isUpdate(walk)) await listKnown(deps, walk);
  if (!walk.position.isListed) {
    const ended = (await probe(deps, walk)) ?? (await walkList(deps, walk));
    if (ended) return ended;
  }
  if (answeringOf(walk)) {
    for (const state of ["NEW", "RETRY"] as const) {
      const ended = await walkDetails(deps, walk, state);
      if (ended) return ended;
    }
  }
  return reconciled(walk);
}

/** Complete if the counts agree; a source that changed under the walk is read again. */
function reconciled(walk: Walk): WalkEnd {
  const { expected, received, quarantined, missing, task } = walk;
  const { window } = task.source.list.spec;
  const asksAgain = isUpdate(walk) && isOfQuarantine(task.context.part);
  // A definition that does not fit the records would otherwise complete windows with nothing in them.
  if (quarantined > received && !asksAgain) {
    const reason = `${quarantined} of ${quarantined + received} records could not be stored; GET /quarantine has the reasons`;
    return { kind: "incomplete", reason };
  }
  if (task.context.plan_strategy === "RANGE" && !asksAgain && missing > received && missing >= MISSING_MIN) {
    const reason = `${missing} of ${missing + received} known records were not answered; is the endpoint for details right?`;
    return { kind: "incomplete", reason };
  }
  if (expected === undefined) {
    const came = received + quarantined + missing;
    if (window?.recordsMax === undefined || came < window.recordsMax) return { kind: "complete" };
    return withSmallerSlice(task, `${came} records came, and the source answers no more for one query`);
  }
  const gap = expected - received - quarantined - missing;
  if (gap <= (window?.tolerance ?? 0)) return { kind: "complete" };
  return {
    kind: "restart",
    cause: "counts",
    reason: `the source announced ${expected} records, and ${expected - gap} came`,
  };
}
