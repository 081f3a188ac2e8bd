/**
 * `npm run bench -- tracking`: whether the cost of work follows the work and not the size of history, and what our HTTP path
 * costs beside a bare UPDATE on the same server.
 */
import { statement } from "../../src/kernel/data/statement.ts";
import { QUEUE_STAGES, STATUSES } from "../../src/tracking/states.ts";
import { summary } from "../../src/tracking/summary.ts";
import type { Tracking } from "../../src/tracking/tracking.ts";
import { type Contender, formatNumber, interleave, median, percentile, printTable, ratioRows } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";
import { createHistory, type History } from "./history.ts";
import { httpContenders } from "./http.ts";
import { serveTracking, type TrackingServer } from "./server.ts";

const ROWS_SMALL = 100_000;
const ROWS_LARGE = Number(process.env["BENCH_ROWS"] ?? 10_000_000);
const FILES = 50;
const SHARDS = 100;
const BATCH = 100;
const LOOPS = 4;
const QUEUE_READS = 200;
const SUMMARY_READS = 20;
const CLAIMS = 40;

interface Site extends History {
  name: string;
  server: TrackingServer;
}

export function run(rounds: number): Promise<void> {
  return withPostgres((postgres) => compareSites(postgres, rounds));
}

async function compareSites(postgres: BenchPostgres, rounds: number): Promise<void> {
  const sites: Site[] = [];
  for (const rows of [ROWS_SMALL, ROWS_LARGE]) {
    const history = await createHistory(postgres, rows, console.error);
    const name = `${rows.toLocaleString("en")} rows`;
    sites.push({ ...history, name, server: await serveTracking(history.db) });
  }
  const compare = (contender: (site: Site) => Contender) => interleave(sites.map(contender), rounds, console.error);
  const throughput = await compare(claimAndFinish);
  const claims = await compare(claimsOver);
  const queueReads = await compare(queueReadsOver);
  const summaries = await compare(summaryReadsOver);
  const lists = await compare(fileLists);
  const http = await httpContenders(postgres);
  const requests = await interleave(http.contenders, rounds, console.error);
  await http.stop();

  const [small, large] = sites as [Site, Site];
  printTable(
    `Tracking with a past; ${rounds} interleaved rounds`,
    ["measure", "contender", "median", "spread", "ratio"],
    [
      ...ratioRows("claim and finish, shards/s", throughput, large.name),
      ...ratioRows("claim of 100 by one daemon, p95 ms", claims, large.name),
      ...ratioRows("GET /queues/{stage} of 100, p95 ms", queueReads, large.name),
      ...ratioRows("GET /metrics/summary, p95 ms", summaries, large.name),
      ...ratioRows("GET /files, slowest filter, ms", lists, large.name),
      ...ratioRows("POST .../done over HTTP, requests/s", requests, "Millrace"),
    ],
  );

  console.log();
  const share = median(throughput.get(large.name) ?? []) / median(throughput.get(small.name) ?? []);
  console.log(`Throughput at ${large.name} is ${formatNumber(share * 100)}% of that at ${small.name}.`);
  for (const site of sites) {
    await compareSummary(site);
    await site.server.stop();
    await site.db.close();
  }
}

async function addWork(tracking: Tracking, filename: string, shards: number): Promise<void> {
  await tracking.register(
    filename,
    Array.from({ length: shards }, (_, shard) => shard),
  );
  await tracking.moveFile("done", filename);
}

/** New files each round, worked through all stages by claims, as daemons do. */
function claimAndFinish({ name, server: { tracking } }: Site): Contender {
  let round = 0;
  return {
    name,
    async round() {
      round += 1;
      for (let n = 0; n < FILES; n += 1)
        await addWork(tracking, `round-${round}-${String(n).padStart(4, "0")}`, SHARDS);
      const started = performance.now();
      let finished = 0;
      for (const stage of QUEUE_STAGES) {
        await Promise.all(
          Array.from({ length: LOOPS }, async () => {
            for (;;) {
              const items = await tracking.claim(stage, { limit: BATCH, worker: "bench", leaseSeconds: 60 });
              if (items.length === 0) return;
              const outcomes = await tracking.moveAll(stage, "done", items);
              finished += outcomes.filter((outcome) => "changed" in outcome && outcome.changed).length;
            }
          }),
        );
      }
      if (finished !== FILES * SHARDS * QUEUE_STAGES.length) throw new Error(`finished ${finished} shards`);
      return finished / ((performance.now() - started) / 1000);
    },
  };
}

/** One claim after the other, by a daemon that is alone with the server. */
function claimsOver({ name, server: { tracking } }: Site): Contender {
  let round = 0;
  return {
    name,
    async round() {
      round += 1;
      await addWork(tracking, `claims-${round}`, CLAIMS * BATCH);
      const times: number[] = [];
      for (let n = 0; n < CLAIMS; n += 1) {
        times.push(
          await milliseconds(async () => {
            const items = await tracking.claim("shard-splitter", { limit: BATCH, worker: "bench", leaseSeconds: 60 });
            if (items.length !== BATCH) throw new Error(`claimed ${items.length}`);
          }),
        );
      }
      return percentile(times, 0.95);
    },
  };
}

function queueReadsOver({ name, server }: Site): Contender {
  let round = 0;
  return {
    name,
    async round() {
      round += 1;
      await addWork(server.tracking, `queue-${round}`, 1_000);
      return p95(QUEUE_READS, () => server.get("/api/v1/pipeline/queues/shard-splitter?limit=100"));
    },
  };
}

function summaryReadsOver({ name, server }: Site): Contender {
  return { name, round: () => p95(SUMMARY_READS, () => server.get("/api/v1/pipeline/metrics/summary")) };
}

/** The list that people look at, once for each status; the slowest counts. */
function fileLists({ name, server }: Site): Contender {
  return {
    name,
    async round() {
      const times: number[] = [];
      for (const filter of ["", ...STATUSES.map((status) => `?status=${status}`)]) {
        times.push(await milliseconds(() => server.get(`/api/v1/pipeline/files${filter}`)));
      }
      return Math.max(...times);
    },
  };
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

async function p95(times: number, request: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let n = 0; n < times; n += 1) taken.push(await milliseconds(request));
  return percentile(taken, 0.95);
}

const COUNT = statement<{ total: number; done: number }>(
  "bench.count",
  "select count(*)::float8 as total, count(*) filter (where mysql_sender_status = 'done')::float8 as done from tracking.pipeline_tracking",
);

async function compareSummary({ db, name }: Site): Promise<void> {
  const { total, by_stage } = await summary(db);
  const [counted] = await db.rows(COUNT);
  const equal = counted?.total === total && counted.done === by_stage["mysql_sender"]?.done;
  console.log(`Summary at ${name} of history is ${equal ? "exact" : "WRONG"}: ${total} rows.`);
}
