/** Fills in the addresses, passwords and tokens of engines that the settings take from the environment, and checks them. */

import { OperatorError } from "../kernel/errors.ts";
import { type Environment, withEnvironment } from "../kernel/secrets/environment.ts";
import type { EngineSettings, EnginesSettings, TrinoSettings } from "./settings.ts";

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** What a header may hold. */
const VISIBLE = /^[!-~]+$/;

export function withSecrets(settings: EnginesSettings, env: Environment): EnginesSettings {
  return Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, resolved(setting, { name, env })]),
  );
}

interface Place {
  /** The engine's. */
  name: string;
  env: Environment;
}

function resolved(setting: EngineSettings, place: Place): EngineSettings {
  if (setting.kind === "duckdb") return setting;
  const url = replaced(setting.url, "url", place);
  if (setting.kind === "postgres") {
    if (/^postgres(ql)?:\/\//.test(url)) return { ...setting, url };
    throw wrong(place.name, "url", "begins with neither postgres:// nor postgresql://");
  }
  const trino: TrinoSettings = { ...setting, url };
  if (setting.password !== undefined) trino.password = replaced(setting.password, "password", place);
  if (setting.token !== undefined) trino.token = replaced(setting.token, "token", place);
  const problem = problemOf(trino);
  if (problem) throw wrong(place.name, ...problem);
  return trino;
}

function replaced(text: string, key: string, { name, env }: Place): string {
  return withEnvironment(text, placeOf(name, key), env, key === "url" ? encodeURIComponent : undefined);
}

/** What is wrong, and with which setting. */
function problemOf({ url, password, token }: TrinoSettings): [key: string, what: string] | undefined {
  const { protocol, hostname = "", username, search, hash } = URL.canParse(url) ? new URL(url) : {};
  const isHttp = protocol === "http:" || protocol === "https:";
  if (!isHttp) return ["url", "is no address such as https://trino.internal:8443"];
  if (username || search || hash) {
    return ["url", "has more than a host, a port and a path. The login has settings of its own"];
  }
  if (password !== undefined && token !== undefined)
    return ["token", "stands beside a `password`. Give one of the two"];
  if (token !== undefined && !VISIBLE.test(token)) {
    return ["token", "has a space, a line break or a letter that no header may hold"];
  }
  const isOpen = protocol === "http:" && !LOOPBACK.test(hostname);
  if (!isOpen || (password ?? token) === undefined) return undefined;
  return ["url", "begins with http://, over which a password or a token would be there for all to read. Use https://"];
}

function wrong(name: string, key: string, what: string): OperatorError {
  return new OperatorError(`${placeOf(name, key)} ${what}.`);
}

function placeOf(name: string, key: string): string {
  return `The \`${key}\` of the engine \`${name}\` in millrace.yaml`;
}
