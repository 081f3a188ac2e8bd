/**
 * All SQL of tracking. Each stage has its own status and fence column, so its statements are written once here and made
 * for each stage with the names of its columns.
 */
import { guardedUpdate, toArrays, unnest } from "../kernel/batch.ts";
import type { Db, Queryable } from "../kernel/db.ts";
import { type Held, type Lease, leaseOn } from "../kernel/lease.ts";
import { type Statement, statement } from "../kernel/statement.ts";
import {
  FILE_MOVES,
  type FileTransition,
  QUEUE_STAGES,
  type QueueStage,
  STAGES,
  STATUSES,
  type Stage,
  type Status,
  stageBefore,
} from "./states.ts";

export interface CellKey {
  filename: string;
  shard: number;
}

export interface QueuedCell extends CellKey {
  created_at: Date;
}

export interface ClaimedCell extends QueuedCell {
  leased_until: Date;
}

/** What a cell is at present, told to a caller whose move was refused. */
export interface PresentCell extends CellKey {
  status: Status;
  status_before: Status;
  fence: string | null;
  worker: string | null;
}

export interface ShardStatuses {
  shard: number;
  event_ingest_status: Status;
  shard_splitter_status: Status;
  shard_worker_status: Status;
  mysql_sender_status: Status;
  updated_at: Date;
  worker: string | null;
  leased_until: Date | null;
  lost_count: number;
  last_error: string | null;
}

const TABLE = "tracking.pipeline_tracking";
const CELL_KEY = { filename: "text", shard: "int4" };

/** `shard-worker` is `shard_worker` in column names. */
export const columnPrefix = (stage: Stage) => stage.replace("-", "_");
const statusColumn = (stage: Stage) => `${columnPrefix(stage)}_status`;

export interface StageStore {
  lease: Lease<CellKey, QueuedCell & { leased_until: Date }>;
  /** Starts cells without a lease. `seconds` is how long a silent worker may keep one; null is for ever. */
  start(
    db: Queryable,
    items: readonly (CellKey & { worker: string | null; seconds: number | null })[],
  ): Promise<CellKey[]>;
  fail(db: Queryable, items: readonly (Held<CellKey> & { error: string | null })[]): Promise<CellKey[]>;
  retry(db: Queryable, items: readonly CellKey[]): Promise<CellKey[]>;
  present(db: Queryable, keys: readonly CellKey[]): Promise<PresentCell[]>;
  queue(db: Db, page: { limit: number; offset: number; updatedAfter: Date | null }): Promise<QueuedCell[]>;
}

export const stageStores: Record<QueueStage, StageStore> = Object.fromEntries(
  QUEUE_STAGES.map((stage) => [stage, stageStore(stage)]),
) as Record<QueueStage, StageStore>;

function stageStore(stage: QueueStage): StageStore {
  const name = `tracking.${columnPrefix(stage)}`;
  const status = statusColumn(stage);
  const fence = `${columnPrefix(stage)}_fence`;
  const before = `${statusColumn(stageBefore(stage))} = 'done'`;

  const lease = leaseOn<CellKey, QueuedCell & { leased_until: Date }>({
    name,
    table: TABLE,
    key: CELL_KEY,
    state: { column: status, ready: ["new"], leased: "started", dead: "failed" },
    readyWhen: before,
    orderBy: "created_at, filename, shard",
    fence,
    hold: { by: "item", owner: "worker", until: "leased_until" },
    lost: { column: "lost_count" },
    onClaim: "updated_at = now()",
    onReturn: "updated_at = now()",
    returning: "t.created_at, t.leased_until",
    outcomes: {
      done: { set: `${status} = 'done', lost_count = 0, last_error = null, updated_at = now()` },
    },
  });

  const present: Statement<PresentCell> = statement(
    `${name}.present`,
    `select t.filename, t.shard, t.${status} as status, t.${statusColumn(stageBefore(stage))} as status_before,
            t.${fence}::text as fence, t.worker
     from ${unnest(CELL_KEY, "i")} join ${TABLE} t on t.filename = i.filename and t.shard = i.shard`,
  );
  const queue: Statement<QueuedCell> = statement(
    `${name}.queue`,
    `select filename, shard, created_at from ${TABLE}
     where ${before} and ${status} = 'new' and ($3::timestamptz is null or updated_at > $3)
     order by created_at, filename, shard limit $1 offset $2`,
  );

  return {
    lease,
    start: guardedUpdate({
      name: `${name}.start`,
      table: TABLE,
      key: CELL_KEY,
      values: { worker: "text", seconds: "float8" },
      set: `${status} = 'started', worker = i.worker, leased_until = now() + make_interval(secs => i.seconds), updated_at = now()`,
      where: `t.${status} = 'new' and t.${before}`,
    }),
    // A stage can fail before it has begun. Then worker and lease are those of an earlier stage and stay.
    fail: guardedUpdate({
      name: `${name}.fail`,
      table: TABLE,
      key: CELL_KEY,
      values: { fence: "int8", error: "text" },
      set: `${status} = 'failed', last_error = i.error, updated_at = now(),
            worker = case when t.${status} = 'new' then t.worker end,
            leased_until = case when t.${status} = 'new' then t.leased_until end`,
      where: `t.${status} in ('new', 'started') and t.${fence} is not distinct from i.fence`,
    }),
    retry: guardedUpdate({
      name: `${name}.retry`,
      table: TABLE,
      key: CELL_KEY,
      set: `${status} = 'new', ${fence} = null, lost_count = 0, last_error = null, updated_at = now()`,
      where: `t.${status} = 'failed'`,
    }),
    present: (db, keys) => db.rows(present, toArrays(CELL_KEY, keys)),
    queue: (db, { limit, offset, updatedAfter }) => db.read(queue, [limit, offset, updatedAfter]),
  };
}

// Files

const REGISTER = statement<{ created: boolean }>(
  "tracking.register",
  `with file as (
     insert into tracking.pipeline_file (filename) values ($1) on conflict do nothing
   ), cells as (
     insert into ${TABLE} (filename, shard) select $1, shard from unnest($2::int4[]) as s(shard) order by shard
     on conflict do nothing returning 1
   )
   select exists (select from cells) as created`,
);

export async function register(db: Queryable, filename: string, shards: readonly number[]): Promise<boolean> {
  const [row] = await db.rows(REGISTER, [filename, shards]);
  return row?.created ?? false;
}

/** Moves the shards of a file in event-ingest, and tells how many were in each status just before. */
const fileMoves = Object.fromEntries(
  Object.entries(FILE_MOVES).map(([transition, { from, to }]) => [
    transition,
    statement<{ updated: number; started: number; done: number; failed: number }>(
      `tracking.event_ingest.${transition}`,
      // Rows are locked first, in key order, so that the counts are those of the moment of the move.
      `with cells as materialized (
         select shard, event_ingest_status as status from ${TABLE} where filename = $1 order by shard for update
       ), moved as (
         update ${TABLE} t set event_ingest_status = '${to}', updated_at = now(), last_error = $2
         from cells where t.filename = $1 and t.shard = cells.shard and t.event_ingest_status = '${from}'
         ${transition === "done" ? "and not exists (select from cells where status = 'failed')" : ""}
         returning 1
       )
       select (select count(*) from moved)::int as updated,
              count(*) filter (where status = 'started')::int as started,
              count(*) filter (where status = 'done')::int as done,
              count(*) filter (where status = 'failed')::int as failed
       from cells`,
    ),
  ]),
) as Record<FileTransition, Statement<{ updated: number; started: number; done: number; failed: number }>>;

export async function moveFile(db: Queryable, transition: FileTransition, filename: string, error: string | null) {
  const [row] = await db.rows(fileMoves[transition], [filename, error]);
  if (!row) throw new Error("an aggregate returned no row");
  return row;
}

const SHARDS_OF_FILE = statement<ShardStatuses>(
  "tracking.shards_of_file",
  `select shard, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status, updated_at,
          worker, leased_until, lost_count, last_error
   from ${TABLE} where filename = $1 order by shard`,
);

export function shardsOfFile(db: Db, filename: string): Promise<ShardStatuses[]> {
  return db.read(SHARDS_OF_FILE, [filename]);
}

const KNOWN_FILES = statement<{ filename: string }>(
  "tracking.known_files",
  "select filename from tracking.pipeline_file where filename = any($1::text[])",
);

export async function knownFiles(db: Queryable, filenames: readonly string[]): Promise<Set<string>> {
  return new Set((await db.rows(KNOWN_FILES, [filenames])).map(({ filename }) => filename));
}

// Lists and totals

export interface FileSummary {
  filename: string;
  created_at: Date;
  updated_at: Date;
  shards: number;
  /** By stage prefix, then by status: the number of shards. */
  stages: Record<string, Partial<Record<Status, number>>>;
}

export interface FileFilter {
  stage: Stage | undefined;
  status: Status | undefined;
  /** The beginning of the file's name. */
  prefix: string;
}

/** Totals of a list are counted up to here: a page does not need the difference between many and very many. */
const FILES_COUNTED_MAX = 10_000;

const ANY_STATUS = STAGES.map(statusColumn).join(", ");

/** A file matches when one of its shards has the status in the stage, or in any stage when none is named. */
function fileCondition({ stage, status }: Pick<FileFilter, "stage" | "status">): string {
  if (!stage && !status) return "true";
  const conditions = [
    // The words of the partial indexes, so that the few files under way or in trouble are found without a scan.
    status && `'${status}' in (${ANY_STATUS})`,
    stage && status && `${statusColumn(stage)} = '${status}'`,
    // A stage alone means the files that are in it: neither before it nor past it.
    stage && !status && `${statusColumn(stage)} in ('started', 'failed')`,
  ];
  return `f.filename in (select filename from ${TABLE} where ${conditions.filter(Boolean).join(" and ")})`;
}

function filesStatements(filter: Pick<FileFilter, "stage" | "status">) {
  const name = `tracking.files.${filter.stage ?? "any"}.${filter.status ?? "any"}`;
  const matching = `tracking.pipeline_file f where starts_with(f.filename, $1) and ${fileCondition(filter)}`;
  const counts = STAGES.map((stage) => {
    const ofStage = STATUSES.map(
      (status) => `'${status}', nullif(count(*) filter (where ${statusColumn(stage)} = '${status}'), 0)`,
    );
    return `'${columnPrefix(stage)}', json_strip_nulls(json_build_object(${ofStage.join(", ")}))`;
  });
  return {
    page: statement<FileSummary>(
      `${name}.page`,
      `select p.filename, p.created_at, s.updated_at, s.shards, s.stages
       from (select f.filename, f.created_at from ${matching} order by f.created_at desc, f.filename limit $2 offset $3) p,
       lateral (
         select max(updated_at) as updated_at, count(*)::int as shards, json_build_object(${counts.join(", ")}) as stages
         from ${TABLE} t where t.filename = p.filename
       ) s
       order by p.created_at desc, p.filename`,
    ),
    total: statement<{ total: number }>(
      `${name}.total`,
      `select count(*)::int as total from (select from ${matching} limit ${FILES_COUNTED_MAX}) counted`,
    ),
  };
}

const filesBy = new Map(
  [undefined, ...STAGES].flatMap((stage) =>
    [undefined, ...STATUSES].map((status) => [`${stage}/${status}`, filesStatements({ stage, status })] as const),
  ),
);

export async function listFiles(db: Db, filter: FileFilter, page: { size: number; offset: number }) {
  const statements = filesBy.get(`${filter.stage}/${filter.status}`);
  if (!statements) throw new Error(`no statement for ${filter.stage}/${filter.status}`);
  const [items, [count]] = await Promise.all([
    db.read(statements.page, [filter.prefix, page.size, page.offset]),
    db.read(statements.total, [filter.prefix]),
  ]);
  return { items, total: count?.total ?? 0 };
}

const STATUS_TOTALS = statement<Record<`${string}_status`, Status> & { n: number }>(
  "tracking.status_totals",
  `select ${ANY_STATUS}, sum(n)::float8 as n from tracking.status_tally group by ${ANY_STATUS} having sum(n) <> 0`,
);
const SHARD_TOTALS = statement<{ shard: number; total: number; done: number; failed: number }>(
  "tracking.shard_totals",
  `select shard, sum(total)::float8 as total, sum(done)::float8 as done, sum(failed)::float8 as failed
   from tracking.shard_tally group by shard having sum(total) <> 0 order by shard`,
);

export async function totals(db: Db) {
  const [byStatus, byShard] = await Promise.all([db.read(STATUS_TOTALS), db.read(SHARD_TOTALS)]);
  return { byStatus, byShard };
}

const ANY_LEASE_EXPIRED = statement<{ expired: boolean }>(
  "tracking.any_lease_expired",
  `select exists (select from ${TABLE} where leased_until <= now()) as expired`,
);

/** One cheap look for all stages, so that an idle server does not ask three times. */
export async function anyLeaseExpired(db: Queryable): Promise<boolean> {
  const [row] = await db.rows(ANY_LEASE_EXPIRED);
  return row?.expired ?? false;
}

const LEASE_HEALTH = statement<{ leased: number; overdue_seconds: number; repeatedly_lost: number }>(
  "tracking.lease_health",
  `select count(*)::int as leased, count(*) filter (where lost_count > 0)::int as repeatedly_lost,
          coalesce(extract(epoch from now() - min(leased_until)), 0)::float8 as overdue_seconds
   from ${TABLE} where leased_until is not null`,
);

export async function leaseHealth(db: Db) {
  const [row] = await db.read(LEASE_HEALTH);
  if (!row) throw new Error("an aggregate returned no row");
  return row;
}
