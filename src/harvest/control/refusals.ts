/**
 * The pauses that Millrace makes itself. Where a source refuses access to an endpoint (level L4), it refuses every further request
 * too, and may lock out a client that goes on: the slice fails, and its endpoint is paused until a person resumes it or the definition
 * of the source changes. Then one task asks, and the others follow when it was answered. Slices that are refused meanwhile go back
 * into the queue. A pause that a person made is never lifted here.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox } from "../../kernel/work/outbox.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { HarvestHints } from "../catalogue.ts";
import { endpointPaused, type PausedEndpoint } from "../plan/events.ts";
import { deleteAutomatic, insertAutomaticPause, setRefused } from "../store/queue/pauses.ts";
import { PAUSES_TOPIC, PLANS_TOPIC, TASKS_TOPIC } from "../topics.ts";

export interface PauseHints {
  wake: Pick<Wake, "hint">;
  hints: HarvestHints;
}

export interface RefusalDeps extends PauseHints {
  outbox: Pick<Outbox, "emit">;
  ids: Pick<Ids, "uuid">;
  clock: Clock;
  log: Pick<ServiceLog, "warn">;
}

const BY = "Millrace";

/** What a pause or its end changes is seen at once. */
export function pausesChanged(tx: Tx, { wake, hints }: PauseHints, source: string): void {
  for (const topic of [PAUSES_TOPIC, TASKS_TOPIC, PLANS_TOPIC]) tx.afterCommit(() => wake.hint(topic));
  hints.changed(tx, "source", source);
}

/**
 * Answers whether the endpoint was paused before. A pause that is there stays, and the alert goes out with the first. A plan that was
 * made with an earlier definition pauses nothing: the one of today may have removed the reason.
 */
export async function pauseRefused(tx: Tx, deps: RefusalDeps, refused: PausedEndpoint): Promise<boolean> {
  const outcome = await insertAutomaticPause(tx, refused, BY, refused.reason);
  if (outcome !== "outdated") await setRefused(tx, refused, true);
  if (outcome !== "new") return outcome === "present";
  await deps.outbox.emit(tx, [endpointPaused(deps.ids.uuid(), refused, deps.clock.now())]);
  pausesChanged(tx, deps, refused.source);
  tx.afterCommit(() => deps.log.warn({ ...refused }, "an endpoint was paused, since access to it is refused"));
  return false;
}

/** The source answers again: the tasks that waited for the one which asked follow. */
export async function accessGranted(
  tx: Tx,
  { wake }: Pick<PauseHints, "wake">,
  endpoint: { source: string; endpoint: string },
): Promise<void> {
  if (await setRefused(tx, endpoint, false)) tx.afterCommit(() => wake.hint(TASKS_TOPIC));
}

/** Another definition may have removed the reason. */
export async function liftRefusals(tx: Tx, deps: PauseHints, source: string, actor: Actor): Promise<void> {
  const lifted = await deleteAutomatic(tx, source);
  for (const { endpoint_name: endpoint, paused_by: pausedBy, paused_at: pausedAt, reason } of lifted) {
    await audit(tx, actor, "harvest.resume", source, { endpoint, operation: null, pausedBy, pausedAt, reason });
  }
  if (lifted.length > 0) pausesChanged(tx, deps, source);
}
