/** SQL for lists of stored events: newest first, by keyset, whatever the length of history. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface EventRow {
  id: string;
  /** Microseconds since 1970: a `Date` would lose the last three digits, and pages would overlap. */
  at: string;
  kind: string;
  event_type: string | null;
  run_uuid: string | null;
  job_namespace: string | null;
  job_name: string | null;
  producer: string | null;
  source: string;
  baseline: boolean;
  apply_state: string;
  apply_error: string | null;
  created_at: Date;
}
const EVENT = `e.id::text, (extract(epoch from e.event_time) * 1000000)::int8::text as at, e._event_type as kind, e.event_type,
  e.run_uuid, e.job_namespace, e.job_name, e.producer, e.source, e.baseline, e.apply_state, e.apply_error, e.created_at`;

const timeOf = (parameter: string) => `timestamptz 'epoch' + ${parameter}::int8 * interval '1 microsecond'`;

export interface EventFilter {
  run: string | null;
  job: { namespace: string; name: string } | null;
  kind: string | null;
  eventType: string | null;
  state: string | null;
  from: string | null;
  to: string | null;
  /** Comes after this one, in the order from the newest to the oldest. */
  after: { at: string; id: string } | null;
}
export interface Scanned {
  rows: EventRow[];
  /** The oldest that was looked at, if there may be more behind it. */
  end: { at: string; id: string } | null;
}

// An index leads to the newest of what it knows, and the rest is looked through, up to a bound: a page may then hold fewer
// than were asked for, or none, and still not be the last. Parameters are constants to the planner in the read-only pool,
// so conditions that are not asked for are not there for it either.
const LIST = statement<(EventRow | { id: null }) & { scanned: number; end_at: string; end_id: string }>(
  "lineage.read.events",
  `with scanned as materialized (
     select ${EVENT} from lineage.lineage_events e
     where e.tenant_id = $1
       and ($2::uuid is null or e.run_uuid = $2)
       and ($3::text is null or (left(e.job_namespace, 128) = left($3, 128) and left(e.job_name, 128) = left($4, 128)
            and e.job_namespace = $3 and e.job_name = $4))
       and ($5::text is null or e._event_type = $5)
       and ($6::text is null or (e.apply_state in ('BUFFERED', 'DEAD') and e.apply_state = $6))
       and ($7::timestamptz is null or e.event_time >= $7)
       and ($8::timestamptz is null or e.event_time < $8)
       and ($9::int8 is null or (e.event_time <= ${timeOf("$9")} and (e.event_time < ${timeOf("$9")} or e.id < $10::int8)))
     order by e.event_time desc, e.id desc limit $13
   ), last as (
     select count(*)::int as scanned, (array_agg(s.at))[count(*)] as end_at, (array_agg(s.id))[count(*)] as end_id from scanned s
   )
   select s.*, l.scanned, l.end_at, l.end_id from last l left join (
     select * from scanned s where ($11::text is null or s.event_type = $11) and ($12::text is null or s.apply_state = $12)
     order by s.at::int8 desc, s.id::int8 desc limit $14
   ) s on true`,
);
const SCANNED_MAX = 20_000;
const INDEXED_STATES = new Set(["BUFFERED", "DEAD"]);

/** Up to `limit` events, and where to go on. */
export async function listEvents(db: Db, tenantId: string, filter: EventFilter, limit: number): Promise<Scanned> {
  const { run, job, kind, eventType, state, from, to, after } = filter;
  const hasIndex = state !== null && INDEXED_STATES.has(state);
  const isScan = eventType !== null || (state !== null && !hasIndex);
  const scanMax = isScan ? SCANNED_MAX : limit + 1;
  const rows = await db.read(LIST, [
    tenantId,
    run,
    job?.namespace ?? null,
    job?.name ?? null,
    kind,
    hasIndex ? state : null,
    from,
    to,
    after?.at ?? null,
    after?.id ?? null,
    eventType,
    state,
    scanMax,
    limit + 1,
  ]);
  const found = rows.filter((row): row is (typeof rows)[number] & EventRow => row.id !== null);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  if (found.length > limit && last) return { rows: items, end: { at: last.at, id: last.id } };
  const [{ scanned, end_at, end_id } = { scanned: 0, end_at: "0", end_id: "0" }] = rows;
  return { rows: items, end: isScan && scanned === scanMax ? { at: end_at, id: end_id } : null };
}

// What names an asset is found by way of assertions, of which all events of a job have the same few. Of a hub's many those
// with the last events count: a page can miss one only beyond 20,000 of them.
const NAMING = statement<EventRow>(
  "lineage.read.events_naming",
  `with assertions as materialized (
     select t.key, t.last_at from (
       select distinct m.assertion from lineage.mention m where m.tenant_id = $1 and m.key = any($2::uuid[]) limit 20000
     ) m join lineage.assertion t on t.tenant_id = $1 and t.key = m.assertion
     order by t.last_at desc, t.key limit 200
   )
   select e.* from assertions t cross join lateral (
     select ${EVENT} from lineage.lineage_events e
     where e.tenant_id = $1 and e.assertion = t.key
       and ($3::int8 is null or (e.event_time <= ${timeOf("$3")} and (e.event_time < ${timeOf("$3")} or e.id < $4::int8)))
       and ($5::timestamptz is null or e.event_time >= $5) and ($6::timestamptz is null or e.event_time < $6)
     order by e.event_time desc, e.id desc limit $7
   ) e
   order by e.at::int8 desc, e.id::int8 desc limit $7`,
);
export function listEventsNaming(
  db: Db,
  tenantId: string,
  keys: readonly string[],
  { after, from, to }: Pick<EventFilter, "after" | "from" | "to">,
  limit: number,
): Promise<EventRow[]> {
  return db.read(NAMING, [tenantId, keys, after?.at ?? null, after?.id ?? null, from, to, limit]);
}

const ONE = statement<EventRow & { body: string }>(
  "lineage.read.event",
  `select ${EVENT}, e.event::text as body from lineage.lineage_events e where e.tenant_id = $1 and e.id = $2`,
);
export const readEvent = async (db: Db, tenantId: string, id: string) => (await db.read(ONE, [tenantId, id]))[0];
