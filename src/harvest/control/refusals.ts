/**
 * The pauses that Millrace makes itself. Where the access of an endpoint is refused (level L4), every further request would be too,
 * and some services lock out who goes on: the slice fails, and its endpoint is paused until a person resumes it or the definition of
 * the source changes. A pause that a person made is never lifted here.
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
import { deleteAutomatic, insertPause } from "../store/pauses.ts";
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

/** One that is there stays. The alert goes out with the first. */
export async function pauseRefused(tx: Tx, deps: RefusalDeps, refused: PausedEndpoint): Promise<void> {
  const { source, endpoint, reason } = refused;
  const scope = { source, endpoint, operation: null };
  if (!(await insertPause(tx, scope, { by: BY, reason, isAutomatic: true }))) return;
  await deps.outbox.emit(tx, [endpointPaused(deps.ids.uuid(), refused, deps.clock.now())]);
  pausesChanged(tx, deps, source);
  tx.afterCommit(() => deps.log.warn({ ...refused }, "an endpoint was paused, since access to it is refused"));
}

/** Another definition may have removed the reason. */
export async function liftRefusals(tx: Tx, deps: PauseHints, source: string, actor: Actor): Promise<void> {
  const lifted = await deleteAutomatic(tx, source);
  for (const { endpoint_name: endpoint, paused_by: pausedBy, paused_at: pausedAt, reason } of lifted) {
    await audit(tx, actor, "harvest.resume", source, { endpoint, operation: null, pausedBy, pausedAt, reason });
  }
  if (lifted.length > 0) pausesChanged(tx, deps, source);
}
