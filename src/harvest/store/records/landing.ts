/** SQL for windows that land in the lake: when they may, the queue of those that should, and the records that they have. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { leaseOn, returning } from "../../../kernel/work/lease.ts";
import type { Snapshot } from "../../spec/snapshot.ts";
import { nextDueOf } from "../queue/next-due.ts";

/** A window of an endpoint, and a plan that has ended a slice of it. */
export interface LandingWindow {
  endpoint_id: number;
  op_time: string;
  table_name: string;
  window_from: Date;
  window_to: Date;
  plan_id: string;
}

const WINDOW = {
  endpoint_id: "int4",
  op_time: "text",
  table_name: "text",
  window_from: "timestamptz",
  window_to: "timestamptz",
  plan_id: "uuid",
};
const SLICES_OF_WINDOW = `s.endpoint_id = i.endpoint_id and s.window_from >= i.window_from and s.window_from < i.window_to
         and s.window_to <= i.window_to`;
/**
 * COMPLETE slices cover the whole window, and with it every slice that is open, FAILED or INCOMPLETE. Slices of parameters that
 * select records bring a part of it, so they neither complete nor delay it; their namespace has a colon (plan/request.ts). A
 * cancelled slice counts like one that was never planned.
 */
const COMPLETE_SLICES = `from harvest.ing_plan_slice s
     where ${SLICES_OF_WINDOW} and strpos(s.namespace_key, ':') = 0 and s.status_code = 'COMPLETE'`;
const WINDOW_IS_COMPLETE = `(
     select coalesce(range_agg(tstzrange(s.window_from, s.window_to)) @> tstzrange(i.window_from, i.window_to), false)
     ${COMPLETE_SLICES})`;
// A plan that has completed nothing of the window does not become the one that it lands for.
const COMPLETED_BY = `(
     select s.plan_id ${COMPLETE_SLICES} order by s.plan_id = i.plan_id desc, s.ended_at desc, s.slice_id desc limit 1)`;
// Of the plan that brings something now: a harvest does not wait because a backfill completed the window.
const PRIORITY = "(select p.priority from harvest.ing_plan p where p.plan_id = i.plan_id)";

// Of two slices that complete at the same time, neither would see the other as COMPLETE. With the lock the second one does.
const LOCK = statement(
  "harvest.landing.lock",
  `select pg_advisory_xact_lock(i.key)
   from (select hashtextextended('harvest.landing ' || endpoint_id || ' ' || op_time, 0) as key
         from unnest($1::int4[], $2::text[]) as u(endpoint_id, op_time) order by 1) i`,
);
// A window that lands now is landed again afterwards: its worker compares `wanted` with what it saw when it claimed.
const WANT = statement<{ endpoint_id: number; op_time: string }>(
  "harvest.landing.want",
  `insert into harvest.landing as t (endpoint_id, op_time, table_name, window_from, window_to, plan_id, priority, due_at)
   select i.endpoint_id, i.op_time, i.table_name, i.window_from, i.window_to, ${COMPLETED_BY}, ${PRIORITY}, now()
   from ${unnest(WINDOW, "i")} where ${WINDOW_IS_COMPLETE}
   on conflict (endpoint_id, op_time) do update
   set table_name = excluded.table_name, window_from = excluded.window_from, window_to = excluded.window_to,
       plan_id = excluded.plan_id, wanted = t.wanted + 1,
       priority = case when t.status_code in ('PENDING', 'LANDING') then least(t.priority, excluded.priority) else excluded.priority end,
       status_code = case when t.status_code = 'LANDING' then 'LANDING' else 'PENDING' end,
       due_at = case when t.status_code = 'LANDING' then null else now() end,
       attempt = case when t.status_code = 'LANDING' then t.attempt else 0 end,
       lost_count = case when t.status_code = 'LANDING' then t.lost_count else 0 end
   returning t.endpoint_id, t.op_time`,
);

/** Queues those of the windows that are complete. Call it in the transaction that ends a slice, after that. */
export async function wantLanding(tx: Queryable, windows: readonly LandingWindow[]): Promise<number> {
  if (windows.length === 0) return 0;
  const { endpoint_id, op_time } = WINDOW;
  await tx.rows(LOCK, toArrays({ endpoint_id, op_time }, windows));
  return (await tx.rows(WANT, toArrays(WINDOW, windows))).length;
}

interface ClaimedRow extends Omit<LandingWindow, "endpoint_id" | "op_time"> {
  wanted: string;
  attempt: number;
  content_hash: string | null;
}
export type ClaimedLanding = ClaimedRow & { endpoint_id: number; op_time: string; fence: string };

const afterwards = (done: string) => `status_code = case when t.wanted > i.seen then 'PENDING' else '${done}' end,
            due_at = case when t.wanted > i.seen then now() end`;

export const landingLease = leaseOn({
  name: "harvest.landing",
  table: "harvest.landing",
  key: { endpoint_id: "int4", op_time: "text" },
  state: { column: "status_code", ready: ["PENDING"], leased: "LANDING", dead: "FAILED" },
  dueAt: "due_at",
  orderBy: "t.priority, t.due_at, t.endpoint_id, t.op_time",
  levels: "t.priority",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count", error: "last_error" },
  onClaim: { due_at: "null" },
  onReturn: { due_at: "now()" },
  onDead: { due_at: "null" },
  returning: returning<ClaimedRow>(
    "t.table_name, t.window_from, t.window_to, t.plan_id, t.wanted::text, t.attempt, t.content_hash",
  ),
  outcomes: {
    land: {
      set: `${afterwards("LANDED")}, landed = i.seen, rows = i.rows, content_hash = i.content_hash, landed_at = now(),
            attempt = 0, lost_count = 0, last_error = null`,
      values: { seen: "int8", rows: "int8", content_hash: "text" },
    },
    retry_later: {
      set: `status_code = 'PENDING', due_at = now() + make_interval(secs => i.delay_seconds), attempt = t.attempt + 1,
            lost_count = 0, last_error = i.error`,
      values: { delay_seconds: "float8", error: "text" },
    },
    give_up: {
      set: `${afterwards("FAILED")}, attempt = t.attempt + 1, lost_count = 0, last_error = i.error`,
      values: { seen: "int8", error: "text" },
    },
  },
});

/** Milliseconds until a window is due; Infinity if none waits. */
export const nextLandingMs = nextDueOf("harvest.landing.next_due", {
  table: "harvest.landing",
  isQueued: "t.status_code = 'PENDING'",
  level: "priority",
  dueAt: "due_at",
});

export interface LandingPlan {
  plan_id: string;
  provenance_code: string;
  endpoint_name: string;
  snapshot: Snapshot;
}

const PLANS = statement<LandingPlan>(
  "harvest.landing.plans",
  `select p.plan_id, p.provenance_code, p.endpoint_name, s.snapshot
   from harvest.ing_plan p join harvest.snapshot s using (spec_fingerprint) where p.plan_id = any($1::uuid[])`,
);

export async function landingPlans(db: Queryable, planIds: readonly string[]): Promise<Map<string, LandingPlan>> {
  const rows = await db.rows(PLANS, [planIds]);
  return new Map(rows.map((row) => [row.plan_id, row]));
}

/** What slices of a window committed in one transaction. */
export interface Change {
  change_xid: string;
  slice_id: string;
  /** The ids that it brought; fewer records have changed. */
  ids: number;
}

// Of slices that have ended, and of their parts: those under way will land later, and until then the versions that they replace are still there.
// `offset 0` keeps the order of the joins, whatever the statistics say.
const CHANGES = statement<Change>(
  "harvest.landing.changes",
  `select b.change_xid::text, s.slice_id::text, sum(b.ids)::float8 as ids
   from (select $1::int4 as endpoint_id, $2::timestamptz as window_from, $3::timestamptz as window_to) i
   cross join lateral (select s.slice_id, s.is_parted from harvest.ing_plan_slice s where ${SLICES_OF_WINDOW} offset 0) w
   cross join lateral (select s.slice_id, s.plan_id from harvest.ing_plan_slice s
                       where s.slice_id = w.slice_id and s.ended_at is not null
                       union all
                       select p.slice_id, p.plan_id from harvest.ing_plan_slice p
                       where w.is_parted and p.root_slice_id = w.slice_id and p.ended_at is not null offset 0) s
   cross join lateral (select p.plan_month from harvest.ing_plan p where p.plan_id = s.plan_id offset 0) p
   cross join lateral (select b.change_xid, length(b.id_hashes) / 8 as ids from harvest.ing_task_run_batch b
                       where b.plan_month = p.plan_month and b.slice_id = s.slice_id offset 0) b
   group by b.change_xid, s.slice_id order by b.change_xid, s.slice_id`,
);

/** They do not change any more, so they can be read bit by bit. */
export async function changesOf(
  db: Queryable,
  { endpoint_id, window_from, window_to }: Pick<LandingWindow, "endpoint_id" | "window_from" | "window_to">,
): Promise<Change[]> {
  return db.rows(CHANGES, [endpoint_id, window_from, window_to]);
}

export interface LandingRecord {
  item_key: string;
  version: number;
  deleted: boolean;
  /** JSON text. */
  data: string | null;
}

// Of a record that the window has several versions of, the latest. One in `record` has no later version; a replaced one may have.
// While the tables are small, any index costs the same, and a plan is kept although they grow. So `offset 0` keeps the lookups,
// and an order that only the primary key has keeps the searches for later versions away from the indexes by change_xid.
const recordsIn = (columns: (alias: string) => string) => `
   from (select * from unnest($2::xid8[], $3::int8[]) as u(change_xid, slice_id) limit cardinality($2::xid8[])) c
   cross join lateral (
     select ${columns("r")} from harvest.record r
     where r.endpoint_id = $1 and r.change_xid = c.change_xid and r.slice_id = c.slice_id
     union all
     select ${columns("v")} from harvest.record_version v
     where v.endpoint_id = $1 and v.change_xid = c.change_xid and v.slice_id = c.slice_id
       and not exists (select from harvest.record_version n
                       where n.endpoint_id = $1 and n.item_key = v.item_key and n.version > v.version
                         and n.slice_id = any($4::int8[])
                       order by n.version limit 1 offset 0)
       and not exists (select from (select n.item_key, n.slice_id from harvest.record n
                                    where n.endpoint_id = $1 and n.item_key >= v.item_key
                                    order by n.item_key limit 1) n
                       where n.item_key = v.item_key and n.slice_id = any($4::int8[]) offset 0)
     offset 0
   ) x`;

const RECORDS = statement<LandingRecord>(
  "harvest.landing.records",
  `select x.* ${recordsIn((t) => `${t}.item_key, ${t}.version, ${t}.deleted, ${t}.data::text as data`)}`,
);
const SUM = statement<{ rows: number; sum: string }>(
  "harvest.landing.sum",
  `select count(*)::float8 as rows, coalesce(sum(hashtextextended(x.item_key, x.version)), 0)::text as sum
   ${recordsIn((t) => `${t}.item_key, ${t}.version`)}`,
);

const CHANGE = { change_xid: "xid8", slice_id: "int8" };

/** The records of some changes of a window. `slices` are all slices of the window. */
export async function recordsOf(
  db: Queryable,
  endpointId: number,
  changes: readonly Change[],
  slices: readonly string[],
): Promise<LandingRecord[]> {
  return db.rows(RECORDS, [endpointId, ...toArrays(CHANGE, changes), slices]);
}

/** Their number, and a sum that differs if a key or a version does. The sums of several calls can be added. */
export async function sumOf(
  db: Queryable,
  endpointId: number,
  changes: readonly Change[],
  slices: readonly string[],
): Promise<{ rows: number; sum: bigint }> {
  const [row] = await db.rows(SUM, [endpointId, ...toArrays(CHANGE, changes), slices]);
  return { rows: row?.rows ?? 0, sum: BigInt(row?.sum ?? 0) };
}

const HEALTH = statement<{
  waiting: number;
  failed: number;
  first: string | null;
  error: string | null;
  held_up: string | null;
}>(
  "harvest.landing.health",
  `select count(*) filter (where status_code = 'PENDING')::float8 as waiting,
          count(*) filter (where status_code = 'FAILED')::float8 as failed,
          min(table_name || ' ' || op_time) filter (where status_code = 'FAILED') as first,
          min(last_error) filter (where status_code = 'FAILED') as error,
          min(table_name || ' ' || op_time || ': ' || last_error) filter (where status_code = 'PENDING') as held_up
   from harvest.landing where status_code in ('PENDING', 'FAILED')`,
);

/** How many windows wait or have failed, with one of the latter, and one that waits after an error. */
export async function landingHealth(db: { read: Queryable["rows"] }) {
  const [row] = await db.read(HEALTH);
  return row ?? { waiting: 0, failed: 0, first: null, error: null, held_up: null };
}
