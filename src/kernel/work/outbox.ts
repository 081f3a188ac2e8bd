/**
 * What must leave the database, such as a webhook, a projection or a lineage event, is written in the same transaction as
 * the change that it tells of, and relayed afterwards: at least once, under an id that stays the same over all attempts.
 *
 *     ready ──claim──▶ leased ──delivered──▶ (deleted)
 *       ▲                └──failed──▶ ready, later; dead after the last attempt
 *
 * Each consumer has its own row of an event and its own loop, so one that is down or slow holds back no other.
 */
import { itemsByKey, toArrays, unnest } from "../data/batch.ts";
import { type Db, isUnavailable, type Tx } from "../data/db.ts";
import { createGroupCommit } from "../data/group-commit.ts";
import { statement } from "../data/statement.ts";
import { type Lease, type LeaseSpec, leaseOn } from "./lease.ts";
import { type RetryPolicy, retryDelayMs, withRetry } from "./retry.ts";
import { createService, type Service, type ServiceLog } from "./service.ts";
import { OUTLAST_SESSION, type Session } from "./session.ts";
import { LOST_HINT_MS, type Wake } from "./wake.ts";

export interface OutboxEvent {
  /** Stable over all attempts; the consumer's key for ignoring repeats. */
  eventId: string;
  topic: string;
  payload: unknown;
}

export interface OutboxConsumer {
  /** Lower case letters, digits and `_`: it is part of statement names. */
  name: string;
  topics: readonly string[];
  /** Must tolerate repeats: a crash between delivery and its record delivers again. */
  deliver(event: OutboxEvent, signal: AbortSignal): Promise<void>;
  /** For one delivery. What takes longer has failed, whether it heeds its signal or not. */
  timeoutMs: number;
  retry: RetryPolicy;
}

export interface Outbox {
  /** Writes the events for all consumers of their topics, and wakes their loops after the commit. */
  emit(tx: Tx, events: readonly OutboxEvent[]): Promise<void>;
  /** The loops: one that reclaims, and one for each consumer. */
  relays(deps: RelayDeps): Service[];
}

export interface RelayDeps {
  db: Db;
  session: Session;
  wake: Wake;
  log: ServiceLog;
}

export const OUTBOX_TOPIC = "kernel.outbox";
const BATCH_MAX = 100;
const LOST_LIMIT = 10;
const ERROR_LENGTH_MAX = 2_000;

interface ClaimedRow {
  event_id: string;
  topic: string;
  payload: unknown;
  /** How often it has failed. Lost holders are counted apart. */
  attempt: number;
}
type Claimed = ClaimedRow & { id: string; fence: string };

const spec = {
  table: "kernel.outbox",
  key: { id: "int8" },
  state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
  dueAt: "due_at",
  orderBy: "due_at, id",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count", error: "last_error" },
  returning: "t.event_id, t.topic, t.payload, t.attempt",
  outcomes: {
    retry_later: {
      set: `state = 'ready', fence = null, attempt = t.attempt + 1, last_error = i.error,
            due_at = now() + make_interval(secs => i.delay_seconds)`,
      values: { delay_seconds: "float8", error: "text" },
    },
    give_up: {
      set: "state = 'dead', fence = null, attempt = t.attempt + 1, last_error = i.error",
      values: { error: "text" },
    },
  },
} as const satisfies Omit<LeaseSpec, "name">;
const anyConsumer = leaseOn<{ id: string }>({ ...spec, name: "kernel.outbox" });

const EVENT = { event_id: "uuid", consumer: "text", topic: "text", payload: "jsonb" };
const EMIT = statement(
  "kernel.outbox.emit",
  `insert into kernel.outbox (event_id, consumer, topic, payload) select * from ${unnest(EVENT, "i")}
   on conflict (event_id, consumer) do nothing`,
);
// Delivered rows are deleted, so the table holds only what is still to do.
const HELD = { id: "int8", fence: "int8" };
const DELIVERED = statement(
  "kernel.outbox.delivered",
  `delete from kernel.outbox o using ${itemsByKey({ id: "int8" }, { fence: "int8" })}
   where o.id = i.id and coalesce(o.fence = i.fence and o.state = 'leased', false)`,
);

const NEXT_DUE = statement<{ ms: number | null }>(
  "kernel.outbox.next_due",
  `select extract(epoch from min(due_at) - now())::float8 * 1000 as ms
   from kernel.outbox where consumer = $1 and state = 'ready'`,
);

export function createOutbox(consumers: readonly OutboxConsumer[], wake: Pick<Wake, "hint">): Outbox {
  const lanes = consumers.map((consumer) => createLane(consumer));
  const hint = () => wake.hint(OUTBOX_TOPIC); // One function, so that a transaction that emits often hints once.
  return {
    async emit(tx, events) {
      const rows = events.flatMap(({ eventId, topic, payload }) =>
        consumers
          .filter(({ topics }) => topics.includes(topic))
          .map(({ name }) => ({ event_id: eventId, consumer: name, topic, payload })),
      );
      if (rows.length === 0) return;
      tx.afterCommit(hint);
      await tx.rows(EMIT, toArrays(EVENT, rows));
    },
    relays: (deps) => [createReclaimer(deps), ...lanes.map((lane) => lane(deps))],
  };
}

function createReclaimer({ db, session, wake, log }: RelayDeps): Service {
  const service = createService({
    name: "outbox.reclaim",
    intervalMs: LOST_HINT_MS,
    log,
    async runOnce() {
      const { length: reclaimed } = await anyConsumer.reclaim(db, { limit: BATCH_MAX, lostLimit: LOST_LIMIT });
      if (reclaimed > 0) wake.hint(OUTBOX_TOPIC);
      return { reclaimed };
    },
    more: ({ reclaimed = 0 }) => reclaimed === BATCH_MAX,
  });
  session.onSilence(service.wake);
  return service;
}

/** What became of an attempt, and is to be written down. */
interface Settled {
  outcome: "delivered" | "released" | "retry_later" | "give_up";
  id: string;
  fence: string;
  error?: string;
  delay_seconds?: number;
}

/** By consumer: statements are made once, also where a process holds two of a kind, as tests do. */
const leases = new Map<string, Lease<{ id: string }, ClaimedRow>>();

function leaseOf(consumer: string): Lease<{ id: string }, ClaimedRow> {
  if (!/^[a-z0-9_]+$/.test(consumer)) throw new Error(`an outbox consumer cannot be named ${consumer}`);
  const known = leases.get(consumer);
  if (known) return known;
  const made = leaseOn<{ id: string }, ClaimedRow>({
    ...spec,
    name: `kernel.outbox.${consumer}`,
    readyWhen: `t.consumer = '${consumer}'`,
  });
  leases.set(consumer, made);
  return made;
}

/** The loop of one consumer. It claims only what it knows how to deliver: the rest is for another version of Millrace. */
function createLane(consumer: OutboxConsumer): (deps: RelayDeps) => Service {
  const lease = leaseOf(consumer.name);

  async function attempt(row: Claimed, signal: AbortSignal, log: ServiceLog): Promise<Settled> {
    const held = { id: row.id, fence: row.fence };
    try {
      const event = { eventId: row.event_id, topic: row.topic, payload: row.payload };
      await inTime(consumer.timeoutMs, signal, (limited) => consumer.deliver(event, limited));
      return { ...held, outcome: "delivered" };
    } catch (err) {
      if (signal.aborted) return { ...held, outcome: "released" }; // We cut it short; it did not fail.
      const error = String(err instanceof Error ? err.message : err).slice(0, ERROR_LENGTH_MAX);
      const delayMs = retryDelayMs(consumer.retry, row.attempt + 1, Math.random);
      const outcome = delayMs === undefined ? "give_up" : "retry_later";
      log.warn({ err, eventId: row.event_id, consumer: consumer.name, outcome }, "an outbox event was not delivered");
      return { ...held, outcome, error, delay_seconds: (delayMs ?? 0) / 1000 };
    }
  }

  async function write(db: Db, items: readonly Settled[]): Promise<void> {
    const by = (outcome: Settled["outcome"]) => items.filter((item) => item.outcome === outcome);
    await db.tx(async (tx) => {
      const delivered = by("delivered");
      if (delivered.length > 0) await tx.rows(DELIVERED, toArrays(HELD, delivered));
      await lease.release(tx, by("released"));
      await lease.finish(tx, "retry_later", by("retry_later"));
      await lease.finish(tx, "give_up", by("give_up"));
    });
  }

  return ({ db, session, wake, log }) => {
    const settlements = createGroupCommit<Settled, Settled>({
      identity: ({ id }) => id,
      async write(items) {
        // A row whose outcome was not written stays ours for as long as this process lives, so it is not given up easily.
        await withRetry(() => write(db, items), { policy: OUTLAST_SESSION, retryOn: isUnavailable });
        return items;
      },
    });
    let dueInMs: number | undefined;
    const service = createService({
      name: `outbox.${consumer.name}`,
      intervalMs: LOST_HINT_MS,
      log,
      nextDueMs: () => dueInMs,
      more: ({ claimed = 0 }) => claimed === BATCH_MAX,
      async runOnce(signal) {
        const claimed = await lease.claim(db, { limit: BATCH_MAX, holder: session.id() });
        const settled = await Promise.all(claimed.map(async (row) => settlements.add(await attempt(row, signal, log))));
        const delivered = settled.filter(({ outcome }) => outcome === "delivered").length;
        dueInMs = (await db.rows(NEXT_DUE, [consumer.name]))[0]?.ms ?? undefined;
        return { claimed: claimed.length, delivered };
      },
    });
    wake.on(OUTBOX_TOPIC, service.wake);
    return service;
  };
}

/** Ends the waiting, and asks the work to end, when its time is up. */
async function inTime(ms: number, signal: AbortSignal, work: (limited: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const onAbort = () => ending.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`it took longer than ${ms} ms`);
      ending.abort(error);
      reject(error);
    }, ms);
  });
  try {
    await Promise.race([work(ending.signal), tooLate]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
