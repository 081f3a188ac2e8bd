/**
 * The statements of the rate gate. The rows of a request are locked in the order of their keys, and the clock is read after
 * the last lock, so grants on a key are in order of time whatever the number of processes. A statement that waits for a
 * lock gets the newest version of the locked row but the older state of all others; that is why quotas and slots are locked
 * rows too, and nothing is counted.
 */
import { type Columns, toArrays, unnest } from "../data/batch.ts";
import type { Db, Queryable } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { PACE, REQUEST_PACE, seconds } from "./pace.ts";

export type QuotaUnit = "requests" | "credits" | "usd_micros";
export type Refusal = "OVER_DEADLINE" | "COOLDOWN" | "QUOTA" | "SLOTS";

/** The gates of one request, each once. Amounts are for one request. */
interface AskedGate {
  key: string;
  cost: number;
  credits: number;
  usd_micros: number;
}

export interface AcquireValues {
  gates: readonly AskedGate[];
  permits: number;
  deadlineMs: number;
  /** How often the share that a quota holds back is taken off it: 0 for urgent work, 1, or 2 for what comes last. */
  heldBackTimes: number;
  sessionId: string;
  slotTtlSec: number;
}

export interface AcquireRow {
  /** The number of permits; 0 if the request is refused. */
  granted: number;
  wait_ms: number;
  gap_ms: number;
  reason: Refusal | null;
  refused_key: string | null;
  retry_ms: number | null;
  soft: boolean;
  rate_per_sec: number;
  answered_at_ms: number;
  fence: string;
  /** Of each gate with slots one for each permit, gate after gate. */
  slots: { key: string; slot_no: number }[];
}

const ASKED: Columns = { key: "text", cost: "float8", credits: "float8", usd_micros: "float8" };
/** When a slot will be free is not known. */
const SLOTS_RETRY_SEC = 1;
/** A chunk of permits covers at most this time, unless they are a burst. */
const CHUNK_SEC = 0.25;

/** Whole units are held back, so that a quota of a few is not lost to rounding; 1e-9 of one is rounding too. */
const AVAILABLE = "ceil(q.quota_limit * power(1 - q.held_back, $7) - 1e-9)";

// No row if a gate does not exist. `for no key update`, since a slot or quota that is declared refers to the gate.
const ACQUIRE = statement<AcquireRow>(
  "kernel.gate.acquire",
  `with asked as materialized (
     select * from ${unnest(ASKED, "a")}
   ), gate as materialized (
     select g.* from asked a join kernel.rate_gate g on g.key = a.key order by g.key for no key update of g
   ), clock as materialized (
     select clock_timestamp() as now from (select count(*) as found from gate) g where found = cardinality($1::text[])
   ), pace as materialized (
     select g.key, c.now, a.cost, l.lead, l.cooling, r.warm_from, p.spacing, p.start, p.gap, p.at_once,
            s.share * g.rate_per_sec as rate_per_sec
     from gate g join asked a on a.key = g.key cross join clock c ${PACE} ${REQUEST_PACE}
   ), held_quota as materialized (
     select q.* from kernel.rate_quota q where q.key = any (select p.key from pace p)
     order by q.key, q.unit, q.window_sec for update
   ), quota as materialized (
     select q.key, q.unit, q.window_sec, a.price, w.used, w.reset_at,
            ${seconds("c.now", "w.reset_at")} as resets_in,
            floor((${AVAILABLE} - w.used) / a.price) as fits,
            floor((q.quota_limit - w.used) / a.price) as fits_hard
     from held_quota q cross join clock c
     join (
       select key, u.unit, u.price from asked
       cross join lateral (values ('requests', 1), ('credits', credits), ('usd_micros', usd_micros)) u(unit, price)
     ) a on a.key = q.key and a.unit = q.unit and a.price > 0
     cross join lateral (
       select case when q.reset_at > c.now then q.used else 0 end as used,
              case when q.reset_at > c.now then q.reset_at else q.reset_at + make_interval(secs =>
                q.window_sec * (floor(${seconds("q.reset_at", "c.now")} / q.window_sec) + 1)) end as reset_at
     ) w
   ), slotted as materialized (
     select g.key, least(g.concurrency, g.header_concurrency) as slots from gate g
     where coalesce(g.concurrency, g.header_concurrency) is not null
   ), held_slot as materialized (
     select f.* from slotted g cross join clock c cross join lateral (
       select s.key, s.slot_no from kernel.rate_slot s
       where s.key = g.key and s.slot_no < g.slots
         and (s.session_id is null or s.expires_at <= c.now
              or not exists (select from kernel.session h where h.id = s.session_id and h.expires_at > now()))
       order by s.slot_no limit $5 for update of s
     ) f
   ), slot as materialized (
     select key, slot_no, row_number() over (partition by key order by slot_no) as place from held_slot
   ), refusal as materialized (
     select * from (
       select 'COOLDOWN' as reason, key, cooling as retry, false as soft from pace where cooling > 0
       union all
       select 'QUOTA', key, resets_in, fits_hard >= 1 from quota where fits < 1
       union all
       select 'SLOTS', key, ${SLOTS_RETRY_SEC}, false from slotted
       where not exists (select from slot where slot.key = slotted.key)
       union all
       select 'OVER_DEADLINE', key, start, false from pace where start * 1000 > $6
     ) r order by retry desc, key limit 1
   ), verdict as materialized (
     select start, gap, rate_per_sec, now, nextval('kernel.fence') as fence,
            case when exists (select from refusal) then 0
                 else least($5, greatest(1, at_once, floor(${CHUNK_SEC} / nullif(gap, 0))), (select min(fits) from quota),
                            (select min(free) from (select count(*) as free from slot group by key) s)) end::int as granted
     -- If every gate has a burst left, the permits are due together; otherwise one after the other.
     from (select max(start) as start, case when min(at_once) > 1 then 0 else max(gap) end as gap,
                  min(at_once) as at_once, min(rate_per_sec) as rate_per_sec, min(now) as now
           from pace having count(*) > 0) p
   ), taken as (
     update kernel.rate_gate t
     set warm_from = p.warm_from,
         tat = p.now + make_interval(secs => greatest(greatest(p.lead, 0) + v.granted * p.cost * p.spacing,
                                                      v.start + (v.granted - 1) * v.gap + p.cost * p.spacing))
     from pace p cross join verdict v where t.key = p.key and v.granted > 0
   ), debited as (
     update kernel.rate_quota t set used = q.used + v.granted * q.price, reset_at = q.reset_at
     from quota q cross join verdict v
     where t.key = q.key and t.unit = q.unit and t.window_sec = q.window_sec and v.granted > 0
   ), held as (
     update kernel.rate_slot t
     set session_id = $8, fence = v.fence,
         expires_at = c.now + make_interval(secs => $9 + v.start + v.granted * v.gap)
     from slot s cross join verdict v cross join clock c
     where t.key = s.key and t.slot_no = s.slot_no and s.place <= v.granted
   )
   select v.granted, extract(epoch from v.now)::float8 * 1000 as answered_at_ms, v.start * 1000 as wait_ms, v.gap * 1000 as gap_ms, v.rate_per_sec, v.fence::text,
          r.reason, r.key as refused_key, r.retry * 1000 as retry_ms,
          coalesce(r.soft, false) as soft,
          array(select jsonb_build_object('key', key, 'slot_no', slot_no) from slot
                where place <= v.granted order by key, slot_no) as slots
   from verdict v left join refusal r on true`,
);

export async function acquire(db: Queryable, values: AcquireValues): Promise<AcquireRow | undefined> {
  const { gates, permits, deadlineMs, heldBackTimes, sessionId, slotTtlSec } = values;
  const [row] = await db.rows(ACQUIRE, [
    ...toArrays(ASKED, gates),
    permits,
    deadlineMs,
    heldBackTimes,
    sessionId,
    slotTtlSec,
  ]);
  return row;
}

/** Keys come from definitions, so a limit that no installation should reach. */
export const GATES_MAX = 10_000;
// An undeclared gate that was not used for a day is as good as new.
const FORGET = statement(
  "kernel.gate.forget",
  `delete from kernel.rate_gate where key in (
     select key from kernel.rate_gate
     where declared_by is null and tat < now() - interval '1 day' and cooldown_until < now() for update skip locked)`,
);
const ADD = statement<{ key: string }>(
  "kernel.gate.add",
  `insert into kernel.rate_gate (key)
   select key from unnest($1::text[]) as a(key)
   where (select count(*) from kernel.rate_gate) < ${GATES_MAX} order by key
   on conflict (key) do nothing`,
);

/** Adds gates that nobody has declared, with the default limits. */
export async function addUndeclared(db: Queryable, keys: readonly string[]): Promise<void> {
  await db.rows(FORGET);
  await db.rows(ADD, [keys]);
}

// Returns whether each gate was full before, since only then can somebody wait for a slot.
const RELEASE = statement<{ key: string; was_full: boolean }>(
  "kernel.gate.release",
  `with freed as (
     update kernel.rate_slot t set session_id = null, fence = null, expires_at = null
     from unnest($1::text[], $2::int4[]) as i(key, slot_no)
     where t.key = i.key and t.slot_no = i.slot_no and t.fence = $3
     returning t.key, t.slot_no
   )
   select distinct key,
          not exists (select from kernel.rate_slot s where s.key = freed.key and s.session_id is null) as was_full
   from freed`,
);

export async function release(
  db: Db,
  slots: readonly { key: string; slot_no: number }[],
  fence: string,
): Promise<{ key: string; was_full: boolean }[]> {
  return db.rows(RELEASE, [slots.map(({ key }) => key), slots.map(({ slot_no }) => slot_no), fence]);
}

const TIME = statement<{ ms: number }>(
  "kernel.gate.time",
  "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
);

export async function databaseTimeMs(db: Db): Promise<number> {
  const [row] = await db.rows(TIME);
  if (!row) throw new Error("select returned no row");
  return row.ms;
}
