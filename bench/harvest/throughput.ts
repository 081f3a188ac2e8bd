/** Harvests of 100,000 records: one slice, slices side by side, slow pages, and a second process. */
import { atLeast, printMarkdown, times, withGoal } from "../chains/report.ts";
import { type Contender, type Figures, formatNumber, interleave, median, perSecond } from "../measure.ts";
import { type Millrace, startMillrace } from "../millrace.ts";
import type { BenchPostgres } from "../postgres.ts";
import { bareHarvest, readOnly } from "./bare.ts";
import { DLT_VERSION, dltContenders } from "./dlt.ts";
import { harvest } from "./harvest.ts";
import { type BenchSource, RECORDS, startSource, type Walk } from "./source.ts";

const OURS = "Millrace";
const IN_FLIGHT = 8;
/** dlt takes most of the time of a round. */
const DLT_ROUNDS_MAX = 3;
/** A round takes 40 s. */
const PROCESS_ROUNDS_MAX = 2;

/** A table of records, beside other tables that grow with the rounds, is emptied before each. */
function onEmptyTable({ sql }: BenchPostgres, { name, round }: Contender): Contender {
  return {
    name,
    async round() {
      await sql("truncate harvest.record, harvest.record_version", "checkpoint");
      return round();
    },
  };
}

function bareLoop({ db }: BenchPostgres, { baseUrl }: BenchSource, walk: Walk, loops: number): Contender {
  return {
    name: loops === 1 ? "bare loop" : `bare loop, ${loops} pages in flight`,
    round: () => perSecond(RECORDS, () => all(bareHarvest(db, baseUrl, walk, loops))),
  };
}

function reading({ baseUrl }: BenchSource, walk: Walk, loops: number): Contender {
  return {
    name: "only reading and parsing (limit)",
    round: () => perSecond(RECORDS, () => all(readOnly(baseUrl, walk, loops))),
  };
}

async function all(received: Promise<number>): Promise<void> {
  const count = await received;
  if (count !== RECORDS) throw new Error(`${count} of ${RECORDS} records came`);
}

async function compare(
  postgres: BenchPostgres,
  source: BenchSource,
  { title, walk, loops, goals, rounds, more = [] }: Comparison,
): Promise<void> {
  const server = await startMillrace(postgres, { sources: [source] });
  const ours: Contender = {
    name: OURS,
    round: () => harvest(postgres, server, { ...walk, source, concurrency: IN_FLIGHT }),
  };
  const contenders = [ours, bareLoop(postgres, source, walk, loops), reading(source, walk, loops), ...more].map((one) =>
    onEmptyTable(postgres, one),
  );
  const figures = await interleave(contenders, rounds, console.error);
  await server.stop();
  print(title, figures, goals);
}

interface Comparison {
  title: string;
  walk: Walk;
  loops: number;
  /** The least of the ratio to each contender that has one. */
  goals: Readonly<Record<string, number>>;
  rounds: number;
  more?: readonly Contender[];
}

function print(title: string, figures: Figures, goals: Readonly<Record<string, number>>): void {
  const ours = median(figures.get(OURS) ?? []);
  const rows = [...figures].map(([name, values]) => {
    const ratio = ours / median(values);
    const goal = goals[name];
    return [
      name === OURS ? `**${name}**` : name,
      `${formatNumber(median(values))} records/s`,
      `${formatNumber(Math.min(...values))} - ${formatNumber(Math.max(...values))}`,
      name === OURS ? "" : times(ratio),
      goal === undefined ? "" : withGoal(ratio, atLeast(goal)),
    ];
  });
  printMarkdown(title, ["", "median", "spread", `${OURS} is`, "goal"], rows);
}

export async function compareOneSlice(postgres: BenchPostgres, rounds: number): Promise<void> {
  const source = await startSource();
  const more = dltContenders(postgres, source, 1_000);
  await compare(postgres, source, {
    title: "100,000 records of 1 KB, one slice, pages of 1,000, bodies kept",
    walk: { pageSize: 1_000, byDay: false },
    loops: 1,
    goals: { "bare loop": 0.5, [`dlt ${DLT_VERSION}, default`]: 4, [`dlt ${DLT_VERSION}, tuned`]: 2.5 },
    rounds: more.length > 0 ? Math.min(rounds, DLT_ROUNDS_MAX) : rounds,
    more,
  });
  await source.stop();
}

export async function compareSlices(postgres: BenchPostgres, rounds: number): Promise<void> {
  const source = await startSource();
  await compare(postgres, source, {
    title: "The same in 16 slices, 8 at once",
    walk: { pageSize: 1_000, byDay: true },
    loops: IN_FLIGHT,
    goals: { [`bare loop, ${IN_FLIGHT} pages in flight`]: 0.4 },
    rounds,
  });
  await source.stop();
}

export async function compareLatency(postgres: BenchPostgres, rounds: number): Promise<void> {
  const source = await startSource({ latencyMs: 20 });
  await compare(postgres, source, {
    title: "The same slices with pages of 100 that take 20 ms",
    walk: { pageSize: 100, byDay: true },
    loops: IN_FLIGHT,
    goals: { [`bare loop, ${IN_FLIGHT} pages in flight`]: 0.8 },
    rounds,
  });
  await source.stop();
}

/** Eight slots a process, so that all 16 slices run at once in two of them. */
export async function compareProcesses(postgres: BenchPostgres, rounds: number): Promise<void> {
  const source = await startSource({ latencyMs: 200 });
  const processes = (count: number): Contender => ({
    name: count === 1 ? "one process" : `${count} processes`,
    async round() {
      const servers: Millrace[] = [];
      for (let n = 0; n < count; n += 1) {
        servers.push(await startMillrace(postgres, { sources: [source], slots: IN_FLIGHT }));
      }
      const [first] = servers as [Millrace];
      const walk = { pageSize: 100, byDay: true };
      const figure = await harvest(postgres, first, { ...walk, source, concurrency: 2 * IN_FLIGHT });
      for (const server of servers) await server.stop();
      return figure;
    },
  });
  const contenders = [processes(1), processes(2)].map((one) => onEmptyTable(postgres, one));
  const figures = await interleave(contenders, Math.min(rounds, PROCESS_ROUNDS_MAX), console.error);
  const [one = Number.NaN, two = Number.NaN] = contenders.map(({ name }) => median(figures.get(name) ?? []));
  printMarkdown(
    "Slices with pages of 100 that take 200 ms, 8 slots a process",
    ["", "one process", "two processes", "ratio", "goal"],
    [["records/s", formatNumber(one), formatNumber(two), times(two / one), withGoal(two / one, atLeast(1.6))]],
  );
  await source.stop();
}
