/** Reads tables of settings. Flags take precedence over the environment, and the environment over defaults. */
import { OperatorError } from "../errors.ts";
import { nearest } from "../nearest.ts";
import type { Setting, SettingTable, SettingValues } from "./settings.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** By name without dashes (`data-dir`). The command line parser has already refused unknown flags. */
export type Flags = Readonly<Record<string, string>>;

const PREFIX = "MILLRACE_";
/** Reserved for Millrace's own tests. */
const TEST_PREFIX = "MILLRACE_TEST_";

/** A restart with the same settings fails again, so a distinct exit code lets a supervisor stop restarting. */
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
    const { text, name: source } = originOf(setting, env, flags);
    if (text === undefined) continue;
    const value = setting.kind.parse(text);
    if (value === undefined) problems.push(badValue(setting, { name: source ?? setting.env, text }));
    else values[name] = value;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- filled name by name from the table that gives the type
  return { values: values as SettingValues<Table>, problems };
}

/** All problems in one error. */
export function refusal(problems: readonly string[]): OperatorError {
  const sentence =
    problems.length === 1 ? problems.join() : [`${problems.length} settings are wrong:`, ...problems].join("\n  ");
  return new OperatorError(sentence, EXIT_CODE);
}

interface Source {
  /** Where the value came from: `--port` or `MILLRACE_PORT`. */
  name: string;
  text: string;
}

/** The text of a setting, and where it comes from. */
export function originOf(
  setting: Setting,
  env: Environment,
  flags: Flags,
): { text: string | undefined; origin: "flag" | "environment" | "default" | "unset"; name?: string } {
  const { flag } = setting;
  const flagged = flag === undefined ? undefined : flags[flag];
  if (flagged !== undefined) return { text: flagged.trim(), origin: "flag", name: `--${flag}` };
  // An empty variable counts as unset: shells and compose files write `MILLRACE_PORT=${PORT:-}`.
  const text = env[setting.env]?.trim();
  if (text) return { text, origin: "environment", name: setting.env };
  return { text: setting.default, origin: setting.default === undefined ? "unset" : "default" };
}

function badValue({ kind, secret }: Setting, { name, text }: Source): string {
  if (secret) return `${name} is not valid (its value is secret and not shown). Accepted: ${kind.accepts}.`;
  const found = text === "" ? "has no value" : `is \`${withoutCredentials(text)}\``;
  return `${name} ${found}. Accepted: ${kind.accepts}.${kind.hint?.(text) ?? ""}`;
}

/** `https://user:password@host` without the user and the password. */
export function withoutCredentials(text: string): string {
  return text.replace(/\/\/\S*@/, "//...@");
}

/** Complains about each name in the environment that would be a setting, and is none of those that there are. */
export function unknownNames(env: Environment, settings: readonly Setting[]): string[] {
  const known = new Map(settings.map(({ env: name }) => [withoutPrefix(name), name]));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !name.startsWith(TEST_PREFIX))
    .filter((name) => known.get(withoutPrefix(name)) !== name)
    .map((name) => {
      // Without the prefix, which makes any two names similar, and which DATABASE_URL does not have.
      const meant = nearest(withoutPrefix(name), known.keys());
      return `${name} is not a setting.${meant === undefined ? "" : ` Did you mean \`${known.get(meant)}\`?`}`;
    });
}

function withoutPrefix(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}
