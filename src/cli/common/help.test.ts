/** The help texts, and that their examples work. */
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { startCli } from "../../../test/cli.ts";
import { cliFor, runCli } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { OperatorError } from "../../kernel/errors.ts";
import { chain } from "../chain/index.ts";
import { demo } from "../demo.ts";
import { doctor } from "../doctor.ts";
import { harvest } from "../harvest/index.ts";
import { keys } from "../keys.ts";
import { arrive } from "../kpi/arrive.ts";
import { kpi } from "../kpi/index.ts";
import { lineage } from "../lineage/index.ts";
import { migrate } from "../migrate.ts";
import { pipeline } from "../pipeline/index.ts";
import { secrets } from "../secrets.ts";
import { serve } from "../serve.ts";
import { simulate } from "../simulate.ts";
import type { Command, Family } from "./command.ts";
import { EXIT_CODES } from "./exit-codes.ts";
import { commandHelp } from "./help.ts";
import { parse } from "./parse.ts";

const families: Record<string, Family> = {
  "millrace keys": keys,
  "millrace secrets": secrets,
  "millrace pipeline": pipeline,
  "millrace chain": chain,
  "millrace kpi": kpi,
  "millrace harvest": harvest,
  "millrace lineage": lineage,
};
const commands: [path: string, command: Command][] = [
  ["millrace demo", demo],
  ["millrace serve", serve],
  ["millrace migrate", migrate],
  ["millrace doctor", doctor],
  ["millrace arrive", arrive],
  ["millrace simulate", simulate],
  ...Object.entries(families).flatMap(([path, family]) => commandsIn(path, family)),
];

function commandsIn(path: string, family: Family): [path: string, command: Command][] {
  return Object.entries(family.commands).flatMap(([name, entry]): [string, Command][] =>
    "commands" in entry ? commandsIn(`${path} ${name}`, entry) : [[`${path} ${name}`, entry]],
  );
}

const millrace = (...words: string[]) => runCli(words);
const ALL =
  "Commands: demo, serve, migrate, console, keys, secrets, doctor, pipeline, chain, arrive, kpi, harvest, lineage, simulate. See `millrace --help`.";

describe.each(commands)("%s --help", (path, command) => {
  test("shows usage, flags and examples within a terminal's width", () => {
    const help = commandHelp(path, command);
    expect(help).toContain(`${path} ${command.args}`.trim());
    for (const { usage } of command.flags) expect(help).toContain(usage);
    expect(command.examples.length).toBeGreaterThan(0);
    const prose = help.split("\n").filter((line) => !line.startsWith("  $ "));
    expect(prose.filter((line) => line.length > 100)).toEqual([]);
  });

  test("shows only examples that the command accepts", () => {
    for (const example of command.examples) {
      expect(example).toContain(path);
      expect(() => parse(command, wordsOf(path, example), refuse), example).not.toThrow();
    }
  });
});

/** The words that a shell passes to the command: up to a pipe or redirection, without quotes. */
function wordsOf(path: string, example: string): string[] {
  const words = example.slice(example.indexOf(path) + path.length).replace(/ (\||2>).*$/, "");
  const printed = execFileSync("bash", ["-c", `printf '%s\\0' ${words}`], { encoding: "utf8" });
  return printed
    .split("\0")
    .slice(0, -1)
    .filter((word) => word !== "");
}

const refuse = (problem: string) => new OperatorError(problem);

describe("examples that pick one value from a reply", () => {
  const server = useMillrace(useDatabase());
  const picks = commands.flatMap(([path, command]) =>
    command.examples.flatMap((example) => {
      const picked = /\| jq '\.([\w.]+)'$/.exec(example)?.[1];
      return picked === undefined ? [] : [{ example, picked, words: [...path.split(" "), ...wordsOf(path, example)] }];
    }),
  );

  test.each(picks)("$example selects an existing value", async ({ picked, words }) => {
    const { stdout } = await cliFor(server)(...words.slice(1));
    expect(JSON.parse(stdout)).toHaveProperty(picked);
  });

  test("were found", () => {
    expect(picks).not.toEqual([]);
  });
});

describe("millrace", () => {
  test("--help lists the commands and the exit codes", async () => {
    const { exit, stdout, stderr } = await millrace("--help");
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
    for (const name of [
      "demo",
      "serve",
      "migrate",
      "keys",
      "secrets",
      "doctor",
      "pipeline",
      "chain",
      "arrive",
      "kpi",
      "lineage",
      "simulate",
    ])
      expect(stdout).toMatch(new RegExp(`^  ${name} +\\w`, "m"));
    for (const [code, meaning] of EXIT_CODES) expect(stdout).toContain(`  ${code}  ${meaning}`);
  });

  test("without a command shows the help and counts as wrong usage", async () => {
    const { exit, stdout } = await millrace();
    expect(exit).toBe(2);
    expect(stdout).toContain("millrace COMMAND [flags]");
    expect((await millrace("pipeline")).exit).toBe(2);
  });

  test("help COMMAND and COMMAND --help are the same", async () => {
    const [asked, flagged] = await Promise.all([
      millrace("help", "pipeline", "claim"),
      millrace("pipeline", "claim", "-h"),
    ]);
    expect(asked).toEqual(flagged);
    expect(asked.stdout).toContain("millrace pipeline claim STAGE --worker <name> [flags]");
  });

  test("pipeline --help shows a script for a worker", async () => {
    const { exit, stdout } = await millrace("pipeline", "--help");
    expect(exit).toBe(0);
    expect(stdout).toContain("while IFS=$'\\t' read -r file shard fence; do");
  });

  test("serve --help lists the settings, with and without flags, and where to read more", async () => {
    const { stdout } = await millrace("serve", "--help");
    for (const word of [
      "--port <number>",
      "MILLRACE_PORT, default 7400",
      "DATABASE_URL",
      "MILLRACE_ADMIN_KEY",
      "/docs",
    ]) {
      expect(stdout.replaceAll(/\s+/g, " ")).toContain(word);
    }
  });

  test("--version prints the version and nothing else", async () => {
    expect(await startCli(["--version"]).ended).toEqual({ exit: 0, stdout: "0.1.0\n", stderr: "" });
  });

  test.each([
    [["piepline"], "There is no command `millrace piepline`. Did you mean `pipeline`? See `millrace --help`."],
    [
      ["pipeline", "clam"],
      "There is no command `millrace pipeline clam`. Did you mean `claim`? See `millrace pipeline --help`.",
    ],
    [["constructor"], `There is no command \`millrace constructor\`. ${ALL}`],
    [["chain", "list"], "There is no command `millrace chain list`. Did you mean `ls`? See `millrace chain --help`."],
    [["keys", "ls"], "There is no command `millrace keys ls`. Did you mean `list`? See `millrace keys --help`."],
    [
      ["keys", "delete"],
      "There is no command `millrace keys delete`. Commands: create, list, revoke. See `millrace keys --help`.",
    ],
    [
      ["--port", "1", "serve"],
      "The command comes before its flags: `millrace COMMAND [flags]`. See `millrace --help`.",
    ],
    [
      ["pipeline", "claim", "shard-worker", "--wrker", "w"],
      "--wrker is not a flag here. Did you mean `--worker`? See `millrace pipeline claim --help`.",
    ],
    [["serve", "--prot", "1"], "--prot is not a flag here. Did you mean `--port`? See `millrace serve --help`."],
    [["serve", "--port", "x"], "--port is `x`. Accepted: a whole number from 0 to 65535."],
    [
      ["keys", "create", "x", "--scopes", "pipeline:raed"],
      "There is no scope `pipeline:raed`. Did you mean `pipeline:read`?",
    ],
    [["pipeline", "show", "\u001b[2J", "x"], "`x` is one argument too many. See `millrace pipeline show --help`."],
    [["\u001b[2J"], `There is no command \`millrace \\u001b[2J\`. ${ALL}`],
  ])("%j is refused with a message and exit code 2", async (words, sentence) => {
    expect(await millrace(...words)).toEqual({ exit: 2, stdout: "", stderr: `${sentence}\n` });
  });

  test("a misspelt setting in the environment stops a client too", async () => {
    const { exit, stderr } = await runCli(["pipeline", "ls"], { MILLRACE_ULR: "http://127.0.0.1:1" });
    expect({ exit, stderr }).toEqual({
      exit: 2,
      stderr: "MILLRACE_ULR is not a setting. Did you mean `MILLRACE_URL`?\n",
    });
  });
});
