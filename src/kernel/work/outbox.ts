/**
 * The transactional outbox. An event for a webhook, a projection or lineage is written in the same transaction as the change
 * that it describes, and relayed afterwards: at least once, under an id that is the same for all attempts.
 *
 *     ready ──claim──▶ leased ──delivered──▶ (deleted)
 *       ▲                └──failed──▶ ready, later; dead after the last attempt
 *
 * Each consumer has its own row of an event and its own relay, so one that is down or slow does not delay the others.
 */
import { itemsByKey, toArrays, unnest } from "../data/batch.ts";
import type { Db, Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { storableText } from "../data/storable.ts";
import { messageOf } from "../text/message-of.ts";
import { type LeaseSpec, leaseOn, returning } from "./lease.ts";
import { createLeaseWorker, type LeaseWorker } from "./lease-worker.ts";
import { createRelayFailures } from "./outbox-failures.ts";
import { type RetryPolicy, retryDelayMs } from "./retry.ts";
import type { RunControl } from "./run-control.ts";
import type { OnRun, ServiceLog } from "./service.ts";
import type { Session } from "./session.ts";
import type { Wake } from "./wake.ts";

export interface OutboxEvent {
  /** The same for all attempts, so that a consumer can ignore repeats. */
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
  /** For one delivery. One that takes longer has failed, even if it ignores its signal. */
  timeoutMs: number;
  retry: RetryPolicy;
  /** Whether this failure would meet every event now, as when a server is down. Then they wait, one at a time is tried, and none is given up. */
  isOutage?(error: unknown): boolean;
}

export interface Outbox {
  /** Adds a consumer. Call it in every process that emits or relays, before the first event. */
  consume(consumer: OutboxConsumer): void;
  /** Writes the events for all consumers of their topics, and sends a hint after the commit. */
  emit(tx: Tx, events: readonly OutboxEvent[]): Promise<void>;
  /** The workers that deliver events, one for each consumer. */
  relays(deps: RelayDeps): Relay[];
}

export interface RelayDeps {
  db: Db;
  session: Session;
  wake: Wake;
  log: ServiceLog;
  onRun?: OnRun;
}

export const OUTBOX_TOPIC = "kernel.outbox";
const SLOTS = 100;
/** A stop does not wait for deliveries: another process delivers what was interrupted. */
const DRAIN_SECONDS = 0;
const LOST_LIMIT = 10;
const ERROR_LENGTH_MAX = 2_000;

interface ClaimedRow {
  event_id: string;
  topic: string;
  payload: unknown;
  /** How often it has failed. Lost holders are counted separately. */
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
  returning: returning<ClaimedRow>("t.event_id, t.topic, t.payload, t.attempt"),
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
/** For the rows of all consumers, including those that only another version of Millrace has. */
const anyConsumer = leaseOn({ ...spec, name: "kernel.outbox" });

const EVENT = { event_id: "uuid", consumer: "text", topic: "text", payload: "jsonb" };
const EMIT = statement(
  "kernel.outbox.emit",
  `insert into kernel.outbox (event_id, consumer, topic, payload) select * from ${unnest(EVENT, "i")}
   on conflict (event_id, consumer) do nothing`,
);
// Delivered rows are deleted, so the table contains only what is not delivered yet.
const HELD = { id: "int8", fence: "int8" };
const DELIVERED = statement(
  "kernel.outbox.delivered",
  `delete from kernel.outbox o using ${itemsByKey({ id: "int8" }, { fence: "int8" })}
   where o.id = i.id and coalesce(o.fence = i.fence and o.state = 'leased', false)`,
);

const NEXT_DUE = statement<{ ms: number | null }>(
  "kernel.outbox.next_due",
  `select extract(epoch from min(due_at) - now())::float8 * 1000 as ms
   from kernel.outbox where consumer = $1 and state = 'ready' and due_at > now()`,
);

export function createOutbox(given: readonly OutboxConsumer[], wake: Pick<Wake, "hint">): Outbox {
  const consumers: { consumer: OutboxConsumer; lease: ConsumerLease }[] = [];
  const hint = () => wake.hint(OUTBOX_TOPIC); // One function, so that a transaction that emits often hints once.
  let isUsed = false;

  function consume(consumer: OutboxConsumer): void {
    if (isUsed) throw new Error(`the consumer ${consumer.name} was added too late: it may have missed events`);
    consumers.push({ consumer, lease: leaseOf(consumer.name) });
  }
  for (const consumer of given) consume(consumer);

  return {
    consume,
    async emit(tx, events) {
      isUsed = true;
      const rows = events.flatMap(({ eventId, topic, payload }) =>
        consumers
          .filter(({ consumer }) => consumer.topics.includes(topic))
          .map(({ consumer }) => ({ event_id: eventId, consumer: consumer.name, topic, payload })),
      );
      if (rows.length === 0) return;
      tx.afterCommit(hint);
      await tx.rows(EMIT, toArrays(EVENT, rows));
    },
    relays(deps) {
      isUsed = true;
      return consumers.map(({ consumer, lease }, index) =>
        createRelay(consumer, lease, { ...deps, reclaims: index === 0 }),
      );
    },
  };
}

type ConsumerLease = typeof anyConsumer;

/** By consumer. Statements are made once, even if a process makes several outboxes, as tests do. */
const leases = new Map<string, ConsumerLease>();

/** Exported for docs/leases.md. */
export function leaseOf(consumer: string): ConsumerLease {
  if (!/^[a-z0-9_]+$/.test(consumer)) throw new Error(`an outbox consumer cannot be named ${consumer}`);
  const known = leases.get(consumer);
  if (known) return known;
  const made = leaseOn({ ...spec, name: `kernel.outbox.${consumer}`, scope: `t.consumer = '${consumer}'` });
  leases.set(consumer, made);
  return made;
}

export type Relay = LeaseWorker<Claimed>;

/** The outcome of a delivery. */
type Delivery = { id: string; fence: string } & (
  | { outcome: "delivered" }
  | { outcome: "retry_later"; error: string; delay_seconds: number }
  | { outcome: "give_up"; error: string }
);

/** Claims only the rows of its consumer: others may belong to another version of Millrace. */
function createRelay(consumer: OutboxConsumer, lease: ConsumerLease, deps: RelayDeps & { reclaims: boolean }): Relay {
  const { db, session, wake, log, onRun } = deps;
  const failures = createRelayFailures({
    consumer: consumer.name,
    log,
    isOutage: (error) => consumer.isOutage?.(error) ?? false,
  });

  async function deliver(row: Claimed, { signal }: RunControl): Promise<Delivery> {
    const held = { id: row.id, fence: row.fence };
    try {
      const event = { eventId: row.event_id, topic: row.topic, payload: row.payload };
      // While versions are replaced, a process of the other one has it.
      if (!consumer.topics.includes(row.topic)) throw new Error(`${consumer.name} has no topic ${row.topic} here`);
      await inTime(consumer.timeoutMs, signal, (limited) => consumer.deliver(event, limited));
      failures.delivered();
      return { ...held, outcome: "delivered" };
    } catch (err) {
      if (signal.aborted) throw signal.reason; // It was interrupted, which is not a failure.
      const error = storableText(messageOf(err), ERROR_LENGTH_MAX);
      const delayMs = failures.outageMs(err) ?? retryDelayMs(consumer.retry, row.attempt + 1, Math.random);
      const outcome = delayMs === undefined ? "give_up" : "retry_later";
      failures.failed(err, { eventId: row.event_id, outcome });
      if (delayMs === undefined) return { ...held, outcome: "give_up", error };
      return { ...held, outcome: "retry_later", error, delay_seconds: delayMs / 1000 };
    } finally {
      failures.ended();
    }
  }

  async function claim(limit: number, holder: string): Promise<Claimed[]> {
    if (failures.pauseMs() > 0) return [];
    const claimed = await lease.claim(db, { limit: failures.claimable(limit), holder });
    failures.claimed(claimed.length);
    return claimed;
  }

  async function dueMs(): Promise<number> {
    const pauseMs = failures.pauseMs();
    return pauseMs > 0 ? pauseMs : ((await db.rows(NEXT_DUE, [consumer.name]))[0]?.ms ?? Number.POSITIVE_INFINITY);
  }

  function settle(deliveries: readonly Delivery[]): Promise<void> {
    return db.tx(async (tx) => {
      const delivered = deliveries.filter(({ outcome }) => outcome === "delivered");
      if (delivered.length > 0) await tx.rows(DELIVERED, toArrays(HELD, delivered));
      await lease.finish(
        tx,
        "retry_later",
        deliveries.filter((one) => one.outcome === "retry_later"),
      );
      await lease.finish(
        tx,
        "give_up",
        deliveries.filter((one) => one.outcome === "give_up"),
      );
    });
  }

  return createLeaseWorker<Claimed, Claimed, Delivery, { id: string; fence: string }>({
    name: `outbox.${consumer.name}`,
    session,
    wake,
    log,
    ...(onRun ? { onRun } : {}),
    slots: SLOTS,
    drainSeconds: DRAIN_SECONDS,
    queues: [
      {
        name: `outbox.${consumer.name}`,
        topics: [OUTBOX_TOPIC],
        claim,
        dueMs,
        claimsAfterEnd: true, // A delivery that failed is due again at a time that no claim has seen.
      },
    ],
    prepare: async (claimed) => claimed,
    run: deliver,
    settle,
    held: (holder) => lease.heldBy(db, holder),
    fields: ({ id }) => ({ consumer: consumer.name, id }),
    release: (items) => lease.release(db, items),
    lose: (items) => lease.lose(db, items, LOST_LIMIT),
    // One worker reclaims the rows of all consumers.
    ...(deps.reclaims
      ? { reclaim: async (limit) => (await anyConsumer.reclaim(db, { limit, lostLimit: LOST_LIMIT })).length }
      : {}),
  });
}

/** At the time-out, aborts the work and stops waiting for it. */
async function inTime(ms: number, signal: AbortSignal, work: (limited: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const onAbort = () => ending.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`it took longer than ${ms} ms`);
      ending.abort(error);
      reject(error);
    }, ms);
  });
  try {
    await Promise.race([work(ending.signal), timedOut]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
