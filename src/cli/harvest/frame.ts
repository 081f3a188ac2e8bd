/**
 * A plan as a few lines that fit a window: a headline, a bar, what it waits for, and what its landing waits for. Used by `status`,
 * and by `run` on a terminal.
 */
import { counted } from "../../kernel/text/sentences.ts";
import { duration, inOneLine } from "../chain/run-text.ts";
import { printable, type Style, toSeconds } from "../common/output.ts";
import { bar, line, type Span } from "../common/spans.ts";
import { type Landing, type Plan, type PlanDetail, type PlanStatus, windowsToLand } from "./api.ts";
import { nameOf, shownWindow } from "./plan-text.ts";
import { type PlanProgress, progressText } from "./progress.ts";

export interface FrameInput {
  plan: PlanDetail;
  progress: PlanProgress;
  /** Milliseconds since 1970. */
  now: number;
  /** The limit of each line. */
  width: number;
  colour: boolean;
}

const STYLES: Readonly<Record<PlanStatus, Style>> = {
  DRAFT: "dim",
  SLICING: "cyan",
  READY: "cyan",
  PARTIAL: "cyan",
  COMPLETE: "green",
  FAILED: "red",
  CANCELLED: "magenta",
};
const WAITS_MAX = 3;

export function frame({ plan, progress, now, width, colour }: FrameInput): string[] {
  const style = STYLES[plan.status];
  const window = shownWindow(plan.window);
  const lines: Span[][] = [
    [
      [nameOf(plan), "bold"],
      [`  ${plan.status}`, style],
      [`  ${tookText(plan, now)}`],
      [`  plan ${printable(plan.planId)}`, "dim"],
      [window === "" ? "" : `  ${window}`],
    ],
    [...bar(progress.share, { width, isFailed: progress.share > 0 && hasGaps(plan) }), [`  ${progressText(progress)}`]],
    ...waitLines(plan).map((text): Span[] => [[text, "yellow"]]),
  ];
  const landing = toLandText(plan);
  if (landing !== "") lines.push([[landing, "dim"]]);
  const failed = failedLanding(plan);
  if (failed) lines.push([[`${failedLandingText(failed)}.`, "yellow"]]);
  return lines.map((spans) => line(spans, width, colour));
}

/** How long it has taken, or takes so far. */
export function tookText({ createdAt, endedAt }: Plan, now: number): string {
  return duration((endedAt === null ? now : Date.parse(endedAt)) - Date.parse(createdAt));
}

function hasGaps({ reconciliation: { gaps } }: PlanDetail): boolean {
  return gaps > 0;
}

/** What the plan waits for: `2 tasks wait until 2026-08-22T10:01:00Z: The daily quota is used up.` */
export function waitLines({ waits, waiting, tasks, endedAt }: PlanDetail): string[] {
  if (endedAt !== null) return [];
  // `waits` has only the tasks in the queue. While others execute, those wait for their turn.
  const isQueuedOnly = waiting === undefined && (tasks.EXECUTING ?? 0) > 0;
  return (isQueuedOnly ? [] : (waiting ?? waits)).slice(0, WAITS_MAX).map(({ reason, tasks: count, until }) => {
    const which = count > 0 ? counted(count, "task waits", "tasks wait") : "waits";
    return `${which}${until === null ? "" : ` until ${toSeconds(until)}`}: ${inOneLine(reason)}`;
  });
}

/** Windows that have not landed yet. */
export function toLandText(plan: PlanDetail): string {
  const open = windowsToLand(plan);
  return open === 0 ? "" : `${counted(open, "window")} to land`;
}

/** The first of the windows that could not land the last time, and are tried again. */
export function failedLanding({ landings }: PlanDetail): Landing | undefined {
  // A window that lands at this moment keeps the reason until it has landed.
  return landings.find(({ status, error }) => (status === "PENDING" || status === "LANDING") && error !== null);
}

/** `20260821 could not land and is tried again: ENOSPC`. */
export function failedLandingText({ opTime, error }: Landing): string {
  return `${printable(opTime)} could not land and is tried again: ${inOneLine(error)}`;
}
