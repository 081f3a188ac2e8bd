/** What pages read, and the batches of a retry, find their rows by an index, however many shards were done before. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { noHints } from "../../test/no-hints.ts";
import { explain } from "../../test/plans.ts";
import type { Actor } from "../kernel/auth/audit.ts";
import { type Db, openDb } from "../kernel/data/db.ts";
import type { Statement } from "../kernel/data/statement.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import { createGrid } from "./grid.ts";
import { listFiles } from "./store.ts";
import { createStuck } from "./stuck.ts";

const FILES = 10_000;
const SHARDS = 8;
const database = useDatabase();
const calls: { name: string; values: readonly unknown[] }[] = [];
let plain: Db;
let db: Db;

beforeAll(async () => {
  // One connection, since each has its own plans, with the settings of the read-only pool.
  const settings = encodeURIComponent("-c plan_cache_mode=force_custom_plan");
  const separator = database.url.includes("?") ? "&" : "?";
  plain = openDb({ connection: { connectionString: `${database.url}${separator}options=${settings}` }, poolSize: 1 });
  const record = (statement: Statement<unknown>, values: readonly unknown[] = []) => {
    calls.push({ name: statement.name, values });
    return plain.rows(statement as Statement<never>, values);
  };
  db = { ...plain, read: record, rows: record };
  await database.query(
    `insert into tracking.pipeline_file (filename, created_at)
     select 'file-' || to_char(n, 'FM000000'), now() - make_interval(secs => n) from generate_series(1, $1::int) n`,
    [FILES],
  );
  await database.query(
    `insert into tracking.pipeline_tracking (filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status)
     select filename, shard, 'done', 'done', 'done', 'done' from tracking.pipeline_file, generate_series(0, $1::int - 1) shard`,
    [SHARDS],
  );
  await database.query(
    `update tracking.pipeline_tracking set mysql_sender_status = 'failed' where shard = 3 and filename like 'file-0001%'`,
  );
  await database.query(
    `update tracking.pipeline_tracking set mysql_sender_status = 'started', updated_at = now() - interval '2 hours',
       leased_until = case when shard = 5 then now() - interval '1 s' end
     where shard in (5, 6) and filename like 'file-00012%'`,
  );
  await database.query(
    `insert into tracking.pipeline_file (filename, created_at)
     select 'old-' || n, now() - make_interval(days => 1, secs => n) from generate_series(1, 50000) n`,
  );
  await database.query("vacuum analyze tracking.pipeline_tracking, tracking.pipeline_file, tracking.shard_tally");
});
afterAll(() => plain.close());

/** Each statement reads at most so many pages, and scans no table of shards or files. */
async function expectPages(read: () => Promise<unknown>, pages: Record<string, number>): Promise<void> {
  calls.length = 0;
  await read();
  const sent = [...calls];
  for (const [name, most] of Object.entries(pages)) {
    const call = sent.find((one) => one.name.startsWith(name));
    if (!call) throw new Error(`${name} was not sent; sent: ${sent.map((one) => one.name).join(", ")}`);
    const values = call.values.map(literal).join(", ");
    const facts = await explain(plain, `"${call.name}"${values && `(${values})`}`);
    expect(facts.pages, `pages of ${name}: ${facts.nodes.join(", ")}`).toBeLessThan(most);
  }
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number") return String(value);
  if (value instanceof Date) return `'${value.toISOString()}'`;
  return `'${value as string}'`;
}

const metrics = createMetrics().define(CATALOGUE.metrics);
const actor = { caller: { name: "t", keyId: null }, address: "", requestId: "" } as unknown as Actor;
const stuck = () => createStuck({ db, wake: createWake(), hints: noHints, metrics, limits: { batch: 10, call: 10 } });

test("stuck shards are listed and counted among 80,000 that are done", async () => {
  const none = { reason: null, stage: null, prefix: "" };
  await expectPages(() => stuck().list(none, { after: undefined, limit: 20 }), { "tracking.stuck.list": 150 });
  const after = { filename: "file-000150", shard: 3, stage: "mysql-sender" } as const;
  await expectPages(() => stuck().list(none, { after, limit: 20 }), { "tracking.stuck.list": 150 });
  await expectPages(() => stuck().retry({}, actor, { dryRun: true }), {
    "tracking.stuck.failed.any.count": 150,
    "tracking.stuck.lease_expired.any.count": 150,
    "tracking.stuck.started_long.any.count": 150,
  });
});

test("a batch of a retry touches its own rows", async () => {
  await expectPages(() => stuck().retry({ reason: "failed" }, actor), { "tracking.stuck.failed.any.retry": 400 });
  await expectPages(() => stuck().retry({ reason: "lease_expired" }, actor), {
    "tracking.stuck.lease_expired.any.retry": 400,
  });
});

test("queues, a window of the grid and the shards of a file read what they show", async () => {
  const grid = createGrid(db);
  const all = { stage: undefined, status: undefined, prefix: "" };
  const window = { after: null, files: 20, from: 0, width: 50 };
  await expectPages(() => grid.queues(), { "tracking.queues": 150 });
  await expectPages(() => grid.window(all, window), { "tracking.grid.columns": 60, "tracking.grid.any.any": 250 });
  await expectPages(() => grid.window(all, { ...window, after: "file-009000" }), { "tracking.grid.any.any": 250 });
  await expectPages(() => grid.shards("file-000150", { from: 2, status: null, limit: 5 }), {
    "tracking.shards_from": 20,
  });
});

test("a file is found by the beginning of its name", async () => {
  const filter = { stage: undefined, status: undefined, prefix: "file-00999" };
  await expectPages(() => listFiles(db, filter, { size: 10, offset: 0 }), {
    "tracking.files.any.any.page": 200,
    "tracking.files.any.any.total": 60,
  });
});
