/**
 * Runs the command that the first word names, and turns errors into a message and an exit code. Commands are imported on demand,
 * so that a client does not load the server's code.
 */
import { OperatorError } from "../kernel/errors.ts";
import { VERSION } from "../version.ts";
import { withCauses } from "./common/causes.ts";
import type { Command, Family } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { exitCodesHelp, indent, pairs, sections } from "./common/help.ts";
import { print, printable } from "./common/output.ts";
import { choose, isHelpFlag, run } from "./common/run.ts";

const COMMANDS: Readonly<Record<string, () => Promise<Command | Family>>> = {
  demo: async () => (await import("./demo.ts")).demo,
  serve: async () => (await import("./serve.ts")).serve,
  migrate: async () => (await import("./migrate.ts")).migrate,
  console: async () => (await import("./console.ts")).consoleLink,
  keys: async () => (await import("./keys.ts")).keys,
  secrets: async () => (await import("./secrets.ts")).secrets,
  doctor: async () => (await import("./doctor.ts")).doctor,
  pipeline: async () => (await import("./pipeline/index.ts")).pipeline,
  chain: async () => (await import("./chain/index.ts")).chain,
  arrive: async () => (await import("./kpi/arrive.ts")).arrive,
  kpi: async () => (await import("./kpi/index.ts")).kpi,
  harvest: async () => (await import("./harvest/index.ts")).harvest,
  lineage: async () => (await import("./lineage/index.ts")).lineage,
  simulate: async () => (await import("./simulate.ts")).simulate,
};

/** Returns the exit code. Errors are reported here and have one too. */
export async function main(words: readonly string[]): Promise<number> {
  return dispatch(words).catch(reportError);
}

async function dispatch([word, ...rest]: readonly string[]): Promise<number> {
  if (word === "--version" || word === "-v") {
    print(VERSION);
    return EXIT.ok;
  }
  if (word === "help" && rest.length > 0) return dispatch([...rest, "--help"]);
  if (word === undefined || word === "help" || isHelpFlag(word)) {
    print(await help());
    return word === undefined ? EXIT.usage : EXIT.ok;
  }
  const load = choose("millrace", COMMANDS, word);
  return run(`millrace ${word}`, await load(), rest);
}

async function help(): Promise<string> {
  const commands = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]) => [name, (await load()).summary] as const),
  );
  return sections([
    ["", "millrace COMMAND [flags]"],
    ["", "Millrace is the control plane between a data source and a published metric."],
    ["Commands", pairs(commands)],
    [
      "To begin",
      indent([
        "$ millrace serve              # starts everything and prints a key",
        "$ export MILLRACE_KEY=mlr_...  # that key, in another terminal",
        "$ millrace pipeline register orders.csv --shards 0-3",
        "$ millrace pipeline show orders.csv",
      ]),
    ],
    ["Exit codes", exitCodesHelp()],
    ["", "Each command has its own help: millrace serve --help. A running server shows its API at /docs."],
  ]);
}

function reportError(error: unknown): number {
  if (error instanceof OperatorError) {
    process.stderr.write(`${error.message.split("\n").map(printable).join("\n")}\n`);
    return error.exitCode;
  }
  const [first, ...causes] = withCauses(error);
  const lines = [stackOf(first), ...causes.map((cause) => `caused by ${stackOf(cause)}`)].join("\n");
  process.stderr.write(`This is a bug in Millrace ${VERSION}. Please report it, with these lines:\n${lines}\n`);
  return EXIT.failed;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
