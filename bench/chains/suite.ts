/**
 * `npm run bench -- chains`: DAGs of no-op nodes run by Millrace and by DBOS, with the bare claim-and-complete loop as the
 * limit; whether a past slows the present; and how a very large DAG starts. Prints the tables of docs/performance.md.
 */
import { type Connection, openDb } from "../../src/kernel/data/db.ts";
import { migrate } from "../../src/kernel/data/migrate.ts";
import { withDatabase } from "../../test/connection.ts";
import { bareLoop } from "../bare-loop.ts";
import { type Contender, type Figures, formatNumber, interleave, median } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";
import { type ContenderProcess, type Seen, startContender } from "./contender.ts";
import { atLeast, atMost, printMarkdown, times, withGoal } from "./report.ts";
import { LOADS, type LoadName, nodesOf } from "./shapes.ts";

export function run(rounds: number): Promise<void> {
  return withPostgres(async (postgres) => {
    const ours = await startContender("Millrace", postgres.connection);
    const peer = await startContender("DBOS 5.3", postgres.connection);
    await compareThroughput(postgres, { ours, peer }, "oneDag", rounds);
    await compareThroughput(postgres, { ours, peer }, "manyChains", rounds);
    await compareDispatch({ ours, peer }, rounds);
    await measureLargeDag(ours, rounds);
    // Nothing else may run beside the last comparison, whose goal is the narrowest.
    await peer.end();
    await ours.end();
    await compareHistory(postgres, rounds);
  });
}

interface Engines {
  ours: ContenderProcess;
  peer: ContenderProcess;
}

async function compareThroughput(postgres: BenchPostgres, { ours, peer }: Engines, load: LoadName, rounds: number) {
  const limit = await bareLoop(postgres, nodesOf(LOADS[load]));
  const figures = await interleave([throughput(ours, load), throughput(peer, load), limit], rounds, console.error);
  const reference = medianOf(figures, ours.name);
  const row = (name: string, least: number) => {
    const ratio = reference / medianOf(figures, name);
    return [name, `${formatNumber(medianOf(figures, name))} nodes/s`, times(ratio), withGoal(ratio, atLeast(least))];
  };
  const { runs, shape, inFlight } = LOADS[load];
  printMarkdown(
    `${runs} x ${shape.name}, ${inFlight} in flight`,
    ["", "median", "Millrace is", "goal"],
    [[`**${ours.name}**`, `${formatNumber(reference)} nodes/s`, "", ""], row(peer.name, 5), row(limit.name, 0.15)],
  );
}

function throughput(contender: ContenderProcess, load: LoadName): Contender {
  return { name: contender.name, round: async () => (await contender.run(load)).nodesPerSecond };
}

async function compareDispatch({ ours, peer }: Engines, rounds: number) {
  const seen = new Map<string, Seen[]>([ours, peer].map(({ name }) => [name, []]));
  const dispatch = (contender: ContenderProcess): Contender => ({
    name: contender.name,
    async round() {
      const figures = await contender.run("busyChains");
      seen.get(contender.name)?.push(figures);
      return figures.gapP50;
    },
  });
  const p50s = await interleave([dispatch(ours), dispatch(peer)], rounds, console.error);
  const p95 = (name: string) => median(afterWarmUp(seen.get(name)).map(({ gapP95 }) => gapP95));
  const p50 = (name: string) => medianOf(p50s, name);
  const ratio = p50(ours.name) / p50(peer.name);
  printMarkdown(
    `End of a node to the start of its child, ${LOADS.busyChains.inFlight} chains of ten in flight`,
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

async function measureLargeDag(ours: ContenderProcess, rounds: number) {
  const seen: Seen[] = [];
  const whole: Contender = {
    name: `${ours.name}, ${LOADS.largeDag.shape.name}, ms`,
    async round() {
      const figures = await ours.run("largeDag");
      seen.push(figures);
      return figures.totalMs;
    },
  };
  const figures = await interleave([whole], Math.min(rounds, 3), console.error);
  const start = median(afterWarmUp(seen).map(({ firstMs }) => firstMs));
  printMarkdown(
    LOADS.largeDag.shape.name,
    ["", "median", "goal"],
    [
      ["from the request to its first node", milliseconds(start), withGoal(start, atMost(2_000, "ms"))],
      ["from the request to its end", milliseconds(medianOf(figures, whole.name)), ""],
    ],
  );
}

/** The first round is the warm-up, which `interleave` leaves out by itself. */
function afterWarmUp<T>(rounds: readonly T[] = []): readonly T[] {
  return rounds.slice(1);
}

async function compareHistory(postgres: BenchPostgres, rounds: number) {
  const sites: ContenderProcess[] = [];
  for (const runs of [0, LOADS.history.runs]) {
    const connection = await createDatabase(postgres, `history_${runs}`);
    const contender = await startContender("Millrace", connection);
    if (runs > 0) await contender.run("history");
    await vacuum(connection);
    sites.push({ ...contender, name: `${runs.toLocaleString("en")} finished runs` });
  }
  const contenders = sites.map((site) => throughput(site, "manyChains"));
  const figures = await interleave(contenders, rounds, console.error);
  const [small, large] = contenders.map(({ name }) => medianOf(figures, name)) as [number, number];
  const ratio = large / small;
  const { runs, shape } = LOADS.manyChains;
  printMarkdown(
    "Whether a past slows the present",
    ["", ...contenders.map(({ name }) => name), "ratio", "goal"],
    [
      [
        `${runs} x ${shape.name}, nodes/s`,
        formatNumber(small),
        formatNumber(large),
        times(ratio),
        withGoal(ratio, atLeast(0.85)),
      ],
    ],
  );
  for (const site of sites) await site.end();
}

async function createDatabase({ sql, connection }: BenchPostgres, database: string): Promise<Connection> {
  await sql(`create database ${database}`);
  const own = withDatabase(connection, database);
  const db = openDb({ connection: own });
  await migrate(db);
  await db.close();
  return own;
}

async function vacuum(connection: Connection): Promise<void> {
  const db = openDb({ connection });
  await db.exclusive((client) => client.query("vacuum analyze"));
  await db.close();
}

function medianOf(figures: Figures, name: string): number {
  return median(figures.get(name) ?? []);
}

function milliseconds(value: number): string {
  return `${formatNumber(value)} ms`;
}
