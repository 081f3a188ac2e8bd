/** The definition of a command: its help and its implementation. */
import type { FlagHelp } from "../../kernel/config/describe.ts";

/** With a placeholder (`--worker <name>`) it takes a value, without (`--json`) it is a switch. */
export interface Flag extends FlagHelp {
  required?: true;
  /** It may be given several times; `texts` has all values. */
  repeatable?: true;
}

export interface Command {
  /** One line, for the list of commands. */
  summary: string;
  /** Further paragraphs of its help. */
  details?: string;
  /** The names of the arguments: `STAGE FILE [SHARD]`, optional ones in brackets; `WORD...` takes all remaining values. */
  args: string;
  /** It takes a command line to run after `--`. */
  takesCommandLine?: true;
  flags: readonly Flag[];
  examples: readonly string[];
  /** The settings it reads from the environment, for its help. */
  environment?: string;
  /** Returns the exit code. */
  run(given: Given): Promise<number>;
}

/** Commands with a common first word; a command may be a family again. */
export interface Family {
  summary: string;
  details: string;
  commands: Readonly<Record<string, Command | Family>>;
}

/** The parsed command line, by name: arguments as in `args`, flags with their dashes. Undeclared names are a bug. */
export interface Given {
  /** A required one. */
  text(name: string): string;
  maybeText(name: string): string | undefined;
  /** All values of an argument or flag that takes several. */
  texts(name: string): readonly string[];
  number(name: string): number;
  maybeNumber(name: string): number | undefined;
  /** Whether a switch was given. */
  isOn(name: string): boolean;
  /** All flags with values, by their names without dashes; without those that may be given several times. */
  flags: Readonly<Record<string, string>>;
  /** The words after `--`, for a command that takes a command line. */
  commandLine: readonly string[];
}
