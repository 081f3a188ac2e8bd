/**
 * From adding one item to its start in a worker that was idle, over two connections that know nothing of each other: what a
 * user waits for when another process pushes work.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { makeWorkerUtils, run as runGraphile } from "graphile-worker";
import { statement } from "../../src/kernel/data/statement.ts";
import { leaseOn } from "../../src/kernel/work/lease.ts";
import { openPulse } from "../../src/kernel/work/pulse.ts";
import { createService } from "../../src/kernel/work/service.ts";
import { createWake } from "../../src/kernel/work/wake.ts";
import { type Contender, median } from "../measure.ts";
import type { BenchPostgres } from "../postgres.ts";
import { graphilePool, quietGraphile } from "./contenders.ts";

const PUSHES = 100;
const PAUSE_MS = 15; // Longer than the gap between two notifications, so each push meets an idle worker.
const TOPIC = "bench.pushed";
const log = { info() {}, warn() {}, error: console.error };

/** Pushes one item at a time and returns the median time to its start, in milliseconds. */
async function medianLatency(push: () => Promise<void>, started: { next(): Promise<number> }): Promise<number> {
  const latencies: number[] = [];
  for (let n = 0; n < PUSHES; n += 1) {
    const start = started.next();
    const pushedAt = performance.now();
    await push();
    latencies.push((await start) - pushedAt);
    await sleep(PAUSE_MS);
  }
  return median(latencies);
}

function startSignal() {
  let resolve = (_at: number) => {};
  return {
    next: () => new Promise<number>((r) => (resolve = r)),
    started: () => resolve(performance.now()),
  };
}

export async function millraceLatency({ db, sql }: BenchPostgres): Promise<Contender> {
  await sql(`
    create table bench.pushed (id bigint generated always as identity primary key, state text not null default 'ready',
      session_id bigint, fence bigint, lost_count int not null default 0);
    create index pushed_ready on bench.pushed (id) where state = 'ready'`);
  const lease = leaseOn({
    name: "bench.pushed",
    table: "bench.pushed",
    key: { id: "int8" },
    state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
    orderBy: "id",
    fence: "fence",
    hold: { by: "session", session: "session_id" },
    lost: { column: "lost_count" },
    outcomes: { done: { set: "state = 'done'" } },
  });
  const insert = statement("bench.push", "insert into bench.pushed default values");
  const pulses = [await openPulse({ db, log }), await openPulse({ db, log })] as const;
  const pusher = createWake({ pulse: pulses[0], log });
  const worker = createWake({ pulse: pulses[1], log });
  const signal = startSignal();
  const service = createService({
    name: "bench",
    intervalMs: 10_000,
    log,
    async runOnce() {
      const items = await lease.claim(db, { limit: 10, holder: "1" });
      for (const _ of items) signal.started();
      await lease.finish(db, "done", items);
      return { claimed: items.length };
    },
  });
  worker.on(TOPIC, service.wake);
  return {
    name: "Millrace lease",
    async round() {
      service.start();
      const figure = await medianLatency(async () => {
        await db.rows(insert);
        pusher.hint(TOPIC);
      }, signal);
      return figure;
    },
    async end() {
      await service.stop();
      await Promise.all([pusher.stop(), worker.stop()]);
      await Promise.all(pulses.map((pulse) => pulse.stop()));
    },
  };
}

export async function graphileLatency({ connection }: BenchPostgres): Promise<Contender> {
  const pool = graphilePool(connection);
  const utils = await makeWorkerUtils({ pgPool: pool });
  const signal = startSignal();
  return {
    name: "graphile-worker",
    async round() {
      const runner = await runGraphile({
        pgPool: pool,
        noHandleSignals: true,
        concurrency: 4,
        taskList: { pushed: () => signal.started() },
        logger: quietGraphile,
      });
      const figure = await medianLatency(async () => void (await utils.addJob("pushed", {})), signal);
      await runner.stop();
      return figure;
    },
    async end() {
      await utils.release();
      await pool.end();
    },
  };
}
