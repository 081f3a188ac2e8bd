/** Called in the transaction that ends a run: emits `run.failed` to the outbox, and calls the listeners of other modules. */
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox, OutboxEvent } from "../../kernel/work/outbox.ts";
import type { EndedRun, RunsEndedListener } from "./notify.ts";
import type { RunStatus } from "./states.ts";

export interface RunEndListeners extends RunsEndedListener {
  /** Call it before the first run ends. */
  add(listener: RunsEndedListener): void;
}

export function createRunEndListeners(deps: { outbox: Pick<Outbox, "emit">; clock: Clock; ids: Ids }): RunEndListeners {
  const { outbox, clock, ids } = deps;
  const statuses = new Set<RunStatus>(["FAILED"]);
  const listeners: RunsEndedListener[] = [];

  /** None for a child run: its failure fails the parent, which has its own event. */
  function failure({ runId, chainId, name, opTime, status, reason, parentRunId }: EndedRun): OutboxEvent[] {
    if (status !== "FAILED" || parentRunId !== null) return [];
    const at = new Date(clock.now()).toISOString();
    return [{ eventId: ids.uuid(), topic: "run.failed", payload: { runId, chainId, name, opTime, reason, at } }];
  }

  return {
    statuses,
    async onRunsEnded(tx, ended) {
      await outbox.emit(tx, ended.flatMap(failure));
      for (const listener of listeners) {
        const matching = ended.filter(({ status }) => listener.statuses.has(status));
        if (matching.length > 0) await listener.onRunsEnded(tx, matching);
      }
    },
    add(listener) {
      listeners.push(listener);
      for (const status of listener.statuses) statuses.add(status);
    },
  };
}
