/**
 * The configuration of commands that call a running server. Separate from load.ts, whose YAML and JSON Schema libraries take
 * 300 ms to load: shell scripts run these commands in loops.
 */
import { type Environment, type Flags, readSettings, refusal, unknownNames } from "./read-settings.ts";
import { CLIENT_SETTINGS, type ClientSettings, type Setting } from "./settings.ts";

export type ClientConfig = ClientSettings;

export interface ClientSources {
  env: Environment;
  flags: Flags;
  /** Every setting there is: those of a server may stand in the same environment. */
  known: readonly Setting[];
}

export function loadClientConfig({ env, flags, known }: ClientSources): ClientConfig {
  const { values, problems } = readSettings(CLIENT_SETTINGS, env, flags);
  const all = [...unknownNames(env, known), ...problems];
  if (all.length > 0) throw refusal(all);
  return values;
}
