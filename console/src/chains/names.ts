/** What a run and an attempt are called where there is little room. */
import type { Run, RunNode } from "./api.ts";

/** The end of the id: ids begin with the time, so runs of one minute begin alike. */
export function shortRunId(runId: string): string {
  return runId.slice(-8);
}

export function runNameOf({ opTime, runId }: Pick<Run, "opTime" | "runId">): string {
  return opTime ?? shortRunId(runId);
}

/** `2/3`. A retry by hand begins a fresh budget while the numbers go on, so above the budget only the number is true. */
export function attemptText({ attempt, maxAttempts }: Pick<RunNode, "attempt" | "maxAttempts">): string {
  return attempt > maxAttempts ? String(attempt) : `${attempt}/${maxAttempts}`;
}
