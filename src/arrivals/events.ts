/** The events that arrivals emits through the outbox, in the transaction of the change. */

import type { Tx } from "../kernel/data/db.ts";
import type { Ids } from "../kernel/ids.ts";
import { loggedReason } from "../kernel/telemetry/logged-reason.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { ServiceLog } from "../kernel/work/service.ts";
import { describeRun, type ModelEnd, type ModelFlow } from "./runs/model-flow.ts";
import type { Cause } from "./store/instances.ts";

export interface Events {
  updated(tx: Tx, event: KpiUpdated): Promise<void>;
  /** Always leaves a line in the log. No event if a node waits for the run: that fails with it, and its run has its own event. */
  failed(tx: Tx, event: ModelFailed, options: { isAwaited: boolean }): Promise<void>;
  /** Leaves a line in the log. Only the last attempt has an event. */
  retried(tx: Tx, event: ModelFailed & { attempt: number; delayMs: number }): void;
  late(tx: Tx, events: readonly DeadlinePassed[]): Promise<void>;
  /** Calls the listeners, which record lineage; without one it reads nothing. */
  runEnded(tx: Tx, end: ModelEnd): Promise<void>;
  onRunEnded(listener: OnRunEnded): void;
}

/** Called in the transaction that ends a run, with what the run read and wrote. */
export type OnRunEnded = (tx: Tx, flow: ModelFlow) => Promise<void>;

interface KpiUpdated {
  modelId: string;
  opTime: string;
  affectedKpiIds: readonly string[];
  generation: number;
  rerun: boolean;
  causedBy: Cause | null;
}
interface ModelFailed {
  modelId: string;
  opTime: string;
  generation: number;
  message: string;
}
interface DeadlinePassed {
  modelId: string;
  opTime: string;
  table: string;
  deadline: string;
}

export interface EventsDeps {
  outbox: Pick<Outbox, "emit">;
  ids: Ids;
  clock: Clock;
  log: ServiceLog;
}

export function createEvents({ outbox, ids, clock, log }: EventsDeps): Events {
  const listeners: OnRunEnded[] = [];
  const eventOf = (topic: string) => (event: object) => ({
    eventId: ids.uuid(),
    topic,
    payload: { ...event, at: new Date(clock.now()).toISOString() },
  });
  return {
    updated: (tx, event) => outbox.emit(tx, [event].map(eventOf("kpi.updated"))),
    async failed(tx, event, { isAwaited }) {
      const { message, ...run } = event;
      tx.afterCommit(() => log.warn({ ...run, reason: loggedReason(message) }, "a model failed"));
      if (!isAwaited) await outbox.emit(tx, [event].map(eventOf("model.failed")));
    },
    retried(tx, { message, ...run }) {
      tx.afterCommit(() =>
        log.warn({ ...run, reason: loggedReason(message) }, "an attempt of a model failed; it is tried again"),
      );
    },
    late: (tx, events) => outbox.emit(tx, events.map(eventOf("deadline.passed"))),
    async runEnded(tx, end) {
      if (listeners.length === 0) return;
      const flow = await describeRun(tx, end);
      for (const listener of listeners) await listener(tx, flow);
    },
    onRunEnded: (listener) => void listeners.push(listener),
  };
}
