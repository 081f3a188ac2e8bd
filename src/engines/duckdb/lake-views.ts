/**
 * The tables of the lake, as views of DuckDB: each folder under `tables/` of the lake is a view with its name over its Parquet
 * files. The views are in a separate in-memory database, which comes after the engine's database in the search path.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { HIDDEN, landedFiles, markOf } from "../lake/landed-files.ts";
import { literal, quoted } from "../sql/text.ts";

/** A name that no database file can have, so it cannot collide with one of the operator's. */
export const LAKE_CATALOG = "lake/tables";
const LAKE_VIEWS = "select view_name, sql from duckdb_views() where database_name = $catalog";
/** The SQL of stored views and macros may name tables of the lake as well. */
const STORED_SQL =
  "select sql from duckdb_views() where not internal union all select macro_definition from duckdb_functions() where not internal";

/** A partition was replaced after the files of its table were listed. */
export const FILE_GONE = /^IO Error: (Cannot open file|No files found)/;
/** How often files are listed for one query. */
export const ATTEMPTS_MAX = 5;

export interface LakeViews {
  /** Makes the lake tables that the SQL names visible to the connection, with their present files. */
  prepare(connection: DuckDBConnection, sql: string): Promise<void>;
  /** Why a table has a folder but no view. */
  whyMissing(table: string): string | undefined;
  /** A file of a view is gone, so the next `prepare` lists files again. False if no view can have such a file. */
  refresh(): boolean;
  close(): void;
}

export async function openLakeViews(instance: DuckDBInstance, lakeDir: string): Promise<LakeViews> {
  const folder = join(lakeDir, "tables");
  /** The last change of each view, by table: changes of one view follow each other. */
  const changes = new Map<string, Promise<void>>();
  /** The marks of tables that Millrace writes, when their files were listed. */
  const marks = new Map<string, string>();
  /** The definition of each view that exists, as DuckDB shows it. */
  const definitions = new Map<string, string>();
  /** The tables that any SQL has named so far. */
  const named = new Set<string>();
  const failures = new Map<string, string>();
  const own = await instance.connect();
  const [[home] = []] = await (await own.run("select current_database()")).getRows();
  const stored = (await (await own.run(STORED_SQL)).getRows()).join("\n");
  await own.run(`attach ':memory:' as ${quoted(LAKE_CATALOG)}`);
  const searchPath = [String(home), LAKE_CATALOG].map((catalog) => `${quoted(catalog)}.main`).join();

  /**
   * Creates views only for tables that the SQL may name, because DuckDB opens all files of a table to create its view (82 ms
   * for a thousand). A view needs no update later: each query lists its files and columns again.
   */
  async function update(sql: string): Promise<void> {
    const tables = await tablesIn(folder);
    if (!tables) return;
    for (const table of [...definitions.keys(), ...failures.keys()]) if (!tables.includes(table)) await drop(table);
    const text = `${sql}\n${stored}`.toLowerCase();
    for (const table of tables) if (text.includes(quoted(table).slice(1, -1).toLowerCase())) named.add(table);
    if (definitions.size > 0) await forgetChanged();
    await Promise.all(tables.filter((table) => named.has(table)).map(ensure));
  }

  /**
   * SQL can drop or replace a view, which must not concern the next query. Such a view is created again over what is there,
   * never dropped first: another query may be about to read it.
   */
  async function forgetChanged(): Promise<void> {
    await Promise.all(changes.values());
    const present = await definitionsOf(own);
    for (const [table, definition] of definitions) if (present.get(table) !== definition) definitions.delete(table);
  }

  /** Concurrent queries that name the table wait for the same view. */
  function ensure(table: string): Promise<void> {
    const change = (changes.get(table) ?? Promise.resolve()).then(() => renew(table));
    changes.set(table, change);
    return change;
  }

  async function renew(table: string, attempt = 1): Promise<void> {
    try {
      const mark = await markOf(join(folder, table)); // Before the files are listed, so that a later change is noticed.
      if (definitions.has(table) && mark === marks.get(table)) return;
      await create(table, mark === undefined ? undefined : await landedFiles(join(folder, table)));
      if (mark !== undefined) marks.set(table, mark);
    } catch (error) {
      const { message } = error as Error;
      if (FILE_GONE.test(message) && attempt < ATTEMPTS_MAX) return renew(table, attempt + 1);
      const [firstLine = ""] = message.split("\n");
      const dropped = drop(table); // The next query tries again.
      failures.set(table, firstLine);
      await dropped;
    }
  }

  /** Of all its Parquet files, or of these. */
  async function create(table: string, landed: readonly string[] | undefined): Promise<void> {
    const files = landed
      ? `[${landed.map((file) => literal(globLiteral(file))).join()}]`
      : literal(join(globLiteral(join(folder, table)), "**", "*.parquet"));
    // Columns are matched by name, because tables gain columns over time. Partition values in paths stay text: 007 must not
    // become 7.
    const options = "union_by_name = true, hive_partitioning = true, hive_types_autocast = false";
    await own.run(`create or replace view ${viewName(table)} as from read_parquet(${files}, ${options})`);
    definitions.set(table, (await definitionsOf(own)).get(table) ?? "");
    marks.delete(table);
    failures.delete(table);
  }

  async function drop(table: string): Promise<void> {
    marks.delete(table);
    definitions.delete(table);
    failures.delete(table);
    await own.run(`drop view if exists ${viewName(table)}`);
  }

  return {
    async prepare(connection, sql) {
      await update(sql);
      if (definitions.size > 0) await connection.run(`set search_path = ${literal(searchPath)}`);
    },
    whyMissing(table) {
      const [, why] = [...failures].find(([failed]) => failed.toLowerCase() === table.toLowerCase()) ?? [];
      return why;
    },
    refresh() {
      const isPossible = marks.size > 0;
      for (const table of marks.keys()) marks.set(table, "");
      return isPossible;
    },
    close: () => own.closeSync(),
  };
}

async function definitionsOf(connection: DuckDBConnection): Promise<Map<string, string>> {
  const rows = await (await connection.run(LAKE_VIEWS, { catalog: LAKE_CATALOG })).getRows();
  return new Map(rows.map(([name, sql]) => [String(name), String(sql)]));
}

/** Undefined if the folder cannot be read at the moment, which is no reason to drop existing views. */
async function tablesIn(folder: string): Promise<string[] | undefined> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !HIDDEN.test(entry.name))
      .map((entry) => entry.name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : undefined;
  }
}

function viewName(table: string): string {
  return `${quoted(LAKE_CATALOG)}.main.${quoted(table)}`;
}

/** A glob that matches only this path. */
export function globLiteral(path: string): string {
  return path.replace(/[*?[]/g, "[$&]");
}
