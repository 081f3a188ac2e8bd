/** Makes the engines that the configuration names, and the one that is there without any: `duckdb`. */
import { join } from "node:path";
import { didYouMean } from "../kernel/nearest.ts";
import { type Driver, type Engine, EngineRefusal, type Engines } from "./engine.ts";
import { lazyEngine } from "./lazy-engine.ts";
import type { EnginesSettings } from "./settings.ts";
import { createSlots } from "./slots.ts";

/**
 * DuckDB runs each query on a thread of Node's own pool, which has four, and on which files, name lookups and hashing wait
 * as well: with four long queries reading a small file took as long as they did. So all DuckDB engines share two.
 */
const DUCKDB_QUERIES_MAX = 2;
const POSTGRES_QUERIES_MAX = 4;

export function createEngines(settings: EnginesSettings, { lakeDir }: { lakeDir: string | undefined }): Engines {
  const duckDbSlots = createSlots(DUCKDB_QUERIES_MAX);
  const configured: EnginesSettings = { duckdb: { kind: "duckdb" }, ...settings };
  const engines = new Map(
    Object.entries(configured).map(([name, setting]): [string, Engine] => {
      const isDuckDb = setting.kind === "duckdb";
      const slots = isDuckDb ? duckDbSlots : createSlots(POSTGRES_QUERIES_MAX);
      // Imported only when used: DuckDB is 50 MB of native code that most processes never need.
      const open = async (): Promise<Driver> =>
        setting.kind === "duckdb"
          ? (await import("./duckdb.ts")).openDuckDb({ ...setting, ...defaultPath(name, lakeDir, setting.path) })
          : (await import("./postgres.ts")).openPostgres(setting, { name, connectionsMax: POSTGRES_QUERIES_MAX });
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

function defaultPath(name: string, lakeDir: string | undefined, path: string | undefined): { path?: string } {
  return path === undefined && lakeDir !== undefined ? { path: join(lakeDir, `${name}.duckdb`) } : {};
}
