/**
 * What SQL may reach through DuckDB: files of the lake and of the engine's `directories`, and nothing that lasts beyond its
 * query for others. By itself DuckDB lets SQL read every file of the process (keys and passwords too), call any address,
 * load native code and change the settings of all queries.
 *
 * DuckDB enforces the files and the settings. It has no setting for what this file refuses: functions that change the state
 * of the database for all (`enable_logging`, given a folder that is not allowed, even ends the process), and functions that
 * run SQL from a string, which would bypass the check of names.
 */
import { type DuckDBConnection, StatementType } from "@duckdb/node-api";
import { EngineRefusal } from "./engine.ts";
import { LAKE_CATALOG } from "./lake-views.ts";
import { literal } from "./sql-text.ts";
import { sqlTokens } from "./sql-tokens.ts";

/** Refused wherever they stand, since no other SQL has such names. */
const REFUSED_NAMES =
  /\b(?:(?:enable|disable)_(?:logging|profiling)|truncate_duckdb_logs|query_table|json_execute_serialized_sql|import_database)\b/i;
const REFUSED_STATEMENTS: ReadonlyMap<StatementType, string> = new Map([
  [StatementType.LOAD, "INSTALL and LOAD"],
  [StatementType.PRAGMA, "A pragma that changes DuckDB"],
]);
const IN_SETTINGS = "To allow it, set `unrestricted: true` for the engine in millrace.yaml.";

/** Called when the database is open; it cannot be undone. */
export async function restrict(connection: DuckDBConnection, directories: readonly string[]): Promise<void> {
  await connection.run(`set allowed_directories = [${directories.map(literal).join(", ")}]`);
  await connection.run("set enable_external_access = false");
  await connection.run("set lock_configuration = true");
}

/** Called before DuckDB parses the SQL, because parsing `import database` already reads its files. */
export function refuseChanges(sql: string): void {
  const [name] = REFUSED_NAMES.exec(sql) ?? [];
  if (name !== undefined) throw refusal(`The function ${name}`);
  let previous = "";
  let isDetach = false;
  for (const { kind, text } of sqlTokens(sql)) {
    if (kind === "blank") continue;
    const word = text.replace(/^"(.*)"$/s, "$1").toLowerCase();
    if (previous === "import" && word === "database") throw refusal("IMPORT DATABASE");
    if (previous === "query" && word === "(") throw refusal("The function query");
    isDetach = word === "detach" || (isDetach && kind !== "semicolon");
    if (isDetach && word === LAKE_CATALOG) throw refusal("DETACH of the lake's tables");
    previous = word;
  }
}

export function refuseStatement(type: StatementType): void {
  const what = REFUSED_STATEMENTS.get(type);
  if (what !== undefined) throw refusal(what);
}

function refusal(what: string): EngineRefusal {
  return new EngineRefusal(`${what} would change DuckDB for all queries, so it is refused. ${IN_SETTINGS}`);
}

/** What to do about an error of DuckDB that `restrict` caused. */
export function adviceFor(message: string, directories: readonly string[]): string {
  if (message.startsWith("Permission Error: Cannot access ")) {
    const places = directories.length === 0 ? "no files" : `only files in ${directories.join(", ")}`;
    return `SQL may use ${places}; \`directories\` of the engine in millrace.yaml names more.`;
  }
  if (message.includes("the configuration has been locked")) {
    return `Settings of DuckDB apply to all queries, so SQL may not change them. ${IN_SETTINGS}`;
  }
  return "";
}
