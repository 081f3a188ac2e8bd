/** Ids from a path. Text that is not a UUID is answered like an unknown id: with 400, as callers expect. */

import { UUID } from "../kernel/ids.ts";
import { chainsError } from "./catalogue.ts";

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

export function chainIdOf({ chainId }: { chainId: string }): string {
  if (!isUuid(chainId)) throw chainsError("CHAIN_NOT_FOUND", { chainId });
  return chainId.toLowerCase();
}

export function runIdOf({ runId }: { runId: string }): string {
  if (!isUuid(runId)) throw chainsError("RUN_NOT_FOUND", { runId });
  return runId.toLowerCase();
}

export function scheduleIdOf({ chainId, scheduleId }: { chainId: string; scheduleId: string }): string {
  if (!isUuid(scheduleId)) throw chainsError("SCHEDULE_NOT_FOUND", { chainId, scheduleId });
  return scheduleId.toLowerCase();
}
