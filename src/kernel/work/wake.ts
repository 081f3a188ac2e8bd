/**
 * Wake-up hints between and within processes. A hint says "look again", never what to find, so a lost one costs a
 * moment: every loop also polls. Within the process a hint is immediate; to the others it goes by NOTIFY, at once for
 * the first change and then at most every 10 ms, and never inside the transaction that made the change, because NOTIFY
 * holds a lock over the whole database until that commits.
 */
import type pg from "pg";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { ServiceLog } from "./service.ts";

const CHANNEL = "millrace_wake";
const NOTIFY_GAP_MS = 10;
const RECONNECT_MS = 1_000;
/** How often a loop that hints, due times and silent sessions wake looks unasked: for the hint that was lost. */
export const LOST_HINT_MS = 120_000;

export interface Wake {
  /** Tells everyone who listens to the topic, here and in other processes. Call it after the commit. */
  hint(topic: string): void;
  /** Calls `listener` at each hint; returns the function that ends it. */
  on(topic: string, listener: () => void): () => void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

// A NOTIFY makes its transaction write to the log, and waiting for the disk would be the longest part of it. A hint that a
// power cut swallows is no loss.
const NOTIFY = statement(
  "kernel.wake.notify",
  `select pg_notify('${CHANNEL}', topic), set_config('synchronous_commit', 'off', true) from unnest($1::text[]) as t(topic)`,
);

export function createWake(options: { db: Db; log: ServiceLog }): Wake {
  const { db, log } = options;
  const listeners = new Map<string, Set<() => void>>();
  const outgoing = new Set<string>();
  const origin = `${process.pid}.${Math.random().toString(36).slice(2)}`; // To tell our own notifications apart.
  let sendTimer: NodeJS.Timeout | undefined;
  let sendNow: NodeJS.Immediate | undefined;
  let lastSentAt = 0;
  let client: pg.Client | undefined;
  let reconnectTimer: NodeJS.Timeout | undefined;
  let stopped = true;

  function tell(topic: string): void {
    for (const listener of listeners.get(topic) ?? []) listener();
  }

  function tellAll(): void {
    for (const topic of listeners.keys()) tell(topic);
  }

  async function send(): Promise<void> {
    sendTimer = undefined;
    sendNow = undefined;
    lastSentAt = performance.now();
    const payloads = [...outgoing].map((topic) => `${origin} ${topic}`);
    outgoing.clear();
    try {
      await db.rows(NOTIFY, [payloads]);
    } catch (error) {
      log.warn({ err: error }, "a wake-up hint was not sent"); // No loss: the others poll.
    }
  }

  async function listen(): Promise<void> {
    const fresh = await db.dedicated("listen");
    fresh.on("notification", ({ payload = "" }) => {
      const space = payload.indexOf(" ");
      if (payload.slice(0, space) !== origin) tell(payload.slice(space + 1));
    });
    fresh.on("error", reconnect);
    fresh.on("end", reconnect);
    await fresh.query(`listen ${CHANNEL}`);
    if (stopped) return fresh.end();
    client = fresh;
    function reconnect(): void {
      if (client === fresh) client = undefined;
      scheduleReconnect();
    }
  }

  function scheduleReconnect(): void {
    if (stopped) return;
    reconnectTimer ??= setTimeout(() => {
      reconnectTimer = undefined;
      // Hints sent meanwhile were missed, so everyone looks again.
      listen().then(tellAll, scheduleReconnect);
    }, RECONNECT_MS);
  }

  return {
    hint(topic) {
      tell(topic);
      if (stopped) return;
      outgoing.add(topic);
      if (sendTimer || sendNow) return;
      const waitMs = lastSentAt + NOTIFY_GAP_MS - performance.now();
      if (waitMs > 0) sendTimer = setTimeout(() => void send(), waitMs);
      else sendNow = setImmediate(() => void send()); // A timer of 0 ms would take a whole millisecond.
    },
    on(topic, listener) {
      const set = listeners.get(topic) ?? new Set();
      listeners.set(topic, set.add(listener));
      return () => set.delete(listener);
    },
    async start() {
      stopped = false;
      await listen();
    },
    async stop() {
      stopped = true;
      clearTimeout(sendTimer);
      clearImmediate(sendNow);
      clearTimeout(reconnectTimer);
      if (outgoing.size > 0) await send(); // Of work that was just given back, perhaps.
      await client?.end();
    },
  };
}
