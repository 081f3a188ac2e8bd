/**
 * Hints within and between processes. A hint names a topic and carries no data, so a lost one only costs time: every loop
 * also polls. Within the process a hint is immediate. Other processes get it by NOTIFY on the connection of pulse.ts, the
 * first at once and then at most every 10 ms. It is never sent inside the transaction that made the change, because NOTIFY
 * holds a database-wide lock until the commit.
 */
import { createPaced } from "./paced.ts";
import type { Pulse } from "./pulse.ts";
import type { ServiceLog } from "./service.ts";

const SEND_GAP_MS = 10;
/** More topics than this are sent as one hint to all topics: there may be one for each run that is watched. */
const TOPICS_MAX = 1_000;
/** Wakes the listeners of all topics; also sent in place of hints that could not be sent. */
const ALL_TOPICS = "*";
/** The interval of loops that hints, due times and expired sessions wake: a fallback for lost hints. */
export const LOST_HINT_MS = 120_000;

export interface Wake {
  /** Calls the listeners of the topic, in this and other processes. Call it after the commit. */
  hint(topic: string): void;
  /** Calls `listener` at each hint; returns the function that removes it. */
  on(topic: string, listener: () => void): () => void;
  /** Sends pending hints. Later hints stay in the process. */
  stop(): Promise<void>;
}

/** Without a pulse, hints stay in the process. */
export function createWake(others?: { pulse: Pulse; log: ServiceLog }): Wake {
  const listeners = new Map<string, Set<() => void>>();
  const sender = others && createSender(others);
  others?.pulse.onNotification((payload) => {
    const space = payload.indexOf(" ");
    if (payload.slice(0, space) !== sender?.origin) wake(payload.slice(space + 1));
  });
  others?.pulse.onReconnect(() => wake(ALL_TOPICS)); // Hints of other processes were missed meanwhile.

  function wake(topic: string): void {
    const woken = topic === ALL_TOPICS ? listeners.values() : [listeners.get(topic) ?? []];
    for (const set of woken) for (const listener of set) listener();
  }

  return {
    hint(topic) {
      wake(topic);
      sender?.add(topic);
    },
    on(topic, listener) {
      const set = listeners.get(topic) ?? new Set();
      listeners.set(topic, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0 && listeners.get(topic) === set) listeners.delete(topic); // There is a topic for each watched run.
      };
    },
    stop: async () => sender?.stop(),
  };
}

/** Sends hints to other processes: batched for 10 ms, one statement at a time. */
function createSender({ pulse, log }: { pulse: Pulse; log: ServiceLog }) {
  const origin = `${process.pid}.${Math.random().toString(36).slice(2)}`; // To recognise our own notifications.
  let topics = new Set<string>();

  async function send(): Promise<boolean> {
    const payloads = [...topics].map((topic) => `${origin} ${topic}`);
    topics = new Set();
    try {
      await pulse.notify(payloads);
      return true;
    } catch (err) {
      topics = new Set([ALL_TOPICS]);
      log.warn({ err }, "a wake-up hint was not sent");
      return false;
    }
  }

  const paced = createPaced({ pulse, gapMs: SEND_GAP_MS, isEmpty: () => topics.size === 0, send });
  return {
    origin,
    add(topic: string): void {
      topics = topics.size < TOPICS_MAX ? topics.add(topic) : new Set([ALL_TOPICS]);
      paced.schedule();
    },
    stop: paced.stop,
  };
}
