/** Ids from a path. What is no UUID belongs to nothing, and is answered like an unknown one: with 400, as callers expect. */
import { ApiError } from "../kernel/errors.ts";
import { UUID } from "../kernel/ids.ts";

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

export function chainIdOf({ chainId }: { chainId: string }): string {
  if (!isUuid(chainId)) throw new ApiError("CHAIN_NOT_FOUND", { chainId });
  return chainId.toLowerCase();
}

export function runIdOf({ runId }: { runId: string }): string {
  if (!isUuid(runId)) throw new ApiError("RUN_NOT_FOUND", { runId });
  return runId.toLowerCase();
}

export function scheduleIdOf({ chainId, scheduleId }: { chainId: string; scheduleId: string }): string {
  if (!isUuid(scheduleId)) throw new ApiError("SCHEDULE_NOT_FOUND", { chainId, scheduleId });
  return scheduleId.toLowerCase();
}
