/**
 * `npm run bench -- tracking`: whether the cost of work follows the work and not the size of history, and what our HTTP path
 * costs beside a bare UPDATE on the same server.
 */
import { statement } from "../../src/kernel/statement.ts";
import { QUEUE_STAGES } from "../../src/tracking/states.ts";
import { summary } from "../../src/tracking/summary.ts";
import type { Tracking } from "../../src/tracking/tracking.ts";
import { type Contender, formatNumber, interleave, median, percentile, printTable, ratioRows } from "../measure.ts";
import { startPostgres } from "../postgres.ts";
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

interface Site extends History {
  name: string;
  server: TrackingServer;
  claimTimes: number[];
}

export async function run(rounds: number): Promise<void> {
  const postgres = await startPostgres();
  const sites: Site[] = [];
  for (const rows of [ROWS_SMALL, ROWS_LARGE]) {
    const history = await createHistory(postgres, rows, console.error);
    const name = `${rows.toLocaleString("en")} rows`;
    sites.push({ ...history, name, server: await serveTracking(history.db), claimTimes: [] });
  }
  const compare = (contender: (site: Site) => Contender) => interleave(sites.map(contender), rounds, console.error);
  const throughput = await compare(claimAndFinish);
  const queueReads = await compare(queueReadsOver);
  const summaries = await compare(summaryReadsOver);
  const http = await httpContenders(postgres);
  const requests = await interleave(http.contenders, rounds, console.error);
  await http.stop();

  const [small, large] = sites as [Site, Site];
  const header = ["", "median", "spread", `${large.name} is`];
  printTable(
    "Claim and finish shards through three stages, batches of 100, 4 loops (shards/s, higher is better)",
    header,
    ratioRows(throughput, large.name),
  );
  printTable(
    "GET /queues/{stage} of 100 items, p95 of 200 requests (ms, lower is better)",
    header,
    ratioRows(queueReads, large.name),
  );
  printTable(
    "GET /metrics/summary, p95 of 20 requests (ms, lower is better)",
    header,
    ratioRows(summaries, large.name),
  );
  printTable(
    "POST .../done over HTTP, 50 connections (requests/s, higher is better)",
    ["", "median", "spread", "Millrace is"],
    ratioRows(requests, "Millrace"),
  );

  console.log();
  const share = median(throughput.get(large.name) ?? []) / median(throughput.get(small.name) ?? []);
  console.log(`Throughput at ${large.name} is ${formatNumber(share * 100)}% of that at ${small.name}.`);
  for (const site of sites) {
    console.log(
      `Claim of 100 at ${site.name}: p50 ${formatNumber(median(site.claimTimes))} ms, p95 ${formatNumber(percentile(site.claimTimes, 0.95))} ms.`,
    );
    await compareSummary(site);
    await site.server.stop();
    await site.db.close();
  }
  await postgres.stop();
}

async function addWork(tracking: Tracking, filename: string, shards: number): Promise<void> {
  await tracking.register(
    filename,
    Array.from({ length: shards }, (_, shard) => shard),
  );
  await tracking.moveFile("done", filename);
}

/** New files each round, worked through all stages by claims, as daemons do. */
function claimAndFinish({ name, server: { tracking }, claimTimes }: Site): Contender {
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
              const claimedFrom = performance.now();
              const items = await tracking.claim(stage, { limit: BATCH, worker: "bench", leaseSeconds: 60 });
              claimTimes.push(performance.now() - claimedFrom);
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

async function p95(times: number, request: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let n = 0; n < times; n += 1) {
    const started = performance.now();
    await request();
    taken.push(performance.now() - started);
  }
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
