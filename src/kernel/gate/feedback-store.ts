/** The statements by which a gate learns from the answers of its service. */
import { type Columns, toArrays, unnest } from "../data/batch.ts";
import type { Db, Queryable } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { PACE, seconds } from "./pace.ts";
import type { QuotaUnit } from "./store.ts";

interface SlowedDown {
  cut: boolean;
  is_cooling: boolean;
  /** By the database's clock. */
  at_ms: number;
}

/** However many requests report it, one cut in this time. */
const CUT_GUARD_SEC = 1;

// A floor above the declared rate must not raise it, and a header's limit below the floor stays in force.
const SLOW_DOWN = statement<SlowedDown>(
  "kernel.gate.slow_down",
  `with g as materialized (
     select * from kernel.rate_gate where key = $1 for no key update
   ), c as materialized (
     select clock_timestamp() as now from (select count(*) from g) locked
   ), cut as materialized (
     select g.key, c.now, g.cut_factor, least(1, g.floor_per_sec / g.rate_per_sec, l.cap) as least_share, r.risen,
            $2 and ${seconds("g.last_cut_at", "c.now")} >= ${CUT_GUARD_SEC} as due
     from g cross join c ${PACE}
   )
   update kernel.rate_gate t
   set share = case when cut.due then greatest(cut.least_share, cut.risen / cut.cut_factor) else t.share end,
       share_at = case when cut.due then cut.now else t.share_at end,
       last_cut_at = case when cut.due then cut.now else t.last_cut_at end,
       cooldown_until = greatest(t.cooldown_until, cut.now + make_interval(secs => $3))
   from cut where t.key = cut.key
   returning cut.due as cut, t.cooldown_until > cut.now as is_cooling, extract(epoch from cut.now)::float8 * 1000 as at_ms`,
);

/** Cuts the rate, if `cut`, and begins a cooldown or extends it. No row if there is no such gate. */
export async function slowDown(
  db: Db,
  key: string,
  { cut, cooldownSec }: { cut: boolean; cooldownSec: number },
): Promise<SlowedDown | undefined> {
  const [row] = await db.rows(SLOW_DOWN, [key, cut, cooldownSec]);
  return row;
}

const OPEN = statement<{ key: string }>(
  "kernel.gate.open",
  `update kernel.rate_gate set cooldown_until = 'epoch', share = 1, header_rate_per_sec = null, header_concurrency = null
   where key = $1 returning key`,
);

/** Forgets what the service has asked for. False if there is no such gate. */
export async function open(tx: Queryable, key: string): Promise<boolean> {
  return (await tx.rows(OPEN, [key])).length > 0;
}

export interface QuotaReport {
  unit: QuotaUnit;
  remaining: number;
  quota_limit: number | null;
  resets_in_sec: number | null;
}

const REPORT: Columns = { unit: "text", remaining: "float8", quota_limit: "float8", resets_in_sec: "float8" };
// Of several windows of one unit the report means the longest whose reset it names, as quotas of a day have one and limits
// of a second have none. A reset is never later than a whole window. A larger limit than the declared one does not raise it,
// because a budget that somebody declares may be a part of what the service sells. The gate is locked first, as by `acquire`.
const HEADERS = statement<{ found: boolean }>(
  "kernel.gate.headers",
  `with g as materialized (
     update kernel.rate_gate
     set header_rate_per_sec = coalesce($2, header_rate_per_sec), header_concurrency = coalesce($3, header_concurrency)
     where key = $1 returning key
   ), c as materialized (
     select key, clock_timestamp() as now from g
   ), slots as (
     insert into kernel.rate_slot (key, slot_no)
     select c.key, n from c cross join generate_series(0, $3 - 1) n on conflict do nothing
   ), reported as (
     update kernel.rate_quota q
     set used = greatest(0, coalesce(i.quota_limit, q.quota_limit) - i.remaining), 
         quota_limit = least(i.quota_limit, q.quota_limit),
         reset_at = coalesce(c.now + make_interval(secs => least(i.resets_in_sec, q.window_sec)), q.reset_at)
     from c cross join ${unnest(REPORT, "i", 4)}
     where q.key = c.key and q.unit = i.unit
       and q.window_sec = (select max(o.window_sec) from kernel.rate_quota o where o.key = q.key and o.unit = q.unit)
   )
   select true as found from g`,
);

/** Limits that the service has sent in headers override what is declared or counted here. */
export async function applyHeaders(
  db: Db,
  key: string,
  headers: { ratePerSec: number | null; concurrency: number | null; quotas: readonly QuotaReport[] },
): Promise<boolean> {
  const rows = await db.rows(HEADERS, [
    key,
    headers.ratePerSec,
    headers.concurrency,
    ...toArrays(REPORT, headers.quotas),
  ]);
  return rows.length > 0;
}
