/**
 * Parses a command line into a command's input. Values stay text: a fence has more digits than a number can hold, and a worker
 * may be called `007`.
 */
import { parseArgs } from "node:util";
import type { OperatorError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { CATALOGUE } from "../../modules.ts";
import type { Command, Flag, Given } from "./command.ts";

/** Creates the error for wrong usage. */
export type Refuse = (problem: string) => OperatorError;

/** Undefined if help is requested. */
export function parse(command: Command, words: readonly string[], refuse: Refuse): Given | undefined {
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(command.flags.map(tokenKind)),
    strict: false, // Its own errors do not suggest a similar flag.
    tokens: true,
  });
  const options = tokens.filter((token) => token.kind === "option");
  if (options.some(({ name }) => name === "help")) return undefined;
  const { flags, lists, switches } = readFlags(command, options, refuse);

  const end = tokens.find(({ kind }) => kind === "option-terminator")?.index ?? words.length;
  const before: string[] = [];
  const after: string[] = [];
  for (const token of tokens) {
    if (token.kind !== "positional") continue;
    (command.takesCommandLine && token.index > end ? after : before).push(token.value);
  }
  const args = readArguments(command, before, refuse);
  const missing = command.flags.find((flag) => flag.required && !(flagName(flag) in flags));
  if (missing) throw refuse(`\`${missing.usage}\` is missing.`);
  if (command.takesCommandLine && after.length === 0)
    throw refuse("The command to run is missing: write it after `--`.");
  return givenFrom({ args, flags, lists, switches, commandLine: after, refuse });
}

function tokenKind(flag: Flag) {
  const short = flagName(flag) === "help" ? { short: "h" } : {};
  return [flagName(flag), { type: takesValue(flag) ? ("string" as const) : ("boolean" as const), ...short }] as const;
}

interface OptionToken {
  name: string;
  /** With its dashes. */
  rawName: string;
  value?: string | undefined;
  /** The value was given with `=`. */
  inlineValue?: boolean | undefined;
}

function readFlags(command: Command, tokens: readonly OptionToken[], refuse: Refuse) {
  const names = command.flags.map(flagName);
  const flags: Record<string, string> = {};
  const lists: Record<string, string[]> = {};
  const switches = new Set<string>();
  for (const { name, rawName, value, inlineValue } of tokens) {
    const flag = command.flags[names.indexOf(name)];
    if (!flag) throw refuse(unknownFlag(rawName, names));
    if (name in flags || switches.has(name)) throw refuse(`${rawName} is given twice.`);
    if (!takesValue(flag)) {
      if (value !== undefined) throw refuse(`${rawName} takes no value.`);
      switches.add(name);
    } else if (value === undefined || (inlineValue !== true && isFlagOf(value, names))) {
      throw refuse(`${rawName} has no value: \`${flag.usage}\`.`);
    } else if (flag.repeatable) {
      (lists[name] ??= []).push(value);
    } else {
      flags[name] = value;
    }
  }
  return { flags, lists, switches };
}

function readArguments(command: Command, values: readonly string[], refuse: Refuse): Record<string, string[]> {
  const names = command.args.split(" ").filter((name) => name !== "");
  const missing = names.slice(values.length).find((name) => !name.startsWith("["));
  if (missing !== undefined) throw refuse(`${bare(missing)} is missing.`);
  const last = names.at(-1) ?? "";
  const surplus = last.endsWith("...") ? undefined : values[names.length];
  if (surplus !== undefined) {
    const hint = command.takesCommandLine ? " The command to run comes after `--`." : "";
    throw refuse(`\`${surplus}\` is one argument too many.${hint}`);
  }
  const args: Record<string, string[]> = {};
  for (const [index, value] of values.entries()) (args[bare(names[index] ?? last)] ??= []).push(value);
  return args;
}

function givenFrom(parsed: {
  args: Record<string, string[]>;
  flags: Record<string, string>;
  lists: Record<string, string[]>;
  switches: ReadonlySet<string>;
  commandLine: string[];
  refuse: Refuse;
}): Given {
  const maybeText = (name: string) => (name.startsWith("--") ? parsed.flags[name.slice(2)] : parsed.args[name]?.[0]);
  function text(name: string): string {
    const value = maybeText(name);
    if (value === undefined) throw new Error(`${name} is not among the command's required arguments and flags`);
    return value;
  }
  function asNumber(name: string, value: string): number {
    // The server checks the limits; only values that are not numbers are refused here.
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (!Number.isSafeInteger(number)) throw parsed.refuse(`${name} is \`${value}\`. Accepted: a whole number.`);
    return number;
  }
  return {
    text,
    maybeText,
    texts: (name) => (name.startsWith("--") ? parsed.lists[name.slice(2)] : parsed.args[name]) ?? [],
    number: (name) => asNumber(name, text(name)),
    maybeNumber(name) {
      const value = maybeText(name);
      return value === undefined ? undefined : asNumber(name, value);
    },
    isOn: (name) => parsed.switches.has(name.slice(2)),
    flags: parsed.flags,
    commandLine: parsed.commandLine,
  };
}

function flagName({ usage }: Flag): string {
  return /^--([\w-]+)/.exec(usage)?.[1] ?? usage;
}

function takesValue({ usage }: Flag): boolean {
  return usage.includes("<");
}

/** A value may begin with a dash (`--error "- no such table"`), but the name of a flag means that the value is missing. */
function isFlagOf(value: string, names: readonly string[]): boolean {
  return names.some((name) => value === `--${name}` || value.startsWith(`--${name}=`));
}

function unknownFlag(raw: string, names: readonly string[]): string {
  const settings = Object.values(CATALOGUE.settings).flat();
  const unflagged = settings.find(({ env, flag }) => flag === undefined && raw === `--${asFlag(env)}`);
  if (unflagged) return `${raw} is not a flag: set ${unflagged.env} in the environment instead.`;
  const hint = didYouMean(
    raw,
    names.map((name) => `--${name}`),
  );
  return `${raw} is not a flag here.${hint}`;
}

/** `MILLRACE_ADMIN_KEY` to `admin-key`: what someone would try who looks for a flag. */
function asFlag(env: string): string {
  return env.replace("MILLRACE_", "").replaceAll("_", "-").toLowerCase();
}

function bare(argument: string): string {
  return argument.replace(/^\[(.*)\]$/, "$1").replace(/\.\.\.$/, "");
}
