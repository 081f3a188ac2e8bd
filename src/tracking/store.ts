/**
 * All SQL of tracking. Each stage has its own status and fence column, so the statements are written once and generated for
 * each stage.
 */
import { guardedUpdate, toArrays, unnest } from "../kernel/data/batch.ts";
import type { Db, Queryable } from "../kernel/data/db.ts";
import { type Statement, statement } from "../kernel/data/statement.ts";
import { type Held, type Lease, leaseOn, returning } from "../kernel/work/lease.ts";
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

/** The present row of a cell, to explain a refused move. */
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

export const TABLE = "tracking.pipeline_tracking";
const CELL_KEY = { filename: "text", shard: "int4" } as const;

/** `shard-worker` is `shard_worker` in column names. */
export const columnPrefix = (stage: Stage) => stage.replace("-", "_");
export const statusColumn = (stage: Stage) => `${columnPrefix(stage)}_status`;

export interface StageStore {
  lease: Lease<CellKey, ClaimedCell>;
  /** Starts cells without a lease. `seconds` is how long a cell may stay started; null is for ever. */
  start(
    db: Queryable,
    items: readonly (CellKey & { worker: string | null; seconds: number | null })[],
  ): Promise<CellKey[]>;
  fail(db: Queryable, items: readonly (Held<CellKey> & { error: string | null })[]): Promise<CellKey[]>;
  retry(db: Queryable, items: readonly CellKey[]): Promise<CellKey[]>;
  present(db: Queryable, keys: readonly CellKey[]): Promise<PresentCell[]>;
  queue(db: Queryable, page: { limit: number; offset: number; updatedAfter: Date | null }): Promise<QueuedCell[]>;
}

export const stageStores: Record<QueueStage, StageStore> = Object.fromEntries(
  QUEUE_STAGES.map((stage) => [stage, stageStore(stage)]),
) as Record<QueueStage, StageStore>;

function stageStore(stage: QueueStage): StageStore {
  const name = `tracking.${columnPrefix(stage)}`;
  const status = statusColumn(stage);
  const fence = `${columnPrefix(stage)}_fence`;
  const before = `${statusColumn(stageBefore(stage))} = 'done'`;

  const lease = leaseOn({
    name,
    table: TABLE,
    key: CELL_KEY,
    state: { column: status, ready: ["new"], leased: "started", dead: "failed" },
    readyWhen: before,
    orderBy: "created_at, filename, shard",
    fence,
    hold: { by: "item", owner: "worker", until: "leased_until" },
    lost: { column: "lost_count", error: "last_error" },
    onClaim: { updated_at: "now()" },
    onReturn: { updated_at: "now()" },
    returning: returning<ClaimedCell>("t.created_at, t.leased_until"),
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
    // A stage can fail before it has started. Then worker and lease belong to an earlier stage and stay.
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
    queue: (db, { limit, offset, updatedAfter }) => db.rows(queue, [limit, offset, updatedAfter]),
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

/** How many shards of a file are in each status of event-ingest. */
export interface FileCounts {
  started: number;
  done: number;
  failed: number;
}

const LOCK_FILE = statement<FileCounts>(
  "tracking.event_ingest.lock",
  `with cells as materialized (
     select event_ingest_status as status from ${TABLE} where filename = $1 order by shard for update
   )
   select count(*) filter (where status = 'started')::int as started,
          count(*) filter (where status = 'done')::int as done,
          count(*) filter (where status = 'failed')::int as failed
   from cells`,
);

/** Counts the shards and locks them, so that the counts stay valid until the transaction ends. */
export async function lockFile(tx: Queryable, filename: string): Promise<FileCounts> {
  return oneRow(await tx.rows(LOCK_FILE, [filename]));
}

const LOCK_COMPLETION = statement(
  "tracking.file.lock_completion",
  `select pg_advisory_xact_lock(hashtextextended('tracking.file ' || filename, 0))
   from (select distinct filename from unnest($1::text[]) as u(filename) order by 1 offset 0) f`,
);

/** Serialises per file: two last shards that end concurrently would each miss the other. */
export async function lockCompletion(tx: Queryable, filenames: readonly string[]): Promise<void> {
  await tx.rows(LOCK_COMPLETION, [filenames]);
}

const COMPLETE = statement<{ filename: string }>(
  "tracking.file.complete",
  `select filename from ${TABLE} where filename = any($1::text[])
   group by filename having bool_and(mysql_sender_status = 'done')`,
);

/** The files whose shards are all done in the last stage. */
export async function completeFiles(tx: Queryable, filenames: readonly string[]): Promise<string[]> {
  return (await tx.rows(COMPLETE, [filenames])).map(({ filename }) => filename);
}

const fileMoves = Object.fromEntries(
  Object.entries(FILE_MOVES).map(([transition, { from, to }]) => [
    transition,
    statement<{ updated: number }>(
      `tracking.event_ingest.${transition}`,
      `with moved as (
         update ${TABLE} set event_ingest_status = '${to}', updated_at = now(), last_error = $2
         where filename = $1 and event_ingest_status = '${from}' returning 1
       )
       select count(*)::int as updated from moved`,
    ),
  ]),
) as Record<FileTransition, Statement<{ updated: number }>>;

/**
 * Moves the shards of a locked file. It must be a statement of its own: the snapshot of one that waits for the lock is older
 * than the lock.
 */
export async function moveFile(
  tx: Queryable,
  transition: FileTransition,
  filename: string,
  error: string | null,
): Promise<number> {
  return oneRow(await tx.rows(fileMoves[transition], [filename, error])).updated;
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

/** Totals of a list are counted up to this limit, because counting all of history is slow. */
const FILES_COUNTED_MAX = 10_000;

export const ANY_STATUS = STAGES.map(statusColumn).join(", ");

/** A file matches when one of its shards has the status in the stage, or in any stage when none is named. */
export function fileCondition({ stage, status }: Pick<FileFilter, "stage" | "status">): string {
  if (!stage && !status) return "true";
  // A stage alone means the files that are in it: neither before it nor past it.
  const inStage =
    stage && (status ? `${statusColumn(stage)} = '${status}'` : `${statusColumn(stage)} in ('started', 'failed')`);
  const condition = inStage ?? `'${status}' in (${ANY_STATUS})`;
  if (status === "done") {
    // Nearly all of history matches, so the newest files are tried one by one. "offset 0" keeps the planner from
    // collecting the matches of ten million rows first.
    return `exists (select from ${TABLE} t where t.filename = f.filename and ${condition} offset 0)`;
  }
  // The others are few. The condition is that of a partial index.
  const few = status === "failed" ? `'failed' in (${ANY_STATUS})` : "mysql_sender_status <> 'done'";
  return `f.filename in (select filename from ${TABLE} where ${few} and ${condition})`;
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

interface Totals {
  by_status: (Record<`${string}_status`, Status> & { n: number })[];
  by_shard: { shard: number; total: number; done: number; failed: number }[];
}

// One statement, so that both halves have the same snapshot.
const TOTALS = statement<Totals>(
  "tracking.totals",
  `select
     (select coalesce(json_agg(t), '[]') from (
        select ${ANY_STATUS}, sum(n) as n from tracking.status_tally group by ${ANY_STATUS} having sum(n) <> 0
      ) t) as by_status,
     (select coalesce(json_agg(t order by shard), '[]') from (
        select shard, sum(total) as total, sum(done) as done, sum(failed) as failed
        from tracking.shard_tally group by shard having sum(total) <> 0
      ) t) as by_shard`,
);

export async function totals(db: Db): Promise<Totals> {
  return oneRow(await db.read(TOTALS));
}

const NEXT_EXPIRY = statement<{ in_ms: number | null }>(
  "tracking.next_expiry",
  `select (extract(epoch from min(leased_until) - now()) * 1000)::float8 as in_ms from ${TABLE} where leased_until is not null`,
);

/** One cheap query for all stages, so that an idle server does not send three. Zero or less when a lease has expired. */
export async function nextExpiryMs(db: Queryable): Promise<number> {
  const { in_ms } = oneRow(await db.rows(NEXT_EXPIRY));
  return in_ms ?? Number.POSITIVE_INFINITY;
}

const LEASE_HEALTH = statement<{ leased: number; overdue_seconds: number; repeatedly_lost: number }>(
  "tracking.lease_health",
  `select count(*)::int as leased, count(*) filter (where lost_count > 0)::int as repeatedly_lost,
          coalesce(extract(epoch from now() - min(leased_until)), 0)::float8 as overdue_seconds
   from ${TABLE} where leased_until is not null`,
);

export async function leaseHealth(db: Db) {
  return oneRow(await db.read(LEASE_HEALTH));
}

export function oneRow<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (!row) throw new Error("an aggregate returned no row");
  return row;
}
