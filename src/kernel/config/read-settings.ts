/** Reads tables of settings: flags win over the environment, the environment over defaults. */
import { OperatorError } from "../errors.ts";
import { nearest } from "../nearest.ts";
import type { Setting, SettingTable, SettingValues } from "./settings.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** By name without dashes (`data-dir`). The command line's parser has refused names that are not flags. */
export type Flags = Readonly<Record<string, string>>;

const PREFIX = "MILLRACE_";
/** For the switches of the project's own tests. */
const TEST_PREFIX = "MILLRACE_TEST_";

/** A start that failed for its settings fails again with the same ones: a code of its own lets a supervisor give up. */
const EXIT_CODE = 2;

/** The values are complete only if there are no problems. */
export function readSettings<Table extends SettingTable>(
  table: Table,
  env: Environment,
  flags: Flags,
): { values: SettingValues<Table>; problems: string[] } {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(table)) {
    const source = sourceOf(setting, env, flags);
    if (!source) continue;
    const value = setting.kind.parse(source.text);
    if (value === undefined) problems.push(badValue(setting, source));
    else values[name] = value;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- filled name by name from the table that gives the type
  return { values: values as SettingValues<Table>, problems };
}

/** All problems in one sentence or list. */
export function refusal(problems: readonly string[]): OperatorError {
  const sentence =
    problems.length === 1 ? problems.join() : [`${problems.length} settings are wrong:`, ...problems].join("\n  ");
  return new OperatorError(sentence, EXIT_CODE);
}

interface Source {
  /** What the person wrote: `--port` or `MILLRACE_PORT`. */
  name: string;
  text: string;
}

function sourceOf(setting: Setting, env: Environment, flags: Flags): Source | undefined {
  const { flag } = setting;
  const flagged = flag === undefined ? undefined : flags[flag];
  if (flagged !== undefined) return { name: `--${flag}`, text: flagged.trim() };
  // An empty variable counts as unset: `MILLRACE_PORT=${PORT:-}` is how shells and compose files leave one out.
  const text = env[setting.env]?.trim() || setting.default;
  return text === undefined ? undefined : { name: setting.env, text };
}

function badValue({ kind, secret }: Setting, { name, text }: Source): string {
  if (secret) return `${name} is not accepted as it is (a secret, so not shown). Accepted: ${kind.accepts}.`;
  const complaint = text === "" ? "has no value" : `is \`${withoutCredentials(text)}\``;
  return `${name} ${complaint}. Accepted: ${kind.accepts}.${kind.hint?.(text) ?? ""}`;
}

/** `https://user:password@host` without the user and the password. */
function withoutCredentials(text: string): string {
  return text.replace(/\/\/\S*@/, "//...@");
}

/** Complains about each name in the environment that would be a setting, and is none of those that there are. */
export function unknownNames(env: Environment, settings: readonly Setting[]): string[] {
  const known = new Map(settings.map(({ env: name }) => [withoutPrefix(name), name]));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !name.startsWith(TEST_PREFIX))
    .filter((name) => known.get(withoutPrefix(name)) !== name)
    .map((name) => {
      // Compared without the prefix: it would make any two names look alike, and hide DATABASE_URL, which has none.
      const meant = nearest(withoutPrefix(name), known.keys());
      return `${name} is not a setting.${meant === undefined ? "" : ` Did you mean \`${known.get(meant)}\`?`}`;
    });
}

function withoutPrefix(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}
