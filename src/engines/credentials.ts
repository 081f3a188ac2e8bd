/** Replaces the environment references in the URLs, passwords and tokens of engines, and checks the results. */

import { OperatorError } from "../kernel/errors.ts";
import { type Environment, withEnvironment } from "../kernel/secrets/environment-references.ts";
import type { EngineSettings, EnginesSettings, TrinoSettings } from "./settings.ts";

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** The characters that are safe in a header. */
const VISIBLE = /^[!-~]+$/;

export function withCredentials(settings: EnginesSettings, env: Environment): EnginesSettings {
  return Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, resolved(setting, { engine: name, env })]),
  );
}

interface Place {
  engine: string;
  env: Environment;
}

function resolved(setting: EngineSettings, place: Place): EngineSettings {
  if (setting.kind === "duckdb") return setting;
  const url = replaced(setting.url, "url", place);
  if (setting.kind === "postgres") {
    if (/^postgres(ql)?:\/\//.test(url)) return { ...setting, url };
    throw wrong(place.engine, "url", "begins with neither postgres:// nor postgresql://");
  }
  const trino: TrinoSettings = { ...setting, url };
  if (setting.password !== undefined) trino.password = replaced(setting.password, "password", place);
  if (setting.token !== undefined) trino.token = replaced(setting.token, "token", place);
  const problem = problemOf(trino);
  if (problem) throw wrong(place.engine, ...problem);
  return trino;
}

function replaced(text: string, key: string, { engine, env }: Place): string {
  return withEnvironment(text, placeOf(engine, key), env, key === "url" ? encodeURIComponent : undefined);
}

/** What is wrong, and with which setting. */
function problemOf({ url, password, token }: TrinoSettings): [key: string, what: string] | undefined {
  const { protocol, hostname = "", username, search, hash } = URL.canParse(url) ? new URL(url) : {};
  const isHttp = protocol === "http:" || protocol === "https:";
  if (!isHttp) return ["url", "is not a URL such as https://trino.internal:8443"];
  if (username || search || hash) {
    return ["url", "has more than a host, a port and a path. Set `user`, and `password` or `token`, for the login"];
  }
  if (password !== undefined && token !== undefined)
    return ["token", "is set beside a `password`. Set only one of the two"];
  if (token !== undefined && !VISIBLE.test(token)) {
    return ["token", "has a space, a line break or a character that a header cannot hold"];
  }
  const isPlainText = protocol === "http:" && !LOOPBACK.test(hostname);
  if (!isPlainText || (password ?? token) === undefined) return undefined;
  return ["url", "begins with http://, which would send the password or token unencrypted. Use https://"];
}

function wrong(name: string, key: string, what: string): OperatorError {
  return new OperatorError(`${placeOf(name, key)} ${what}.`);
}

function placeOf(name: string, key: string): string {
  return `The \`${key}\` of the engine \`${name}\` in millrace.yaml`;
}
