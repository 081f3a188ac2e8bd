/**
 * The configuration of the commands that talk to a running server. It stands apart from load.ts, whose readers of YAML and
 * JSON Schema take 300 ms to load: a shell script runs these commands in a loop.
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
