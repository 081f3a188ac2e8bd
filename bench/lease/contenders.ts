/**
 * No-op items claimed and completed as fast as each can: 4 loops that take batches of 100, or what comes nearest to that in
 * a peer that fetches in its own way. All start from the same number of waiting items on the same server.
 */
import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker";
import pg from "pg";
import PgBoss from "pg-boss";
import type { Connection } from "../../src/kernel/data/db.ts";
import { statement } from "../../src/kernel/data/statement.ts";
import { leaseOn } from "../../src/kernel/work/lease.ts";
import { BATCH, inLoops, LOOPS } from "../bare-loop.ts";
import { type Contender, perSecond } from "../measure.ts";
import type { BenchPostgres } from "../postgres.ts";

export const ITEMS = 20_000;
export const quietGraphile = new Logger(() => () => {});

/** Items for each second of `work`. */
function timed(work: () => Promise<void>): Promise<number> {
  return perSecond(ITEMS, work);
}

/** The kernel's lease by session, as the modules use it. Finished rows stay. */
export async function millrace({ db, sql }: BenchPostgres): Promise<Contender> {
  await sql(`
    create schema bench;
    create table bench.item (
      id bigint generated always as identity primary key, state text not null default 'ready', priority int not null default 0,
      due_at timestamptz not null default now(), session_id bigint, fence bigint, lost_count int not null default 0, finished_at timestamptz);
    create index item_ready on bench.item (priority, due_at, id) where state = 'ready';
    create index item_leased on bench.item (session_id) where state = 'leased'`);
  const lease = leaseOn({
    name: "bench.item",
    table: "bench.item",
    key: { id: "int8" },
    state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
    dueAt: "due_at",
    orderBy: "priority, due_at, id",
    fence: "fence",
    hold: { by: "session", session: "session_id" },
    lost: { column: "lost_count" },
    outcomes: { done: { set: "state = 'done', finished_at = now()" } },
  });
  const session = statement<{ id: string }>(
    "bench.session",
    `insert into kernel.session (process, roles, version, expires_at) values ('bench', '{}', '', now() + interval '1 hour') returning id`,
  );
  const [row] = await db.rows(session);
  const holder = row?.id ?? "";
  return {
    name: "Millrace lease",
    async round() {
      await sql(
        "truncate bench.item",
        `insert into bench.item (priority) select 0 from generate_series(1, ${ITEMS})`,
        "vacuum analyze bench.item",
      );
      return timed(() =>
        inLoops(async () => {
          for (;;) {
            const items = await lease.claim(db, { limit: BATCH, holder });
            if (items.length === 0) return;
            const finished = await lease.finish(db, "done", items);
            if (finished.length !== items.length) throw new Error("a lease was lost");
          }
        }),
      );
    },
  };
}

export function graphilePool(connection: Connection): pg.Pool {
  const pool = new pg.Pool({ ...connection, max: 20 });
  // graphile-worker insists on these.
  pool.on("error", (error) => console.error(error.message));
  pool.on("connect", (client) => client.on("error", (error) => console.error(error.message)));
  return pool;
}

/**
 * graphile-worker deletes finished jobs. Tuned: its local queue and batched completion, as its own benchmark does. In its
 * favour the clock runs only from the start of the first job to the end of the last, without starting its runner and
 * without waiting for the last completions to be written.
 */
export async function graphileWorker({ connection, sql }: BenchPostgres, tuned: boolean): Promise<Contender> {
  const pool = graphilePool(connection);
  const utils = await makeWorkerUtils({ pgPool: pool });
  await utils.migrate();
  return {
    name: tuned ? "graphile-worker, tuned" : "graphile-worker, default",
    async round() {
      await sql("truncate graphile_worker._private_jobs");
      await utils.addJobs(Array.from({ length: ITEMS }, () => ({ identifier: "noop", payload: {} })));
      await sql("vacuum analyze graphile_worker._private_jobs");
      const { promise: finished, resolve: finish } = signal();
      let left = ITEMS;
      let startedAt = 0;
      let endedAt = 0;
      const runner = await runGraphile({
        pgPool: pool,
        noHandleSignals: true,
        concurrency: LOOPS * (tuned ? BATCH : 1),
        taskList: {
          noop: () => {
            startedAt ||= performance.now();
            left -= 1;
            if (left > 0) return;
            endedAt = performance.now();
            finish();
          },
        },
        logger: quietGraphile,
        preset: {
          worker: tuned ? { localQueue: { size: LOOPS * BATCH }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {},
        },
      });
      await finished;
      await runner.stop();
      return ITEMS / ((endedAt - startedAt) / 1000);
    },
    async end() {
      await utils.release();
      await pool.end();
    },
  };
}

function signal(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((r) => {
    resolve = r;
  });
  return { promise, resolve };
}

export async function pgBoss({ connection }: BenchPostgres): Promise<Contender> {
  const boss = new PgBoss({ ...connection, max: 20, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue("noop");
  return {
    name: "pg-boss",
    async round() {
      await boss.clearStorage();
      await boss.insert(Array.from({ length: ITEMS }, () => ({ name: "noop" })));
      return timed(() =>
        inLoops(async () => {
          for (;;) {
            const jobs = await boss.fetch("noop", { batchSize: BATCH });
            if (!jobs || jobs.length === 0) return;
            await boss.complete(
              "noop",
              jobs.map(({ id }) => id),
            );
          }
        }),
      );
    },
    end: () => boss.stop({ graceful: false, close: true }),
  };
}
