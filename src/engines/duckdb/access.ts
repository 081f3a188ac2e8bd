/**
 * What SQL may reach through DuckDB: files of the lake and of the engine's `directories`. By itself DuckDB lets SQL read every
 * file of the process (keys and passwords too), call any address, load native code and change the settings of all queries.
 *
 * DuckDB enforces the files and the settings. It has no setting for what this file refuses: functions that change the database
 * for all (`enable_logging`, given a folder that is not allowed, even ends the process), functions that run SQL from a string,
 * which would bypass the check of names, and DETACH of the databases that all queries need.
 */
import { type DuckDBConnection, StatementType } from "@duckdb/node-api";
import { EngineRefusal } from "../engine.ts";
import { literal } from "../sql/text.ts";
import { sqlTokens } from "../sql/tokens.ts";

/**
 * Refused wherever they stand, in strings too: other SQL rarely has such names. `use_tmp_file` would let `copy` write over
 * DuckDB's own log.
 */
const REFUSED_NAMES =
  /\b(?:(?:enable|disable)_(?:logging|profiling)|truncate_duckdb_logs|use_tmp_file|query_table|json_execute_serialized_sql|import_database)\b/i;
const RUNS_SQL = new Set(["query_table", "json_execute_serialized_sql", "import_database"]);
const REFUSED_STATEMENTS: ReadonlyMap<StatementType, string> = new Map([
  [StatementType.LOAD, "INSTALL and LOAD"],
  [StatementType.PRAGMA, "A pragma that changes DuckDB"],
]);
const ADDRESS = /^\w+:\/\//;
const IN_SETTINGS = "To allow it, set `unrestricted: true` for the engine in millrace.yaml.";

/** Called when the database is open; it cannot be undone. */
export async function restrict(connection: DuckDBConnection, directories: readonly string[]): Promise<void> {
  await connection.run(`set allowed_directories = [${directories.map(literal).join(", ")}]`);
  await connection.run("set enable_external_access = false");
  await connection.run("set lock_configuration = true");
}

/**
 * Called before DuckDB parses the SQL, because parsing `import database` already reads its files. `databases` are those that
 * all queries need.
 */
export function refuseChanges(sql: string, databases: ReadonlySet<string>): void {
  const [name] = REFUSED_NAMES.exec(sql) ?? [];
  if (name !== undefined) throw refusal(`The name ${name}`, RUNS_SQL.has(name.toLowerCase()));
  let previous = "";
  let isDetach = false;
  for (const { kind, text } of sqlTokens(sql)) {
    if (kind === "blank") continue;
    const word = text
      .replace(/^"(.*)"$/s, "$1")
      .replaceAll('""', '"')
      .toLowerCase();
    if (previous === "import" && word === "database") throw refusal("IMPORT DATABASE", true);
    if (previous === "query" && word === "(") throw refusal("The function query", true);
    isDetach = word === "detach" || (isDetach && kind !== "semicolon");
    if (isDetach && databases.has(word)) throw refusal(`DETACH of ${text}`);
    previous = word;
  }
}

export function refuseStatement(type: StatementType): void {
  const what = REFUSED_STATEMENTS.get(type);
  if (what !== undefined) throw refusal(what);
}

function refusal(what: string, runsSql = false): EngineRefusal {
  const why = runsSql ? "runs SQL that cannot be checked" : "would change DuckDB for all queries";
  return new EngineRefusal(`${what} is refused, because it ${why}. ${IN_SETTINGS}`);
}

/** The sentences of an error, and what to do if `restrict` caused it. */
export function withAdvice(message: string, directories: readonly string[]): string {
  const advice = adviceFor(message, directories);
  if (advice === undefined) return message;
  // Lists of runs show only the first line.
  const [first = "", ...others] = message.split("\n");
  return [`${first.replace(/\.?$/, ".")} ${advice}`, ...others].join("\n");
}

function adviceFor(message: string, directories: readonly string[]): string | undefined {
  const [, path] = /^Permission Error: Cannot access \w+ "(.*)"/.exec(message) ?? [];
  if (path !== undefined && ADDRESS.test(path)) return `SQL may call no addresses. ${IN_SETTINGS}`;
  if (path !== undefined) {
    const places = directories.length === 0 ? "no files" : `only files in ${directories.join(", ")}`;
    return `SQL may use ${places}; \`directories\` of the engine in millrace.yaml names more.`;
  }
  if (!message.includes("the configuration has been locked")) return undefined;
  return `Settings of DuckDB apply to all queries, so SQL may not change them. ${IN_SETTINGS}`;
}
