/**
 * The configuration of the commands that talk to a running server. It stands apart from load.ts, whose readers of YAML and
 * JSON Schema take 300 ms to load: a shell script runs these commands in a loop.
 */
import { type Environment, type Flags, readSettings, refusal } from "./read-settings.ts";
import type { Settings } from "./settings.ts";

export type ClientConfig = Settings<"client">;

export function loadClientConfig({ env, flags }: { env: Environment; flags: Flags }): ClientConfig {
  const { values, problems } = readSettings("client", env, flags);
  if (problems.length > 0) throw refusal(problems);
  return values;
}
