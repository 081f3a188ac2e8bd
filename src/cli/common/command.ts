/** What a command is: its help and its work in one place, so that neither can exist without the other. */
import type { FlagHelp } from "../../kernel/config/describe.ts";

/** One with a placeholder (`--worker <name>`) takes a value, one without (`--json`) is a switch. */
export interface Flag extends FlagHelp {
  required?: true;
}

export interface Command {
  /** One line, for the list of commands. */
  summary: string;
  /** Further paragraphs for its own help. */
  details?: string;
  /** The arguments' names: `STAGE FILE [SHARD]`, in brackets those that may be left out; `WORD...` takes all that follow. */
  args: string;
  /** Whether a command line to run follows behind `--`. */
  takesCommandLine?: true;
  flags: readonly Flag[];
  examples: readonly string[];
  /** The settings it reads from the environment, for its help. */
  environment?: string;
  /** Answers its exit code. */
  run(given: Given): Promise<number>;
}

/** Commands that share a first word; some of them may be families in turn. */
export interface Family {
  summary: string;
  details: string;
  commands: Readonly<Record<string, Command | Family>>;
}

/** What was typed, by name: arguments as in `args`, flags with their dashes. Asking for an undeclared name is a bug. */
export interface Given {
  /** One that is always there. */
  text(name: string): string;
  maybeText(name: string): string | undefined;
  /** All values of an argument that takes several. */
  texts(name: string): readonly string[];
  number(name: string): number;
  maybeNumber(name: string): number | undefined;
  /** Whether a switch was given. */
  isOn(name: string): boolean;
  /** All flags with values, by their names without dashes. */
  flags: Readonly<Record<string, string>>;
  /** What stands behind `--`, for a command that takes a command line. */
  commandLine: readonly string[];
}
