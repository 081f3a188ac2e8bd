/**
 * Called in the transaction that ends a run: wakes the caller that waits for it, emits `run.failed` to the outbox, and calls
 * the listeners of other modules.
 */
import type { Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox, OutboxEvent } from "../../kernel/work/outbox.ts";
import { CALLED_TRIGGER, type EndedRun, type RunsEndedListener } from "./notify.ts";
import { ENDED_RUN, type RunStatus } from "./states.ts";

export interface RunEndListeners extends RunsEndedListener {
  /** Call it before the first run ends. */
  add(listener: RunsEndedListener): void;
  /** Call it before the first run ends. */
  setCaller(listener: CallerListener): void;
}

/**
 * Called with called runs that end, or that had ended and go on. Returns the ids of those that something waits for: their
 * failure fails what waits, which has its own event.
 */
export type CallerListener = (tx: Tx, changed: readonly EndedRun[]) => Promise<ReadonlySet<string>>;

export function createRunEndListeners(deps: { outbox: Pick<Outbox, "emit">; clock: Clock; ids: Ids }): RunEndListeners {
  const { outbox, clock, ids } = deps;
  const statuses = new Set<RunStatus>(["FAILED"]);
  const listeners: RunsEndedListener[] = [];
  let callCaller: CallerListener = async () => new Set();

  /** None for a child run: its failure fails the parent, which has its own event. */
  function failure({ runId, chainId, name, opTime, status, reason, parentRunId }: EndedRun): OutboxEvent[] {
    if (status !== "FAILED" || parentRunId !== null) return [];
    const at = new Date(clock.now()).toISOString();
    return [{ eventId: ids.uuid(), topic: "run.failed", payload: { runId, chainId, name, opTime, reason, at } }];
  }

  return {
    statuses,
    async onRunsEnded(tx, changed) {
      const called = changed.filter(({ trigger }) => trigger === CALLED_TRIGGER);
      const awaited = called.length > 0 ? await callCaller(tx, called) : new Set<string>();
      const ended = changed.filter(({ status }) => ENDED_RUN.has(status));
      await outbox.emit(tx, ended.filter(({ runId }) => !awaited.has(runId)).flatMap(failure));
      for (const listener of listeners) {
        const matching = ended.filter(({ status }) => listener.statuses.has(status));
        if (matching.length > 0) await listener.onRunsEnded(tx, matching);
      }
    },
    add(listener) {
      listeners.push(listener);
      for (const status of listener.statuses) statuses.add(status);
    },
    setCaller(listener) {
      callCaller = listener;
    },
  };
}
