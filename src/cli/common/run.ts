/** Finds the command that a command line names, and runs it or shows its help. */
import { OperatorError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { Command, Family, Flag } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { commandHelp, familyHelp } from "./help.ts";
import { print } from "./output.ts";
import { parse } from "./parse.ts";

/** Names that are too different for `didYouMean`. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["list", "ls"],
  ["ls", "list"],
]);

const HELP: Flag = { usage: "--help", description: "Show this help." };

/** Runs the command or family at `path` (`millrace pipeline`) with the remaining words; returns the exit code. */
export async function run(path: string, entry: Command | Family, words: readonly string[]): Promise<number> {
  if ("commands" in entry) return runFamily(path, entry, words);
  const command = { ...entry, flags: [...entry.flags, HELP] };
  const given = parse(command, words, (problem) => misuse(path, problem));
  if (given) return command.run(given);
  print(commandHelp(path, command));
  return EXIT.ok;
}

async function runFamily(path: string, family: Family, words: readonly string[]): Promise<number> {
  const [word, ...rest] = words;
  if (word === undefined || isHelpFlag(word)) {
    print(familyHelp(path, family));
    return word === undefined ? EXIT.usage : EXIT.ok;
  }
  return run(`${path} ${word}`, choose(path, family.commands, word), rest);
}

/** The command with that name, or an error that suggests a similar one. */
export function choose<Entry>(path: string, commands: Readonly<Record<string, Entry>>, word: string): Entry {
  const entry = Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (entry !== undefined) return entry;
  const problem = word.startsWith("-")
    ? `The command comes before its flags: \`${path} COMMAND [flags]\`.`
    : `There is no command \`${path} ${word}\`.${availableCommands(word, Object.keys(commands))}`;
  throw misuse(path, problem);
}

/** The probably intended command, or else all of them. */
function availableCommands(word: string, names: readonly string[]): string {
  const meant = SYNONYMS.get(word) ?? word;
  return didYouMean(meant, names) || ` Commands: ${names.join(", ")}.`;
}

function misuse(path: string, problem: string): OperatorError {
  return new OperatorError(`${problem} See \`${path} --help\`.`, EXIT.usage);
}

export function isHelpFlag(word: string): boolean {
  return word === "--help" || word === "-h";
}
