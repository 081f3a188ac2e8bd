/**
 * `npm run bench -- chains`: DAGs of no-op nodes run by Millrace and by DBOS, with the bare claim-and-complete loop as the
 * limit; whether a past slows the present; and how a very large DAG starts. Prints the tables of docs/performance.md.
 */
import { type Db, openDb } from "../../src/kernel/db.ts";
import { migrate } from "../../src/kernel/migrate.ts";
import { withDatabase } from "../../test/connection.ts";
import { bareLoop } from "../bare-loop.ts";
import { type Contender, type Figures, formatNumber, interleave, median, percentile, perSecond } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";
import { dbos } from "./dbos.ts";
import type { Engine } from "./engine.ts";
import { millrace } from "./millrace.ts";
import { atLeast, atMost, printMarkdown, times, withGoal } from "./report.ts";
import { BUSY_CHAINS, HISTORY, LARGE_DAG, type Load, MANY_CHAINS, nodesOf, ONE_DAG } from "./shapes.ts";

export function run(rounds: number): Promise<void> {
  return withPostgres(async (postgres) => {
    const engines = { ours: await millrace(postgres.db), peer: await dbos(postgres) };
    await compareThroughput(postgres, engines, ONE_DAG, rounds);
    await compareThroughput(postgres, engines, MANY_CHAINS, rounds);
    await compareDispatch(engines, rounds);
    await measureLargeDag(engines.ours, rounds);
    // Nothing else may run beside the last comparison, whose goal is the narrowest.
    await engines.peer.end();
    await engines.ours.end();
    await compareHistory(postgres, rounds);
  });
}

interface Engines {
  ours: Engine;
  peer: Engine;
}

async function compareThroughput(postgres: BenchPostgres, { ours, peer }: Engines, load: Load, rounds: number) {
  const limit = await bareLoop(postgres, nodesOf(load));
  const figures = await interleave([throughput(ours, load), throughput(peer, load), limit], rounds, console.error);
  const reference = medianOf(figures, ours.name);
  const row = (name: string, least: number) => {
    const ratio = reference / medianOf(figures, name);
    return [name, `${formatNumber(medianOf(figures, name))} nodes/s`, times(ratio), withGoal(ratio, atLeast(least))];
  };
  printMarkdown(
    `${load.runs} x ${load.shape.name}, ${load.inFlight} in flight`,
    ["", "median", "Millrace is", "goal"],
    [[`**${ours.name}**`, `${formatNumber(reference)} nodes/s`, "", ""], row(peer.name, 5), row(limit.name, 0.15)],
  );
}

function throughput(engine: Engine, load: Load): Contender {
  return { name: engine.name, round: () => perSecond(nodesOf(load), () => engine.run(load, () => {})) };
}

async function compareDispatch({ ours, peer }: Engines, rounds: number) {
  const p95s = new Map<string, number[]>([ours, peer].map(({ name }) => [name, []]));
  const dispatch = (engine: Engine): Contender => ({
    name: engine.name,
    async round() {
      const gaps = await gapsBetweenNodes(engine, BUSY_CHAINS);
      p95s.get(engine.name)?.push(percentile(gaps, 0.95));
      return percentile(gaps, 0.5);
    },
  });
  const p50s = await interleave([dispatch(ours), dispatch(peer)], rounds, console.error);
  // The first round is the warm-up, which `interleave` leaves out by itself.
  const p95 = (name: string) => median(p95s.get(name)?.slice(1) ?? []);
  const p50 = (name: string) => medianOf(p50s, name);
  const ratio = p50(ours.name) / p50(peer.name);
  printMarkdown(
    `End of a node to the start of its child, ${BUSY_CHAINS.inFlight} chains of ten in flight`,
    ["", "p50", "p95", "Millrace's p50 is", "goal"],
    [
      [
        `**${ours.name}**`,
        milliseconds(p50(ours.name)),
        milliseconds(p95(ours.name)),
        "",
        `p50 ${withGoal(p50(ours.name), atMost(10, "ms"))}, p95 ${withGoal(p95(ours.name), atMost(40, "ms"))}`,
      ],
      [
        peer.name,
        milliseconds(p50(peer.name)),
        milliseconds(p95(peer.name)),
        times(ratio),
        withGoal(ratio, atMost(0.33, "x")),
      ],
    ],
  );
}

/** A node takes no time, so the moment it runs is both its start and its end. For chains only, where nodes take turns. */
async function gapsBetweenNodes(engine: Engine, load: Load): Promise<number[]> {
  const lastOfRun = new Map<string, number>();
  const gaps: number[] = [];
  await engine.run(load, (runId) => {
    const now = performance.now();
    const last = lastOfRun.get(runId);
    if (last !== undefined) gaps.push(now - last);
    lastOfRun.set(runId, now);
  });
  if (gaps.length !== nodesOf(load) - load.runs) throw new Error(`${engine.name} ran ${gaps.length} steps`);
  return gaps;
}

async function measureLargeDag(ours: Engine, rounds: number) {
  const starts: number[] = [];
  const whole: Contender = {
    name: `${ours.name}, ${LARGE_DAG.shape.name}, ms`,
    async round() {
      const asked = performance.now();
      let first = 0;
      await ours.run(LARGE_DAG, () => {
        first ||= performance.now();
      });
      starts.push(first - asked);
      return performance.now() - asked;
    },
  };
  const figures = await interleave([whole], Math.min(rounds, 3), console.error);
  const start = median(starts.slice(1));
  printMarkdown(
    LARGE_DAG.shape.name,
    ["", "median", "goal"],
    [
      ["from the request to its first node", milliseconds(start), withGoal(start, atMost(2_000, "ms"))],
      ["from the request to its end", milliseconds(medianOf(figures, whole.name)), ""],
    ],
  );
}

async function compareHistory(postgres: BenchPostgres, rounds: number) {
  const sites: { db: Db; engine: Engine }[] = [];
  for (const runs of [0, HISTORY.runs]) {
    const db = await createDatabase(postgres, `history_${runs}`);
    const engine = await millrace(db);
    if (runs > 0) await engine.run(HISTORY, () => {});
    await db.exclusive((client) => client.query("vacuum analyze"));
    sites.push({ db, engine: { ...engine, name: `${runs.toLocaleString("en")} finished runs` } });
  }
  const contenders = sites.map(({ engine }) => throughput(engine, MANY_CHAINS));
  const figures = await interleave(contenders, rounds, console.error);
  const [small, large] = contenders.map(({ name }) => medianOf(figures, name)) as [number, number];
  const ratio = large / small;
  printMarkdown(
    "Whether a past slows the present",
    ["", ...contenders.map(({ name }) => name), "ratio", "goal"],
    [
      [
        `${MANY_CHAINS.runs} x ${MANY_CHAINS.shape.name}, nodes/s`,
        formatNumber(small),
        formatNumber(large),
        times(ratio),
        withGoal(ratio, atLeast(0.85)),
      ],
    ],
  );
  for (const { db, engine } of sites) {
    await engine.end();
    await db.close();
  }
}

async function createDatabase({ sql, connection }: BenchPostgres, database: string): Promise<Db> {
  await sql(`create database ${database}`);
  const db = openDb({ connection: withDatabase(connection, database), poolSize: 20 });
  await migrate(db);
  return db;
}

function medianOf(figures: Figures, name: string): number {
  return median(figures.get(name) ?? []);
}

function milliseconds(value: number): string {
  return `${formatNumber(value)} ms`;
}
