/** SQL for raw events: inserted once by their fingerprint, stored word for word, and read again to be applied. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Source } from "../extract/index.ts";
import type { EventKind } from "../ingest/event.ts";

export const APPLY_STATES = ["APPLIED", "BUFFERED", "SKIPPED", "DEAD"] as const;
export type ApplyState = (typeof APPLY_STATES)[number];

export interface NewEvent {
  key: string;
  event_time: string;
  event_type: string | null;
  run_uuid: string | null;
  job_name: string | null;
  job_namespace: string | null;
  producer: string | null;
  kind: EventKind;
  source: Source;
  baseline: boolean;
  apply_state: ApplyState;
  assertion: string | null;
  /** The exact text. */
  body: Buffer;
}
const KEY = { key: "uuid" };
const VALUES = {
  event_time: "timestamptz",
  event_type: "text",
  run_uuid: "uuid",
  job_name: "text",
  job_namespace: "text",
  producer: "text",
  kind: "text",
  source: "text",
  baseline: "bool",
  apply_state: "text",
  assertion: "uuid",
  starts: "int4",
  length: "int4",
};
// A key that another transaction is about to write is waited for, in the order of keys. The bodies travel as one run of bytes
// that each event has its part of: as an array of texts every quotation mark in them would be escaped here and unescaped there,
// which took longer than the insert.
const TAKE = statement<{ key: string; event_id: string }>(
  "lineage.take_events",
  `with items as (select * from ${itemsByKey(KEY, VALUES)}), fresh as (
     insert into lineage.event_key (tenant_id, key, event_id)
     select $15::int8, i.key, nextval('lineage.lineage_events_id_seq') from items i
     on conflict do nothing returning key, event_id
   ), kept as (
     insert into lineage.lineage_events (id, tenant_id, tenant_code, tenant_name, event_time, event_type, run_uuid, job_name,
       job_namespace, producer, _event_type, event, source, baseline, apply_state, assertion)
     overriding system value
     select f.event_id, $15::int8, $16, $17, i.event_time, i.event_type, i.run_uuid, i.job_name, i.job_namespace,
            i.producer, i.kind, convert_from(substring($18::bytea from i.starts for i.length), 'UTF8')::json,
            i.source, i.baseline, i.apply_state, i.assertion
     from fresh f join items i using (key)
   )
   select key, event_id::text from fresh`,
);
/** The ids of those that were not known, by key. */
export async function takeEvents(
  tx: Queryable,
  tenant: { id: string; code: string; name: string },
  events: readonly NewEvent[],
): Promise<Map<string, string>> {
  let starts = 1; // As SQL counts.
  const items = events.map((event) => {
    const item = { ...event, starts, length: event.body.length };
    starts += event.body.length;
    return item;
  });
  const bodies = Buffer.concat(events.map(({ body }) => body));
  const values = [...toArrays({ ...KEY, ...VALUES }, items), tenant.id, tenant.code, tenant.name, bodies];
  return new Map((await tx.rows(TAKE, values)).map(({ key, event_id }) => [key, event_id]));
}

export interface TakenBefore {
  key: string;
  event_id: string;
  /** Null where retention has taken the event. */
  apply_state: ApplyState | null;
}
const TAKEN = statement<TakenBefore>(
  "lineage.taken_events",
  `select k.key, k.event_id::text, e.apply_state
   from lineage.event_key k left join lineage.lineage_events e on e.id = k.event_id
   where k.tenant_id = $1 and k.key = any($2::uuid[])`,
);
export const takenEvents = (db: Queryable, tenantId: string, keys: readonly string[]): Promise<TakenBefore[]> =>
  db.rows(TAKEN, [tenantId, keys]);

const OUTCOME = { id: "int8", apply_state: "text", apply_error: "text", assertion: "uuid" };
const SETTLE = statement(
  "lineage.settle_events",
  `update lineage.lineage_events e set apply_state = i.apply_state, apply_error = i.apply_error, assertion = i.assertion
   from ${itemsByKey({ id: "int8" }, { apply_state: "text", apply_error: "text", assertion: "uuid" })}
   where e.tenant_id = $5 and e.id = i.id`,
);
export async function settleEvents(
  tx: Queryable,
  tenantId: string,
  outcomes: readonly { id: string; apply_state: ApplyState; apply_error: string | null; assertion: string | null }[],
): Promise<void> {
  if (outcomes.length > 0) await tx.rows(SETTLE, [...toArrays(OUTCOME, outcomes), tenantId]);
}

export interface StoredEvent {
  id: string;
  /** The exact text. */
  event: string;
  /** Microseconds. Not always the time in the text: an event from the future counts from its arrival. */
  at: string;
  source: Source;
  baseline: boolean;
}
const STORED = "id::text, event::text, (extract(epoch from event_time) * 1000000)::int8::text as at, source, baseline";
// In the order of time, so that what is replayed comes in the order in which it happened.
const BUFFERED = statement<StoredEvent>(
  "lineage.buffered_events",
  `select ${STORED} from lineage.lineage_events e
   where tenant_id = $1 and apply_state = 'BUFFERED' order by event_time, e.id limit $2`,
);
export const bufferedEvents = (tx: Queryable, tenantId: string, limit: number): Promise<StoredEvent[]> =>
  tx.rows(BUFFERED, [tenantId, limit]);

const SKIP = statement<{ id: string }>(
  "lineage.skip_events",
  `with old as (
     select id from lineage.lineage_events where tenant_id = $1 and apply_state = 'BUFFERED' and event_time < $2
     order by event_time, id limit $3
   )
   update lineage.lineage_events e set apply_state = 'SKIPPED' from old where e.tenant_id = $1 and e.id = old.id
   returning e.id::text`,
);
/** Those from before a time, in so many steps; how many. */
export async function skipEvents(tx: Queryable, tenantId: string, before: string, limit: number): Promise<number> {
  return (await tx.rows(SKIP, [tenantId, before, limit])).length;
}

const DEAD = statement<StoredEvent>(
  "lineage.dead_event",
  `select ${STORED} from lineage.lineage_events where tenant_id = $1 and id = $2 and apply_state = 'DEAD'`,
);
export async function deadEvent(tx: Queryable, tenantId: string, id: string): Promise<StoredEvent | undefined> {
  return (await tx.rows(DEAD, [tenantId, id]))[0];
}
