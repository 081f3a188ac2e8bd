/** What arrivals tells the world, by the outbox and in the transaction of the change. */

import type { Tx } from "../kernel/data/db.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import { describeRun, type ModelEnd, type ModelFlow } from "./runs/model-flow.ts";
import type { Cause } from "./store/instances.ts";

export interface Events {
  updated(tx: Tx, event: KpiUpdated): Promise<void>;
  failed(tx: Tx, event: ModelFailed): Promise<void>;
  late(tx: Tx, events: readonly DeadlinePassed[]): Promise<void>;
  /** For those who want to know where indicators come from; costs nothing if there are none. */
  ended(tx: Tx, end: ModelEnd): Promise<void>;
  onEnded(listener: TellEnded): void;
}

/** Tells those who want to know, in the transaction, what a run read and brought. */
export type TellEnded = (tx: Tx, flow: ModelFlow) => Promise<void>;

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
}

export function createEvents({ outbox, ids, clock }: EventsDeps): Events {
  const listeners: TellEnded[] = [];
  const eventOf = (topic: string) => (event: object) => ({
    eventId: ids.uuid(),
    topic,
    payload: { ...event, at: new Date(clock.now()).toISOString() },
  });
  return {
    updated: (tx, event) => outbox.emit(tx, [event].map(eventOf("kpi.updated"))),
    failed: (tx, event) => outbox.emit(tx, [event].map(eventOf("model.failed"))),
    late: (tx, events) => outbox.emit(tx, events.map(eventOf("deadline.passed"))),
    async ended(tx, end) {
      if (listeners.length === 0) return;
      const flow = await describeRun(tx, end);
      for (const listener of listeners) await listener(tx, flow);
    },
    onEnded: (listener) => void listeners.push(listener),
  };
}
