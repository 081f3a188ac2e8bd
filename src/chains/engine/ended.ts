/** Who hears, in its transaction, that a run has ended: the world, of runs that failed, and other modules that ask for it. */
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox, OutboxEvent } from "../../kernel/work/outbox.ts";
import type { RunStatus } from "./states.ts";
import type { EndedRun, TellEnded } from "./tell.ts";

export interface Ended extends TellEnded {
  /** Before the first run ends. */
  listen(listener: TellEnded): void;
}

export function createEnded(deps: { outbox: Pick<Outbox, "emit">; clock: Clock; ids: Ids }): Ended {
  const { outbox, clock, ids } = deps;
  const of = new Set<RunStatus>(["FAILED"]);
  const listeners: TellEnded[] = [];

  /** Of a run that another one waits for, that one tells. */
  function failure({ runId, chainId, name, opTime, status, reason, parentRunId }: EndedRun): OutboxEvent[] {
    if (status !== "FAILED" || parentRunId !== null) return [];
    const at = new Date(clock.now()).toISOString();
    return [{ eventId: ids.uuid(), topic: "run.failed", payload: { runId, chainId, name, opTime, reason, at } }];
  }

  return {
    of,
    async tell(tx, ended) {
      await outbox.emit(tx, ended.flatMap(failure));
      for (const listener of listeners) {
        const told = ended.filter(({ status }) => listener.of.has(status));
        if (told.length > 0) await listener.tell(tx, told);
      }
    },
    listen(listener) {
      listeners.push(listener);
      for (const status of listener.of) of.add(status);
    },
  };
}
