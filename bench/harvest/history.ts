/** Claims and commits of pages in a database with a long past of tasks, runs, batches and records, beside one with a short past. */

import { startRuns, taskLease } from "../../src/harvest/store/queue/tasks.ts";
import { commitBatch } from "../../src/harvest/store/records/batches.ts";
import { type IncomingRecord, putRecords } from "../../src/harvest/store/records/records.ts";
import { type Db, openDb } from "../../src/kernel/data/db.ts";
import { migrate } from "../../src/kernel/data/migrate.ts";
import { type Statement, statement } from "../../src/kernel/data/statement.ts";
import { withDatabase } from "../../test/connection.ts";
import { atMost, printMarkdown, times, withGoal } from "../chains/report.ts";
import { formatNumber, percentile } from "../measure.ts";
import type { BenchPostgres } from "../postgres.ts";

const ROWS_LARGE = Number(process.env["BENCH_ROWS"] ?? 10_000_000);
const ROWS_SMALL = 100_000;
const CHUNK = 500_000;
const PARTITIONS = 16;
/** What a process with 16 slots claims at once. */
const CLAIM = 16;
const CLAIMS = 200;
const PAGES = 200;
const PAGE_RECORDS = 1_000;
const RECORD_BYTES = 1_024;
const MONTH = "date_trunc('month', now())::date";
const partitionOf = (n: string) => `'bench' || ${n} % ${PARTITIONS} || '/works/HARVEST'`;
const PLAN = "'00000000-0000-7000-8000-000000000000'::uuid";

interface Site {
  db: Db;
  rows: number;
  session: string;
  claims: number[];
  pages: number[];
}

export async function compareHistory(postgres: BenchPostgres, rounds: number): Promise<void> {
  const sites: Site[] = [];
  for (const rows of [ROWS_SMALL, ROWS_LARGE]) sites.push(await createSite(postgres, rows));
  // The first round is the warm-up.
  for (let round = 0; round <= rounds; round += 1) {
    for (const site of sites) {
      const claims = await timeClaims(site);
      const pages = await timePages(site, round);
      if (round > 0) site.claims.push(...claims);
      if (round > 0) site.pages.push(...pages);
      console.error(
        `round ${round}/${rounds}  ${site.rows.toLocaleString("en")} rows: claim p95 ${formatNumber(percentile(claims, 0.95))} ms, page p95 ${formatNumber(percentile(pages, 0.95))} ms`,
      );
    }
  }
  const [small, large] = sites as [Site, Site];
  const row = (name: string, of: (site: Site) => number[], limitMs: number) => {
    const [before, after] = [percentile(of(small), 0.95), percentile(of(large), 0.95)];
    return [
      name,
      `${formatNumber(before)} ms`,
      `${formatNumber(after)} ms`,
      times(after / before),
      withGoal(after, atMost(limitMs, "ms")),
    ];
  };
  printMarkdown(
    "Whether a past slows the present: as many rows of tasks, runs, batches and records",
    ["", ...sites.map(({ rows }) => `${rows.toLocaleString("en")} rows`), "ratio", "goal"],
    [
      row(`claim of ${CLAIM} tasks, p95`, ({ claims }) => claims, 30),
      row(`commit of a page of ${PAGE_RECORDS.toLocaleString("en")} records, p95`, ({ pages }) => pages, 80),
    ],
  );
  for (const { db } of sites) await db.close();
}

async function createSite(postgres: BenchPostgres, rows: number): Promise<Site> {
  const database = `harvest_${rows}`;
  await postgres.sql(`create database ${database}`);
  const db = openDb({ connection: withDatabase(postgres.connection, database), poolSize: 10 });
  await migrate(db);
  await execute(db, [PARTITIONS_SQL, SLICES_SQL(rows)]);
  // Two at a time, as a server has at least two cores.
  await Promise.all([
    fill(db, rows, [tasks, runs]).then(() => execute(db, ["vacuum analyze harvest.ing_task, harvest.ing_task_run"])),
    fill(db, rows, [batches, records]).then(() =>
      execute(db, ["vacuum analyze harvest.ing_task_run_batch, harvest.record, harvest.ing_plan_slice"]),
    ),
  ]);
  await execute(db, [NEXT_RUN_SQL, "checkpoint"]);
  const [row] = await db.rows(SESSION);
  return { db, rows, session: row?.id ?? "", claims: [], pages: [] };
}

async function fill(db: Db, rows: number, tables: readonly ((from: number, to: number) => string)[]): Promise<void> {
  for (const table of tables) {
    for (let from = 1; from <= rows; from += CHUNK) {
      await execute(db, [table(from, Math.min(rows, from + CHUNK - 1))]);
      console.error(
        `${rows.toLocaleString("en")} rows: ${table.name} ${Math.round(((from + CHUNK - 1) / rows) * 100)}%`,
      );
    }
  }
}

/** Loading needs no foreign keys. */
function execute(db: Db, texts: readonly string[]): Promise<void> {
  return db.exclusive(async (client) => {
    await client.query("set session_replication_role = replica");
    for (const text of texts) await client.query(text);
  });
}

const PARTITIONS_SQL = `insert into harvest.ing_partition select ${partitionOf("n")}, 1000 from generate_series(0, ${PARTITIONS - 1}) n`;
const NEXT_RUN_SQL = "select setval(pg_get_serial_sequence('harvest.ing_task_run', 'run_id'), 1000000000)";
/** A slice for every hundred rows, and one that is being read. */
const SLICES_SQL = (rows: number) => `
  insert into harvest.ing_plan_slice
    (slice_id, plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code, namespace_key, slice_spec,
     slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
  overriding system value
  select n, ${PLAN}, n, 'bench', 1, 'HARVEST', 'EXPR', 'works', '{}', n::text, '', '{}',
    case when n = 0 then 'READY' else 'COMPLETE' end, case when n > 0 then now() end
  from generate_series(0, ${rows / 100}) n`;

function tasks(from: number, to: number): string {
  return `insert into harvest.ing_task
      (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params, expr_hash,
       idempotent_key, status_code, priority, attempt_count, started_at, finished_at)
    overriding system value
    select n, ${PLAN}, ${PLAN}, n / 100 + 1, 'bench', 'HARVEST', ${partitionOf("n")}, '{}', md5('expr'),
      to_char(n, 'FM000000000000'), 'SUCCEEDED', 100, 1, now(), now()
    from generate_series(${from}, ${to}) n`;
}

function runs(from: number, to: number): string {
  return `insert into harvest.ing_task_run (run_id, task_id, attempt_no, provenance_code, operation_code, status_code, ended_at)
    overriding system value
    select n, n, 1, 'bench', 'HARVEST', 'SUCCEEDED', now() from generate_series(${from}, ${to}) n`;
}

function batches(from: number, to: number): string {
  return `insert into harvest.ing_task_run_batch
      (plan_month, slice_id, generation, batch_no, run_id, task_id, plan_id, endpoint_id, expr_hash, phase, request,
       response_digest, stats, id_hashes)
    select ${MONTH}, n / 100 + 1, 1, n % 100 + 1, n, n, ${PLAN}, 1, md5('expr'), 1, '{"url": "https://example.org/works"}',
      '{"status": 200}', '{"inserted": 1}', ''
    from generate_series(${from}, ${to}) n`;
}

/** With little content: what could slow a write is the number of rows in the table and its indexes. */
function records(from: number, to: number): string {
  return `insert into harvest.record
      (endpoint_id, item_key, content_hash, source_time, plan_month, slice_id, generation, batch_no, data)
    select 1, to_char(n, 'FM000000000000'), md5('')::uuid, now(), ${MONTH}, n / 100 + 1, 1, 1, '{}'
    from generate_series(${from}, ${to}) n`;
}

const SESSION = statement<{ id: string }>(
  "bench.harvest.session",
  `insert into kernel.session (process, roles, version, expires_at) values ('bench', '{}', '', now() + interval '1 hour') returning id`,
);
const QUEUE = statement<{ task_id: string }>(
  "bench.harvest.queue",
  `insert into harvest.ing_task
     (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params, expr_hash, idempotent_key,
      priority, scheduled_at)
   overriding system value
   select $1::int8 + n, ${PLAN}, ${PLAN}, n + 1, 'bench', 'HARVEST', ${partitionOf("n")}, '{}', '', ($1::int8 + n)::text, 100, now()
   from generate_series(0, $2::int4 - 1) n`,
);

/** As many as there are slices, at most. */
async function timeClaims(site: Site): Promise<number[]> {
  const { db, session } = site;
  const claims = Math.min(CLAIMS, Math.floor(site.rows / 100 / CLAIM) - 1);
  await withoutForeignKeys(db, QUEUE, [nextTaskId(), claims * CLAIM]);
  const took: number[] = [];
  for (let n = 0; n < claims; n += 1) {
    const started = performance.now();
    const claimed = await taskLease.claim(db, { limit: CLAIM, holder: session }, async (tx, some) => {
      await startRuns(tx, some);
    });
    took.push(performance.now() - started);
    if (claimed.length !== CLAIM) throw new Error(`a claim took ${claimed.length} tasks`);
    await taskLease.finish(db, "succeeded", claimed);
  }
  return took;
}

let taskId = 1_000_000_000;
function nextTaskId(): number {
  taskId += 1_000_000;
  return taskId;
}

/** A process that reads slice 0: fence, records, batch and progress in one transaction. */
async function timePages(site: Site, round: number): Promise<number[]> {
  const { db, session } = site;
  const id = nextTaskId();
  await withoutForeignKeys(db, QUEUE_ONE, [id]);
  const [held] = await taskLease.claim(db, { limit: 1, holder: session });
  if (!held) throw new Error("there is no task to hold");
  const took: number[] = [];
  for (let n = 1; n <= PAGES; n += 1) {
    const batchNo = round * PAGES + n;
    const page = recordsOf(site.rows, batchNo);
    const origin = { endpointId: 1, planMonth: currentMonth(), sliceId: "0", generation: 1, batchNo };
    const started = performance.now();
    await db.tx(async (tx) => {
      const [still, counts] = await Promise.all([taskLease.hold(tx, [held]), putRecords(tx, origin, page)]);
      const isThere = await commitBatch(tx, {
        ...BATCH,
        ...origin,
        taskId: held.task_id,
        counts: { ...counts, received: page.length, quarantined: 0, missing: 0 },
        idHashes: Buffer.alloc(8 * page.length),
      });
      if (still.length === 0 || !isThere) throw new Error("the slice is elsewhere");
    });
    took.push(performance.now() - started);
  }
  await taskLease.finish(db, "succeeded", [held]);
  return took;
}

const QUEUE_ONE = statement(
  "bench.harvest.queue_one",
  `insert into harvest.ing_task
     (task_id, schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params, expr_hash, idempotent_key,
      priority, scheduled_at)
   overriding system value
   values ($1::int8, ${PLAN}, ${PLAN}, 0, 'bench', 'HARVEST', ${partitionOf("0")}, '{}', '', $1::int8::text, 1, now())`,
);

/** The rows of history have no plan. */
async function withoutForeignKeys<Row>(db: Db, { text }: Statement<Row>, values: readonly unknown[]): Promise<void> {
  await db.exclusive(async (client) => {
    await client.query("set session_replication_role = replica");
    await client.query(text, values as unknown[]);
  });
}

const BATCH = {
  runId: "0",
  planId: "00000000-0000-7000-8000-000000000000",
  exprHash: "",
  phase: 1 as const,
  pageNo: 1,
  pageSize: PAGE_RECORDS,
  beforeToken: null,
  afterToken: null,
  nextUrl: null,
  request: { method: "GET", url: "https://example.org/works" },
  responseDigest: { status: 200 },
  stats: {},
  credentialVersion: null,
  bodyHash: null,
  expected: null,
  position: { pageNo: 1 },
};

/** New ones, whose keys are spread over all keys of the past. */
function recordsOf(rows: number, batchNo: number): IncomingRecord[] {
  return Array.from({ length: PAGE_RECORDS }, (_, index) => {
    const item_key = `${String(index * (rows / PAGE_RECORDS)).padStart(12, "0")}-${batchNo}`;
    const data = JSON.stringify({ item_key, text: "a".repeat(RECORD_BYTES - 60) });
    return {
      item_key,
      content_hash: "0".repeat(32),
      source_time: new Date(),
      provider_version: null,
      deleted: false,
      data,
    };
  });
}

function currentMonth(): string {
  return `${new Date().toISOString().slice(0, 7)}-01`;
}
