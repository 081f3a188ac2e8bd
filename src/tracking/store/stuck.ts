/** SQL of stuck shards: lists, counts, and the batches of a retry. A shard may be stuck in several stages; each counts. */

import type { Db, Queryable } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { statement } from "../../kernel/data/statement.ts";
import { QUEUE_STAGES, STAGES, STUCK_REASONS, type Stage, type StuckReason } from "../states.ts";
import { ANY_STATUS, type CellKey, columnPrefix, statusColumn, TABLE } from "../store.ts";

/** A shard that was started without a lease counts as stuck after this time. */
export const STARTED_LONG_SECONDS = 3_600;

export interface StuckCell extends CellKey {
  stage: Stage;
  reason: StuckReason;
  worker: string | null;
  leased_until: Date | null;
  lost_count: number;
  last_error: string | null;
  created_at: Date;
  updated_at: Date;
}

/** What is null does not narrow. */
export interface StuckFilter {
  reason: StuckReason | null;
  stage: Stage | null;
  /** The beginning of the file's name. */
  prefix: string;
}

/** The last cell of a page. */
export type StuckPlace = CellKey & { stage: Stage };

/** By the index of shards that were started without a lease. */
export const STARTED_LONG = `t.leased_until is null and 'started' in (${QUEUE_STAGES.map(statusColumn).join(", ")})
       and t.updated_at <= now() - interval '${STARTED_LONG_SECONDS} s'`;

/** The rows of a reason, by the condition of a partial index, and the status of the stage that is stuck. */
const ROWS: Record<StuckReason, { where: string; status: "failed" | "started" }> = {
  failed: { where: `'failed' in (${ANY_STATUS})`, status: "failed" },
  lease_expired: { where: "t.leased_until <= now()", status: "started" },
  started_long: { where: STARTED_LONG, status: "started" },
};

/** Event-ingest has no leases: how long a producer takes is its own affair. */
export const stagesOf = (reason: StuckReason): readonly Stage[] => (reason === "failed" ? STAGES : QUEUE_STAGES);

/** The stuck cells of one reason, as `t` and `c`. */
function cellsOf(reason: StuckReason, more: string): string {
  const stages = stagesOf(reason).map((stage) => `(${STAGES.indexOf(stage)}, '${stage}', t.${statusColumn(stage)})`);
  const { where, status } = ROWS[reason];
  return `select t.filename, t.shard, c.no, c.stage, '${reason}' as reason, t.worker, t.leased_until, t.lost_count,
            t.last_error, t.created_at, t.updated_at
     from ${TABLE} t cross join lateral (values ${stages.join(", ")}) c(no, stage, status)
     where ${where} and c.status = '${status}' and ($1::text is null or $1 = '${reason}')
       and ($2::text is null or c.stage = $2) and starts_with(t.filename, $3) ${more}`;
}

const LIST = statement<StuckCell>(
  "tracking.stuck.list",
  `select filename, shard, stage, reason, worker, leased_until, lost_count, last_error, created_at, updated_at
   from (${STUCK_REASONS.map(
     (reason) =>
       `(${cellsOf(
         reason,
         `and (t.filename, t.shard) >= ($4, $5) and (t.filename, t.shard, c.no) > ($4, $5, $6)
          order by t.filename, t.shard, c.no limit $7`,
       )})`,
   ).join(" union all ")}) s
   order by filename, shard, no limit $7`,
);

/** In the order of file, shard and stage. */
export function listStuck(
  db: Db,
  { reason, stage, prefix }: StuckFilter,
  { after, limit }: { after: StuckPlace | undefined; limit: number },
): Promise<StuckCell[]> {
  const place = after ? [after.filename, after.shard, STAGES.indexOf(after.stage)] : ["", -1, -1];
  return db.read(LIST, [reason, stage, prefix, ...place, limit]);
}

// Up to the next millisecond, which is as exact as the time goes out and comes back.
const NOW = statement<{ now: Date }>(
  "tracking.stuck.now",
  "select date_trunc('milliseconds', now()) + interval '1 ms' as now",
);

export async function databaseTime(db: Queryable): Promise<Date> {
  const [row] = await db.rows(NOW);
  if (!row) throw new Error("the query of the time returned no row");
  return row.now;
}

/** Which stuck shards are counted or retried; in all stages unless one is given. */
export interface RetryFilter {
  prefix?: string;
  filename?: string;
}

export interface RetriedShard extends CellKey {
  stages: Stage[];
}

const CONDITIONS = {
  prefix: (parameter: string) => `starts_with(t.filename, ${parameter})`,
  filename: (parameter: string) => `t.filename = ${parameter}`,
};

function stuckStatements(reason: StuckReason, stage: Stage | undefined) {
  const name = `tracking.stuck.${reason}.${stage ? columnPrefix(stage) : "any"}`;
  const { where, status } = ROWS[reason];
  const stages = stage ? [stage] : stagesOf(reason);
  const isStuck = (one: Stage) => `t.${statusColumn(one)} = '${status}'`;
  const stuck = `${where} and (${stages.map(isStuck).join(" or ")})`;
  // What becomes stuck again after `until` is left out, so that the loop of the caller ends.
  const before = (until: string) => `t.updated_at <= ${until}::timestamptz`;
  return {
    count: filtered<RetryFilter, { count: number }>({
      name: `${name}.count`,
      conditions: CONDITIONS,
      text: (filter, parameter) =>
        `select coalesce(sum(${stages.map((one) => `(${isStuck(one)})::int`).join(" + ")}), 0)::int as count
         from ${TABLE} t where ${stuck} and ${filter} and ${before(parameter(0))}`,
    }),
    // A shard is retried in all its stages at once: the time of its change leaves it out from then on. Each batch begins
    // behind the one before, past the dead entries that it has left in the index.
    retry: filtered<RetryFilter, RetriedShard>({
      name: `${name}.retry`,
      conditions: CONDITIONS,
      text: (filter, parameter) =>
        `with picked as materialized (
           select t.filename, t.shard,
             array_remove(array[${stages.map((one) => `case when ${isStuck(one)} then '${one}' end`).join(", ")}], null) as stages
           from ${TABLE} t
           where ${stuck} and ${filter} and ${before(parameter(0))}
             and (t.filename, t.shard) > (${parameter(1)}, ${parameter(2)})
           order by t.filename, t.shard limit ${parameter(3)} for update skip locked
         ), moved as (
           update ${TABLE} t
           set ${stages.map((one) => againIn(one, isStuck(one))).join(", ")}, lost_count = 0, last_error = null, updated_at = now()
               ${reason === "failed" ? "" : ", worker = null, leased_until = null"}
           from picked p where t.filename = p.filename and t.shard = p.shard
         ) select filename, shard, stages from picked order by filename, shard`,
    }),
  };
}

/** The assignments of a retry in one stage. */
function againIn(stage: Stage, isStuck: string): string {
  const prefix = columnPrefix(stage);
  const status = (to: string) => `${prefix}_status = case when ${isStuck} then '${to}' else t.${prefix}_status end`;
  if (stage === "event-ingest") return status("started");
  return `${status("new")}, ${prefix}_fence = case when not ${isStuck} then t.${prefix}_fence end`;
}

const BY_STAGE = new Map(
  STUCK_REASONS.flatMap((reason) =>
    [undefined, ...stagesOf(reason)].map((stage) => [`${reason}/${stage}`, stuckStatements(reason, stage)] as const),
  ),
);

/** A reason, and a stage that can be stuck for it. */
export interface StuckKind {
  reason: StuckReason;
  stage: Stage | undefined;
}

function statementsOf({ reason, stage }: StuckKind) {
  const statements = BY_STAGE.get(`${reason}/${stage}`);
  if (!statements) throw new Error(`no statements for ${reason}/${stage}`);
  return statements;
}

export async function countStuck(db: Db, kind: StuckKind, filter: RetryFilter, until: Date): Promise<number> {
  const { statement: count, values } = statementsOf(kind).count(filter);
  return (await db.read(count, [...values, until]))[0]?.count ?? 0;
}

/** Returns one batch of shards to their queues, in the order of file and shard. */
export function retryStuck(
  db: Queryable,
  kind: StuckKind,
  filter: RetryFilter,
  { until, after, limit }: { until: Date; after: CellKey | undefined; limit: number },
): Promise<RetriedShard[]> {
  const { statement: retry, values } = statementsOf(kind).retry(filter);
  return db.rows(retry, [...values, until, after?.filename ?? "", after?.shard ?? -1, limit]);
}
