/** Creates the configured engines, and the built-in engine `duckdb`. */
import { join } from "node:path";
import { didYouMean } from "../kernel/nearest.ts";
import type { Environment } from "../kernel/secrets/environment-references.ts";
import { createSlots } from "../kernel/work/slots.ts";
import { withCredentials } from "./credentials.ts";
import { type Driver, ENGINE_DEFAULT, type Engine, EngineRefusal, type Engines } from "./engine.ts";
import { lazyEngine } from "./lazy-engine.ts";
import type { EngineSettings, EnginesSettings } from "./settings.ts";

/**
 * DuckDB runs each query on a thread of Node's pool. The pool has four, which also serve file reads, DNS lookups and hashing:
 * during four long queries, reading a small file took as long as the queries. So all DuckDB engines share two slots.
 */
const DUCKDB_QUERIES_MAX = 2;
/** For each engine on another server. */
const REMOTE_QUERIES_MAX = 4;

export interface EnginesDeps {
  lakeDir: string | undefined;
  /** The value of `${env.NAME}` in the settings. */
  env?: Environment;
}

export function createEngines(settings: EnginesSettings, deps: EnginesDeps): Engines {
  const { lakeDir, env = process.env } = deps;
  const duckDbSlots = createSlots(DUCKDB_QUERIES_MAX);
  const configured: EnginesSettings = { [ENGINE_DEFAULT]: { kind: "duckdb" }, ...withCredentials(settings, env) };
  const engines = new Map(
    Object.entries(configured).map(([name, setting]): [string, Engine] => {
      const slots = setting.kind === "duckdb" ? duckDbSlots : createSlots(REMOTE_QUERIES_MAX);
      const open = () => openDriver(name, setting, lakeDir);
      return [name, lazyEngine({ name, kind: setting.kind, slots, open })];
    }),
  );

  return {
    get(name) {
      const engine = engines.get(name);
      if (engine) return engine;
      const names = [...engines.keys()];
      throw new EngineRefusal(
        `There is no engine \`${name}\`.${didYouMean(name, names)} Known: ${names.join(", ")}. Others are named under \`engines\` in millrace.yaml.`,
      );
    },
    names: () => [...engines.keys()],
    async close() {
      await Promise.all([...engines.values()].map((engine) => engine.close()));
    },
  };
}

/** Imports a driver when it is used: DuckDB is 50 MB of native code that most processes never need. */
async function openDriver(name: string, setting: EngineSettings, lakeDir: string | undefined): Promise<Driver> {
  switch (setting.kind) {
    case "duckdb": {
      const { openDuckDb } = await import("./duckdb.ts");
      return openDuckDb({ ...setting, ...defaultPath(name, lakeDir, setting.path) }, lakeDir);
    }
    case "postgres": {
      const { openPostgres } = await import("./postgres.ts");
      // One more for the health check of a busy engine.
      return openPostgres(setting, { name, connectionsMax: REMOTE_QUERIES_MAX + 1 });
    }
    case "trino": {
      const { openTrino } = await import("./trino.ts");
      return openTrino(setting);
    }
  }
}

function defaultPath(name: string, lakeDir: string | undefined, path: string | undefined): { path?: string } {
  return path === undefined && lakeDir !== undefined ? { path: join(lakeDir, `${name}.duckdb`) } : {};
}
