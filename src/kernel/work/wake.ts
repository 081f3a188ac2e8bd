/**
 * Wake-up hints between and within processes. A hint says "look again", never what to find, so a lost one costs a
 * moment: every loop also polls. Within the process a hint is immediate; to the others it goes by NOTIFY on the process's
 * own connection (pulse.ts), at once for the first change and then at most every 10 ms, and never inside the transaction
 * that made the change, because NOTIFY holds a lock over the whole database until that commits.
 */
import type { Pulse } from "./pulse.ts";
import type { ServiceLog } from "./service.ts";

const SEND_GAP_MS = 10;
const SEND_GAP_AFTER_FAILURE_MS = 1_000;
/** More topics than these at once go out as one hint to everyone: there may be one for each run that is watched. */
const TOPICS_MAX = 1_000;
/** The topic of everyone, sent in place of hints that could not be sent. */
const EVERYONE = "*";
/** How often a loop that hints, due times and expired sessions wake looks unasked: for the hint that was lost. */
export const LOST_HINT_MS = 120_000;

export interface Wake {
  /** Wakes everyone who listens to the topic, here and in other processes. Call it after the commit. */
  hint(topic: string): void;
  /** Calls `listener` at each hint; returns the function that ends it. */
  on(topic: string, listener: () => void): () => void;
  /** Sends what is still to be sent. Later hints stay in the process. */
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
  others?.pulse.onReconnect(() => wake(EVERYONE)); // Hints that others sent meanwhile were missed.

  function wake(topic: string): void {
    const woken = topic === EVERYONE ? listeners.values() : [listeners.get(topic) ?? []];
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
      return () => set.delete(listener);
    },
    stop: async () => sender?.stop(),
  };
}

/** Hints on their way out: gathered for 10 ms, one statement at a time. */
function createSender({ pulse, log }: { pulse: Pulse; log: ServiceLog }) {
  const origin = `${process.pid}.${Math.random().toString(36).slice(2)}`; // To tell our own notifications apart.
  let topics = new Set<string>();
  let cancelTimer: (() => void) | undefined;
  let sending: Promise<void> | undefined;
  let sendAfterMs = 0;
  let stopped = false;

  function add(topic: string): void {
    if (stopped) return;
    topics = topics.size < TOPICS_MAX ? topics.add(topic) : new Set([EVERYONE]);
    schedule();
  }

  function schedule(): void {
    if (stopped || topics.size === 0 || cancelTimer || sending || !pulse.isConnected()) return;
    const waitMs = sendAfterMs - performance.now();
    if (waitMs > 0) {
      const timer = setTimeout(sendNow, waitMs);
      cancelTimer = () => clearTimeout(timer);
    } else {
      const immediate = setImmediate(sendNow); // A timer of 0 ms would take a whole millisecond.
      cancelTimer = () => clearImmediate(immediate);
    }
  }

  function sendNow(): void {
    cancelTimer = undefined;
    sending = send().finally(() => {
      sending = undefined;
      schedule();
    });
  }

  async function send(): Promise<void> {
    const payloads = [...topics].map((topic) => `${origin} ${topic}`);
    topics = new Set();
    sendAfterMs = performance.now() + SEND_GAP_MS;
    try {
      await pulse.notify(payloads);
    } catch (err) {
      topics = new Set([EVERYONE]);
      sendAfterMs = performance.now() + SEND_GAP_AFTER_FAILURE_MS;
      log.warn({ err }, "a wake-up hint was not sent");
    }
  }

  pulse.onReconnect(() => {
    sendAfterMs = 0;
    schedule();
  });
  return {
    origin,
    add,
    async stop() {
      stopped = true;
      cancelTimer?.();
      await sending;
      if (topics.size > 0) await send(); // Of work that was just given back, perhaps.
    },
  };
}
