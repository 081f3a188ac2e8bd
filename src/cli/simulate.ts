/** `millrace simulate`: a copy of a source's API on this machine, to try a definition without calling the real one. */
import { join, relative } from "node:path";
import { OperatorError } from "../kernel/errors.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { PACKAGE_ROOT } from "../kernel/package-root.ts";
import { messageOf } from "../kernel/text/message-of.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { FAULTS, lastDays, SIMULATORS, type Simulator, type SimulatorKind } from "../simulators/index.ts";
import type { Command, Given } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { indent, pairs } from "./common/help.ts";
import { print } from "./common/output.ts";
import { stopSignals } from "./common/stop-signals.ts";

const DAYS_DEFAULT = 7;
const RECORDS_PER_DAY_DEFAULT = 1000;
const RECORDS_MAX = 1_000_000;
/** The least and the most of each. */
const NUMBERS = {
  "--port": [0, 65_535],
  "--seed": [0, 2 ** 32 - 1],
  "--days": [1, 3660],
  "--records-per-day": [0, RECORDS_MAX],
  "--latency-ms": [0, 60_000],
} as const;

export const simulate: Command = {
  summary: "Run a copy of a source's API on this machine",
  details: `SOURCE is one of ${Object.keys(SIMULATORS).join(", ")}. The copy answers as the real service does, with its paging, errors and
limits, and has a made-up data set that is the same for the same seed. It listens on 127.0.0.1 until Ctrl-C.

Below /_simulator/ it says what arrived (GET requests) and what a correct harvest has (GET records?from=&to=), and takes
faults and changes of records (POST faults, POST records).

Faults strike at random under the seed. Not every source has all of them:

${pairs(Object.entries(FAULTS))}`,
  args: "SOURCE",
  flags: [
    { usage: "--port <number>", description: "Listen on this port; default 0, a free one." },
    { usage: "--seed <number>", description: "The seed of the data set and of the faults; default 1." },
    { usage: "--days <number>", description: `So many days before today have records; default ${DAYS_DEFAULT}.` },
    {
      usage: "--records-per-day <number>",
      description: `Default ${RECORDS_PER_DAY_DEFAULT}. Of more than 9,999, most are late entries at pubmed, so that EDAT divides them.`,
    },
    { usage: "--latency-ms <number>", description: "Every answer takes so much longer; default 0." },
    { usage: "--unlimited", description: "No limits of rate and concurrency, and no headers that state them." },
    { usage: "--faults <list>", description: "Faults with their probabilities, such as http-429=0.1,gzip=1." },
  ],
  examples: [
    "millrace simulate crossref",
    "millrace simulate pubmed --port 8090 --days 30 --records-per-day 12000",
    "millrace simulate arxiv --unlimited --faults http-503=0.1,duplicate-across-pages=0.2",
  ],
  async run(given) {
    const stopping = stopSignals(() => undefined);
    const kind = kindOf(given.text("SOURCE"));
    const simulator = await start(kind, given);
    print(ready(given.text("SOURCE"), simulator, kind));
    if (!stopping.aborted) await new Promise((resolve) => stopping.addEventListener("abort", resolve));
    await simulator.close();
    print("Stopped.");
    return EXIT.ok;
  },
};

function kindOf(name: string): SimulatorKind {
  const kind = Object.hasOwn(SIMULATORS, name) ? SIMULATORS[name] : undefined;
  if (kind) return kind;
  const names = Object.keys(SIMULATORS);
  throw refusal(
    `There is no simulator of \`${name}\`.${didYouMean(name, names) || ` Simulators: ${names.join(", ")}.`}`,
  );
}

async function start(kind: SimulatorKind, given: Given): Promise<Simulator> {
  const port = numberIn(given, "--port") ?? 0;
  const [days, recordsPerDay] = [
    numberIn(given, "--days") ?? DAYS_DEFAULT,
    numberIn(given, "--records-per-day") ?? RECORDS_PER_DAY_DEFAULT,
  ];
  if (days * recordsPerDay > RECORDS_MAX)
    throw refusal(
      `${days} days of ${recordsPerDay} records are more than ${RECORDS_MAX}, which is the most in memory.`,
    );
  const seed = numberIn(given, "--seed");
  try {
    return await kind.start({
      port,
      days: lastDays(days, systemClock),
      recordsPerDay,
      latencyMs: numberIn(given, "--latency-ms") ?? 0,
      unlimited: given.isOn("--unlimited"),
      faults: faultsIn(given.maybeText("--faults")),
      ...(seed === undefined ? {} : { seed }),
    });
  } catch (error) {
    if (error instanceof RangeError) throw refusal(messageOf(error));
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    throw new OperatorError(`Cannot listen on port ${port} (${code}). Choose another with --port.`);
  }
}

function numberIn(given: Given, flag: keyof typeof NUMBERS): number | undefined {
  const value = given.maybeNumber(flag);
  const [min, max] = NUMBERS[flag];
  if (value !== undefined && (value < min || value > max))
    throw refusal(`${flag} is \`${value}\`. Accepted: a whole number from ${min} to ${max}.`);
  return value;
}

/** `http-429=0.1,gzip=1`; the simulator refuses names and probabilities that it does not have. */
function faultsIn(list: string | undefined): Record<string, number> {
  const faults: Record<string, number> = {};
  for (const part of (list ?? "").split(",").filter((text) => text !== "")) {
    const [, name, probability] = /^([\w-]+)=(\d*\.?\d+)$/.exec(part) ?? [];
    if (name === undefined)
      throw refusal(`--faults has \`${part}\`. Accepted: NAME=PROBABILITY, such as http-429=0.1.`);
    faults[name] = Number(probability);
  }
  return faults;
}

function ready(
  source: string,
  { baseUrl, origin, days, records }: Simulator,
  { example, env = {} }: SimulatorKind,
): string {
  const environment = { ...env, MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(origin).host };
  const given = Object.entries(environment)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
  const [first, last] = [days[0] ?? "", days.at(-1) ?? ""];
  // Not in columns, which would break a command that is longer than a line.
  return `
A simulator of ${source} is at ${baseUrl}
It has ${records().length} records from ${first} to ${last}.

Ask it for those of the last day:
${indent([`curl -g '${baseUrl}${example(last)}'`])}
See what has arrived:
${indent([`curl ${origin}/_simulator/requests`])}
Let a server call it, point the definition at it, and harvest its last days:
${indent([
  `${given} millrace serve`,
  `millrace harvest apply ${definitionFile(source)} --base-url ${baseUrl}`,
  `millrace harvest run ${source} --last P2D`,
])}

Press Ctrl-C to stop it.
`;
}

/** The shipped one; relative to the working directory if it is below it. */
function definitionFile(source: string): string {
  const file = join(PACKAGE_ROOT, `sources/${source}.yaml`);
  const below = relative(process.cwd(), file);
  return below.startsWith("..") ? file : below;
}

function refusal(problem: string): OperatorError {
  return new OperatorError(`${problem} See \`millrace simulate --help\`.`, EXIT.usage);
}
