/** Short names of runs and attempts. */
import type { Run, RunNode } from "./api.ts";

/** The last characters of the id: ids start with the time, so runs of the same minute share a prefix. */
export function shortRunId(runId: string): string {
  return runId.slice(-8);
}

export function runNameOf({ opTime, runId }: Pick<Run, "opTime" | "runId">): string {
  return opTime ?? shortRunId(runId);
}

/** `2/3`. A manual retry resets the attempt budget but not the numbering, so above the budget only the number is shown. */
export function attemptText({ attempt, maxAttempts }: Pick<RunNode, "attempt" | "maxAttempts">): string {
  return attempt > maxAttempts ? String(attempt) : `${attempt}/${maxAttempts}`;
}
