/** SQL of the grid of files by shards, of the shards of one file, and of the queues of all stages. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import { QUEUE_STAGES, type QueueStage, STAGES, STATUSES, type Stage, type Status, stageBefore } from "../states.ts";
import {
  ANY_STATUS,
  columnPrefix,
  type FileFilter,
  fileCondition,
  oneRow,
  type ShardStatuses,
  statusColumn,
  TABLE,
} from "../store.ts";
import { STARTED_LONG_SECONDS } from "./stuck.ts";

// A slot of the tally has its own numbers, in order: the first of each slot are the first of all.
const COLUMNS = statement<{ shard: number }>(
  "tracking.grid.columns",
  `select distinct o.shard from generate_series(0, 15) s(slot), lateral (
     select shard from tracking.shard_tally y where y.slot = s.slot and y.shard >= $1 order by shard limit $2
   ) o order by 1 limit $2`,
);

/** Numbers of shards that some file has, from a number on. */
export async function shardNumbers(db: Db, from: number, limit: number): Promise<number[]> {
  return (await db.read(COLUMNS, [from, limit])).map(({ shard }) => shard);
}

export interface GridRow {
  filename: string;
  created_at: Date;
  /** The shards in the window, and the code of each. */
  shards: number[] | null;
  codes: string | null;
}

/** Where a shard is, as one character: the first stage that failed, else the first that is not done. */
const CODE = `case ${STAGES.map((stage, at) => `when ${statusColumn(stage)} = 'failed' then '${"ABCD"[at]}'`).join(" ")}
  ${STAGES.map((stage, at) => `when ${statusColumn(stage)} = 'started' then '${at + 1}' when ${statusColumn(stage)} = 'new' then '${"abcd"[at]}'`).join(" ")}
  else '*' end`;

/** When the file `$2` was registered, for the page behind it; without one, the first page. */
const PLACE = `(case when $2::text is null then 'infinity'::timestamptz
  else (select created_at from tracking.pipeline_file where filename = $2) end)`;

const gridBy = new Map(
  [undefined, ...STAGES].flatMap((stage) =>
    [undefined, ...STATUSES].map((status) => {
      const one = statement<GridRow>(
        `tracking.grid.${stage ?? "any"}.${status ?? "any"}`,
        `select p.filename, p.created_at, w.shards, w.codes
         from (
           select f.filename, f.created_at from tracking.pipeline_file f
           where starts_with(f.filename, $1) and ${fileCondition({ stage, status })}
             and f.created_at <= ${PLACE} and (f.created_at < ${PLACE} or f.filename > $2)
           order by f.created_at desc, f.filename limit $3
         ) p, lateral (
           select array_agg(t.shard order by t.shard) as shards, string_agg(${CODE}, '' order by t.shard) as codes
           from ${TABLE} t where t.filename = p.filename and t.shard between $4 and $5
         ) w
         order by p.created_at desc, p.filename`,
      );
      return [`${stage}/${status}`, one] as const;
    }),
  ),
);

export interface GridWindow {
  /** The last file of the page before. */
  after: string | null;
  limit: number;
  /** The shards in view, from the first to the last. */
  from: number;
  to: number;
}

/** Newest files first. */
export function gridRows(db: Db, { stage, status, prefix }: FileFilter, window: GridWindow): Promise<GridRow[]> {
  const one = gridBy.get(`${stage}/${status}`);
  if (!one) throw new Error(`no statement for ${stage}/${status}`);
  const { after, limit, from, to } = window;
  return db.read(one, [prefix, after, limit, from, to]);
}

const SHARDS = statement<ShardStatuses & { created_at: Date }>(
  "tracking.shards_from",
  `select shard, ${ANY_STATUS}, created_at, updated_at, worker, leased_until, lost_count, last_error
   from ${TABLE} where filename = $1 and shard >= $2 and ($3::text is null or $3 in (${ANY_STATUS}))
   order by shard limit $4`,
);

/** Shards of a file in their order, from a number on; with a status, those that have it in some stage. */
export function shardsFrom(
  db: Db,
  filename: string,
  { from, status, limit }: { from: number; status: Status | null; limit: number },
) {
  return db.read(SHARDS, [filename, from, status, limit]);
}

interface QueueRow {
  by_status: (Record<`${string}_status`, Status> & { n: number })[];
  oldest: Record<QueueStage, string | null>;
  held: Record<`${QueueStage}_${"leased" | "expired" | "long"}`, number>;
}

const count = (stage: QueueStage, name: string, condition: string) =>
  `'${stage}_${name}', count(*) filter (where ${statusColumn(stage)} = 'started' and ${condition})`;
// One statement, so that its parts have the same snapshot. Only work under way is counted, by its partial indexes.
const QUEUES = statement<QueueRow>(
  "tracking.queues",
  `select
     (select coalesce(json_agg(t), '[]') from (
        select ${ANY_STATUS}, sum(n) as n from tracking.status_tally group by ${ANY_STATUS} having sum(n) <> 0
      ) t) as by_status,
     json_build_object(${QUEUE_STAGES.map(
       (stage) => `'${stage}', (select min(created_at) from ${TABLE}
        where ${statusColumn(stageBefore(stage))} = 'done' and ${statusColumn(stage)} = 'new')`,
     ).join(", ")}) as oldest,
     (select json_build_object(${QUEUE_STAGES.flatMap((stage) => [
       count(stage, "leased", "leased_until is not null"),
       count(stage, "expired", "leased_until <= now()"),
     ]).join(", ")}) from ${TABLE} where leased_until is not null)::jsonb
     || (select json_build_object(${QUEUE_STAGES.map((stage) => count(stage, "long", "true")).join(", ")})
      from ${TABLE} where leased_until is null and 'started' in (${QUEUE_STAGES.map(statusColumn).join(", ")})
        and updated_at <= now() - interval '${STARTED_LONG_SECONDS} s')::jsonb as held`,
);

export interface StageQueue {
  stage: Stage;
  ready: number;
  started: number;
  done: number;
  failed: number;
  leased: number;
  lease_expired: number;
  started_long: number;
  /** When the oldest shard that is ready was registered. */
  oldest_ready_at: Date | null;
}

export async function stageQueues(db: Db): Promise<StageQueue[]> {
  const { by_status, oldest, held } = oneRow(await db.read(QUEUES));
  return STAGES.map((stage) => {
    const sum = (...conditions: [Stage, Status][]) =>
      by_status
        .filter((row) => conditions.every(([one, status]) => row[`${columnPrefix(one)}_status`] === status))
        .reduce((total, { n }) => total + n, 0);
    const queue = QUEUE_STAGES.find((one) => one === stage);
    const oldestAt = queue ? oldest[queue] : null;
    return {
      stage,
      ready: queue ? sum([stageBefore(queue), "done"], [queue, "new"]) : 0,
      started: sum([stage, "started"]),
      done: sum([stage, "done"]),
      failed: sum([stage, "failed"]),
      leased: queue ? held[`${queue}_leased`] : 0,
      lease_expired: queue ? held[`${queue}_expired`] : 0,
      started_long: queue ? held[`${queue}_long`] : 0,
      oldest_ready_at: oldestAt === null ? null : new Date(oldestAt),
    };
  });
}
