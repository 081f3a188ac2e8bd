/** A whole Millrace in the test's process, on its own port: real HTTP and Postgres without the time to start a process. */
import { afterAll, beforeAll } from "vitest";
import { type Config, configure, type Millrace, start } from "../src/app.ts";
import { ADMIN_KEY } from "./admin-key.ts";
import { type Api, api } from "./client.ts";
import type { TestDatabase } from "./database.ts";

export { ADMIN_KEY };

export interface TestMillrace {
  url: string;
  /** With the admin key. */
  api: Api;
  app: Millrace;
}

export interface MillraceOptions {
  /** Where the built page of the console is. */
  consoleDir?: string;
  env?: Record<string, string>;
  tracking?: Partial<Config["sections"]["tracking"]>;
  chains?: Partial<Config["sections"]["chains"]>;
  arrivals?: Partial<Config["sections"]["arrivals"]>;
  webhooks?: Partial<Config["sections"]["webhooks"]>;
  lineage?: Partial<Config["sections"]["lineage"]>;
}

/** Call it at the top of a test file, after `useDatabase`. It has only the role `api` unless `env` sets others, so that nothing is reclaimed. */
export function useMillrace(database: TestDatabase, options: MillraceOptions = {}): TestMillrace {
  const millrace = {} as TestMillrace;
  beforeAll(async () => {
    Object.assign(millrace, await startMillrace(database, options));
  });
  afterAll(() => millrace.app.stop());
  return millrace;
}

/** The same for a test that stops it itself. */
export async function startMillrace(database: TestDatabase, options: MillraceOptions = {}): Promise<TestMillrace> {
  const env = {
    DATABASE_URL: database.url,
    MILLRACE_PORT: "0",
    MILLRACE_ADMIN_KEY: ADMIN_KEY,
    MILLRACE_LOG_LEVEL: "fatal",
    MILLRACE_ROLES: "api",
    ...options.env,
  };
  const config = await configure({ env, flags: {}, cwd: import.meta.dirname });
  const sections = {
    ...config.sections,
    tracking: { ...config.sections.tracking, ...options.tracking },
    chains: { ...config.sections.chains, ...options.chains },
    arrivals: { ...config.sections.arrivals, ...options.arrivals },
    webhooks: { ...config.sections.webhooks, ...options.webhooks },
    lineage: { ...config.sections.lineage, ...options.lineage },
  };
  const { consoleDir } = options;
  const app = await start({
    config: { ...config, sections },
    cwd: import.meta.dirname,
    print: () => {},
    ...(consoleDir === undefined ? {} : { consoleDir }),
  });
  return { app, url: app.url, api: api(app.url, ADMIN_KEY) };
}
