/**
 * What must leave the database, such as a webhook, a projection or a lineage event, is written in the same transaction as
 * the change that it tells of, and relayed afterwards: at least once, under an id that stays the same over all attempts.
 *
 *     ready ──claim──▶ leased ──delivered──▶ (deleted)
 *       ▲                └──failed──▶ ready, later; dead after the last attempt
 *
 * Each consumer has its own row of an event, so a consumer that is down holds back no other.
 */
import { unnest } from "./batch.ts";
import type { Db, Queryable } from "./db.ts";
import { leaseOn } from "./lease.ts";
import { type RetryPolicy, retryDelayMs } from "./retry.ts";
import { createService, type Service, type ServiceLog } from "./service.ts";
import type { Session } from "./session.ts";
import { statement } from "./statement.ts";
import type { Wake } from "./wake.ts";

export interface OutboxEvent {
  /** Stable over all attempts; the consumer's key for ignoring repeats. */
  eventId: string;
  topic: string;
  payload: unknown;
}

export interface OutboxConsumer {
  name: string;
  topics: readonly string[];
  /** Must tolerate repeats: a crash between delivery and its record delivers again. */
  deliver(event: OutboxEvent, signal: AbortSignal): Promise<void>;
  retry: RetryPolicy;
}

export interface Outbox {
  /** Writes the events for all consumers of their topics. Call `wake.hint(OUTBOX_TOPIC)` after the commit. */
  emit(tx: Queryable, events: readonly OutboxEvent[]): Promise<void>;
  relay(deps: { db: Db; session: Session; wake: Wake; log: ServiceLog }): Service;
}

export const OUTBOX_TOPIC = "kernel.outbox";
const BATCH_MAX = 100;
const POLL_INTERVAL_MS = 10_000;
const LOST_LIMIT = 10;
const ERROR_LENGTH_MAX = 2_000;

const lease = leaseOn<{ id: string }, ClaimedRow>({
  name: "kernel.outbox",
  table: "kernel.outbox",
  key: { id: "int8" },
  state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
  dueAt: "due_at",
  orderBy: "due_at, id",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count" },
  onClaim: "attempt = t.attempt + 1",
  returning: "t.event_id, t.consumer, t.topic, t.payload, t.attempt",
  outcomes: {
    retry_later: {
      set: "state = 'ready', fence = null, due_at = now() + make_interval(secs => i.delay_seconds), last_error = i.error",
      values: { delay_seconds: "float8", error: "text" },
    },
    give_up: { set: "state = 'dead', fence = null, last_error = i.error", values: { error: "text" } },
  },
});

interface ClaimedRow {
  event_id: string;
  consumer: string;
  topic: string;
  payload: unknown;
  attempt: number;
}

const EMIT = statement(
  "kernel.outbox.emit",
  `insert into kernel.outbox (event_id, consumer, topic, payload)
   select * from ${unnest({ event_id: "uuid", consumer: "text", topic: "text", payload: "jsonb" }, "i")}
   on conflict (event_id, consumer) do nothing`,
);
// Delivered rows are deleted, so the table holds only what is still to do.
const DELIVERED = statement<{ id: string }>(
  "kernel.outbox.delivered",
  `delete from kernel.outbox o using ${unnest({ id: "int8", fence: "int8" }, "i")}
   where o.id = i.id and o.fence = i.fence and o.state = 'leased' returning o.id`,
);

export function createOutbox(consumers: readonly OutboxConsumer[]): Outbox {
  const byName = new Map(consumers.map((consumer) => [consumer.name, consumer]));

  return {
    async emit(tx, events) {
      const rows = events.flatMap((event) =>
        consumers
          .filter(({ topics }) => topics.includes(event.topic))
          .map((consumer) => ({ ...event, consumer: consumer.name })),
      );
      if (rows.length === 0) return;
      await tx.rows(EMIT, [
        rows.map(({ eventId }) => eventId),
        rows.map(({ consumer }) => consumer),
        rows.map(({ topic }) => topic),
        rows.map(({ payload }) => JSON.stringify(payload)),
      ]);
    },

    relay({ db, session, wake, log }) {
      async function deliver(row: ClaimedRow & { id: string; fence: string }, signal: AbortSignal): Promise<boolean> {
        const consumer = byName.get(row.consumer);
        const held = [{ id: row.id, fence: row.fence }];
        if (!consumer) {
          await lease.release(db, held); // Another version of Millrace on this database knows it.
          return false;
        }
        try {
          await consumer.deliver({ eventId: row.event_id, topic: row.topic, payload: row.payload }, signal);
          await db.rows(DELIVERED, [[row.id], [row.fence]]);
          return true;
        } catch (error) {
          const message = String(error instanceof Error ? error.message : error).slice(0, ERROR_LENGTH_MAX);
          const delayMs = retryDelayMs(consumer.retry, row.attempt, Math.random);
          const outcome = delayMs === undefined ? "give_up" : "retry_later";
          await lease.finish(
            db,
            outcome,
            held.map((key) => ({ ...key, error: message, delay_seconds: (delayMs ?? 0) / 1000 })),
          );
          log.warn(
            { err: error, eventId: row.event_id, consumer: consumer.name, outcome },
            "an outbox event was not delivered",
          );
          return false;
        }
      }

      const service = createService({
        name: "outbox",
        intervalMs: POLL_INTERVAL_MS,
        log,
        more: ({ claimed = 0 }) => claimed === BATCH_MAX,
        async runOnce(signal) {
          const reclaimed = await lease.reclaim(db, { limit: BATCH_MAX, lostLimit: LOST_LIMIT });
          const claimed = await lease.claim(db, { limit: BATCH_MAX, holder: session.id() });
          const delivered = await Promise.all(claimed.map((row) => deliver(row, signal)));
          return {
            claimed: claimed.length,
            delivered: delivered.filter(Boolean).length,
            reclaimed: reclaimed.length,
          };
        },
      });
      wake.on(OUTBOX_TOPIC, service.wake);
      return service;
    },
  };
}
