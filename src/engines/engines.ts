/** Creates the configured engines, and the built-in engine `duckdb`. */
import { access, mkdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { didYouMean } from "../kernel/nearest.ts";
import type { Environment } from "../kernel/secrets/environment-references.ts";
import { createSlots } from "../kernel/work/slots.ts";
import { withCredentials } from "./credentials.ts";
import type { Parser } from "./duckdb/syntax.ts";
import { type Driver, ENGINE_DEFAULT, type Engine, EngineRefusal, type Engines } from "./engine.ts";
import { createEngineTables, type EngineTables } from "./engine-tables.ts";
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
  /** For the files of DuckDB engines without a `path`. Not in the lake, where SQL could write over them. Unset: in memory. */
  databaseDir?: string | undefined;
  /** The value of `${env.NAME}` in the settings. */
  env?: Environment;
  openParser?: () => Promise<Parser>;
}

const openDuckDbParser = async (): Promise<Parser> => (await import("./duckdb/syntax.ts")).openParser();

export function createEngines(settings: EnginesSettings, deps: EnginesDeps): Engines & { tables: EngineTables } {
  const { env = process.env, openParser = openDuckDbParser } = deps;
  const duckDbSlots = createSlots(DUCKDB_QUERIES_MAX);
  const configured: EnginesSettings = { [ENGINE_DEFAULT]: { kind: "duckdb" }, ...withCredentials(settings, env) };
  const engines = new Map(
    Object.entries(configured).map(([name, setting]): [string, Engine] => {
      const slots = setting.kind === "duckdb" ? duckDbSlots : createSlots(REMOTE_QUERIES_MAX);
      const open = () => openDriver(name, setting, deps);
      return [name, lazyEngine({ name, kind: setting.kind, slots, open })];
    }),
  );

  function get(name: string): Engine {
    const engine = engines.get(name);
    if (engine) return engine;
    const names = [...engines.keys()];
    throw new EngineRefusal(
      `There is no engine \`${name}\`.${didYouMean(name, names)} Known: ${names.join(", ")}. Others are named under \`engines\` in millrace.yaml.`,
    );
  }
  const tables = createEngineTables(configured, get);
  let parser: Promise<Parser> | undefined;

  return {
    get,
    names: () => [...engines.keys()],
    tables,
    async syntaxError(name, sql) {
      if (get(name).kind !== "duckdb") return undefined;
      // One that could not be opened is opened again for the next statement.
      parser ??= openParser().catch((error: unknown) => {
        parser = undefined;
        throw error;
      });
      return (await parser).errorIn(sql);
    },
    async close() {
      const closed = await Promise.allSettled([
        parser?.then(
          (one) => one.close(),
          () => {}, // Who asked for it has got the error.
        ),
        tables.close(),
        ...[...engines.values()].map((engine) => engine.close()),
      ]);
      const failed = closed.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    },
  };
}

/** Imports a driver when it is used: DuckDB is 50 MB of native code that most processes never need. */
async function openDriver(name: string, setting: EngineSettings, deps: EnginesDeps): Promise<Driver> {
  switch (setting.kind) {
    case "duckdb": {
      const { openDuckDb } = await import("./duckdb/duckdb.ts");
      return openDuckDb({ ...setting, ...(await defaultPath(name, setting.path, deps)) }, deps.lakeDir);
    }
    case "postgres": {
      const { openPostgres } = await import("./postgres/postgres.ts");
      // One more for the health check of a busy engine.
      return openPostgres(setting, { name, connectionsMax: REMOTE_QUERIES_MAX + 1 });
    }
    case "trino": {
      const { openTrino } = await import("./trino/trino.ts");
      return openTrino(name, setting);
    }
  }
}

async function defaultPath(
  name: string,
  path: string | undefined,
  { databaseDir, lakeDir = "" }: EnginesDeps,
): Promise<{ path?: string }> {
  if (path !== undefined || databaseDir === undefined) return {};
  const file = join(databaseDir, `${name}.duckdb`);
  await moveFromLake(join(lakeDir, `${name}.duckdb`), file);
  return { path: file };
}

/** Earlier versions kept the file in the lake. Its log is moved first: a file without its log would lose what is in it. */
async function moveFromLake(earlier: string, file: string): Promise<void> {
  if (!(await exists(earlier)) || (await exists(file))) return;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  if (await exists(`${earlier}.wal`)) await rename(`${earlier}.wal`, `${file}.wal`);
  await rename(earlier, file);
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
