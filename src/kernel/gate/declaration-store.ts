/** The statements that write and read the declarations of gates. */
import { type Columns, toArrays, unnest } from "../data/batch.ts";
import type { Queryable } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { GateDeclaration } from "./declaration.ts";
import { PACE, seconds } from "./pace.ts";
import { GATES_MAX, type QuotaUnit } from "./store.ts";

const DECLARED: Columns = {
  key: "text",
  rate_per_sec: "float8",
  burst: "int4",
  concurrency: "int4",
  warmup_sec: "float8",
  floor_per_sec: "float8",
  cut_factor: "float8",
  rise_after_sec: "float8",
};
const NAMES = Object.keys(DECLARED);
const LIMITS = NAMES.slice(1);
const QUOTA: Columns = { key: "text", unit: "text", window_sec: "float8", quota_limit: "float8", held_back: "float8" };

/** Whether a row yields to a source whose definition is of the time $2. */
const YIELDS = "(g.declared_by is null or (g.declared_by = 'source' and g.declared_at <= $2))";
// A declaration that is already in force is not written again, so that repeating it takes no lock.
const DECLARE = statement<{ key: string }>(
  "kernel.gate.declare",
  `insert into kernel.rate_gate as g (declared_by, declared_at, ${NAMES.join(", ")})
   select $1::text, coalesce($2::timestamptz, now()), d.* from ${unnest(DECLARED, "d", 3)}
   where not exists (
     select from kernel.rate_gate g where g.key = d.key and g.declared_by = $1 and ($1 = 'operator' or g.declared_at >= $2)
       and (${LIMITS.map((name) => `g.${name}`).join(", ")}) is not distinct from (${LIMITS.map((name) => `d.${name}`).join(", ")}))
   order by d.key
   on conflict (key) do update
   set declared_by = excluded.declared_by, declared_at = excluded.declared_at,
       ${LIMITS.map((name) => `${name} = excluded.${name}`).join(", ")}
   where $1 = 'operator' or ${YIELDS}
   returning g.key`,
);
// The gates whose declaration is that of the source now. They stay so while their quotas are written, in a transaction.
const ACCEPTED = statement<{ key: string }>(
  "kernel.gate.accepted",
  `select g.key from kernel.rate_gate g where g.key = any($1) and g.declared_by = 'source' and g.declared_at = $2
   order by g.key for no key update`,
);
const DECLARE_SLOTS = statement(
  "kernel.gate.declare_slots",
  `insert into kernel.rate_slot (key, slot_no)
   select i.key, n from unnest($1::text[], $2::int4[]) as i(key, concurrency) cross join generate_series(0, i.concurrency - 1) n
   where not exists (select from kernel.rate_slot s where s.key = i.key and s.slot_no = n)
   order by i.key, n on conflict do nothing`,
);
const DROP_QUOTAS = statement<{ key: string }>(
  "kernel.gate.drop_quotas",
  `delete from kernel.rate_quota q using unnest($1::text[]) as k(key)
   where q.key = k.key and not exists (
     select from ${unnest(QUOTA, "i", 2)} where i.key = q.key and i.unit = q.unit and i.window_sec = q.window_sec)
   returning q.key`,
);
// What is used stays counted: a changed limit changes what remains.
const DECLARE_QUOTAS = statement<{ key: string }>(
  "kernel.gate.declare_quotas",
  `insert into kernel.rate_quota (key, unit, window_sec, quota_limit, held_back, reset_at)
   select i.*, to_timestamp((floor(extract(epoch from clock_timestamp())::float8 / i.window_sec) + 1) * i.window_sec)
   from ${unnest(QUOTA, "i")}
   where not exists (
     select from kernel.rate_quota q where q.key = i.key and q.unit = i.unit and q.window_sec = i.window_sec
       and q.quota_limit = i.quota_limit and q.held_back = i.held_back)
   order by i.key, i.unit, i.window_sec
   on conflict (key, unit, window_sec) do update set quota_limit = excluded.quota_limit, held_back = excluded.held_back
   returning key`,
);
const COUNT = statement<{ n: number }>(
  "kernel.gate.count",
  "select count(*)::int as n from kernel.rate_gate where declared_by is not null and not key = any($1)",
);

/**
 * Answers the gates that were changed. Writes nothing and answers undefined if there would be too many gates. One statement after the other, since `tx` may be a pool.
 * With `asOf` a source declares, by a definition of that time; without it an operator.
 */
export async function declare(
  tx: Queryable,
  gates: readonly GateDeclaration[],
  asOf?: Date,
): Promise<string[] | undefined> {
  const rows = gates.map((gate) => ({
    key: gate.key,
    rate_per_sec: gate.ratePerSec,
    burst: gate.burst ?? 1,
    concurrency: gate.concurrency ?? null,
    warmup_sec: gate.warmupSec ?? 0,
    floor_per_sec: gate.floorPerSec ?? 0.1,
    cut_factor: gate.cutFactor ?? 2,
    rise_after_sec: gate.riseAfterSec ?? 10,
  }));
  const quotas = gates.flatMap(({ key, quotas: declared = [] }) =>
    declared.map(({ unit, windowSec, limit, heldBack = 0.1 }) => ({
      key,
      unit,
      window_sec: windowSec,
      quota_limit: limit,
      held_back: heldBack,
    })),
  );
  const keys = rows.map(({ key }) => key);
  const [count] = await tx.rows(COUNT, [keys]);
  if ((count?.n ?? 0) + gates.length > GATES_MAX) return undefined;
  const written = await tx.rows(DECLARE, [asOf ? "source" : "operator", asOf ?? null, ...toArrays(DECLARED, rows)]);
  const accepted = asOf ? (await tx.rows(ACCEPTED, [keys, asOf])).map(({ key }) => key) : keys;
  const slotted = rows.filter(({ key, concurrency }) => concurrency !== null && accepted.includes(key));
  const counted = quotas.filter(({ key }) => accepted.includes(key));
  await tx.rows(DECLARE_SLOTS, [slotted.map(({ key }) => key), slotted.map(({ concurrency }) => concurrency)]);
  const dropped = await tx.rows(DROP_QUOTAS, [accepted, ...toArrays(QUOTA, counted)]);
  const added = await tx.rows(DECLARE_QUOTAS, toArrays(QUOTA, counted));
  return [...new Set([...written, ...dropped, ...added].map(({ key }) => key))];
}

// The limits are those of an undeclared gate again; what the service has said and what is counted stays.
const UNDECLARE = statement<{ key: string }>(
  "kernel.gate.undeclare",
  `with quotas as (delete from kernel.rate_quota where key = $1)
   update kernel.rate_gate set declared_by = null, declared_at = null, ${LIMITS.map((name) => `${name} = default`).join(", ")}
   where key = $1 and declared_by is not null returning key`,
);

/** False if no such gate is declared. */
export async function undeclare(tx: Queryable, key: string): Promise<boolean> {
  return (await tx.rows(UNDECLARE, [key])).length > 0;
}

export interface GateRow {
  key: string;
  /** Null if nobody has. */
  declared_by: "operator" | "source" | null;
  rate_per_sec: number;
  burst: number;
  concurrency: number | null;
  warmup_sec: number;
  floor_per_sec: number;
  cut_factor: number;
  rise_after_sec: number;
  header_rate_per_sec: number | null;
  header_concurrency: number | null;
  current_rate_per_sec: number;
  last_cut_at: Date | null;
  cooldown_until: Date | null;
  backlog_ms: number;
  slots_taken: number;
  quotas: {
    unit: QuotaUnit;
    windowSec: number;
    limit: number;
    heldBack: number;
    used: number;
    remaining: number;
    resetAt: Date;
  }[];
}

// Read-only, so a quota whose window is over is shown as the next request will find it.
const DESCRIBE = statement<GateRow>(
  "kernel.gate.describe",
  `select g.key, g.declared_by, ${LIMITS.map((name) => `g.${name}`).join(", ")}, g.header_rate_per_sec, g.header_concurrency,
          s.share * g.rate_per_sec as current_rate_per_sec, nullif(g.last_cut_at, 'epoch') as last_cut_at,
          case when l.cooling > 0 then g.cooldown_until end as cooldown_until, greatest(0, l.lead) * 1000 as backlog_ms,
          (select count(*)::int from kernel.rate_slot t join kernel.session h on h.id = t.session_id
           where t.key = g.key and t.expires_at > c.now and h.expires_at > c.now) as slots_taken,
          array(
            select jsonb_build_object('unit', q.unit, 'windowSec', q.window_sec, 'limit', q.quota_limit,
                     'heldBack', q.held_back, 'used', u.used, 'remaining', greatest(0, q.quota_limit - u.used),
                     'resetAt', to_jsonb(case when q.reset_at > c.now then q.reset_at else q.reset_at + make_interval(secs =>
                       q.window_sec * (floor(${seconds("q.reset_at", "c.now")} / q.window_sec) + 1)) end))
            from kernel.rate_quota q
            cross join lateral (select case when q.reset_at > c.now then q.used else 0 end as used) u
            where q.key = g.key order by q.unit, q.window_sec) as quotas
   from kernel.rate_gate g cross join (select clock_timestamp() as now offset 0) c ${PACE}
   where $1::text[] is null or g.key = any($1)
   order by g.key limit ${GATES_MAX}`,
);

export async function describe(db: Queryable, keys: readonly string[] | null): Promise<GateRow[]> {
  const rows = await db.rows(DESCRIBE, [keys]);
  for (const quota of rows.flatMap(({ quotas }) => quotas)) quota.resetAt = new Date(quota.resetAt); // JSON has no times.
  return rows;
}
