#!/usr/bin/env node
/**
 * The command `millrace`: runs the command that the first word names, and turns errors into a message and an exit code. Commands
 * are imported on demand, so that a client does not load the server's code.
 */
import { withCauses } from "./cli/common/causes.ts";
import type { Command, Family } from "./cli/common/command.ts";
import { EXIT } from "./cli/common/exit-codes.ts";
import { exitCodesHelp, indent, pairs, sections } from "./cli/common/help.ts";
import { print, printable } from "./cli/common/output.ts";
import { choose, isHelpFlag, run } from "./cli/common/run.ts";
import { OperatorError } from "./kernel/errors.ts";
import { VERSION } from "./version.ts";

const COMMANDS: Readonly<Record<string, () => Promise<Command | Family>>> = {
  demo: async () => (await import("./cli/demo.ts")).demo,
  serve: async () => (await import("./cli/serve.ts")).serve,
  migrate: async () => (await import("./cli/migrate.ts")).migrate,
  console: async () => (await import("./cli/console.ts")).consoleLink,
  keys: async () => (await import("./cli/keys.ts")).keys,
  secrets: async () => (await import("./cli/secrets.ts")).secrets,
  doctor: async () => (await import("./cli/doctor.ts")).doctor,
  pipeline: async () => (await import("./cli/pipeline/index.ts")).pipeline,
  chain: async () => (await import("./cli/chain/index.ts")).chain,
  arrive: async () => (await import("./cli/kpi/arrive.ts")).arrive,
  kpi: async () => (await import("./cli/kpi/index.ts")).kpi,
  harvest: async () => (await import("./cli/harvest/index.ts")).harvest,
  lineage: async () => (await import("./cli/lineage/index.ts")).lineage,
  simulate: async () => (await import("./cli/simulate.ts")).simulate,
};

async function main([word, ...rest]: readonly string[]): Promise<number> {
  if (word === "--version" || word === "-v") {
    print(VERSION);
    return EXIT.ok;
  }
  if (word === "help" && rest.length > 0) return main([...rest, "--help"]);
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

// A closed pipe (`| head -1`) is no reason to fail, least of all for a server.
process.stdout.on("error", () => undefined);

process.exitCode = await main(process.argv.slice(2)).catch(reportError);
