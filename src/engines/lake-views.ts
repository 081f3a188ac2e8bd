/**
 * The tables of the lake, as views of DuckDB: each folder under `tables/` of the lake is a view with its name over its Parquet
 * files. The views are in a separate in-memory database, which comes after the engine's database in the search path.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { literal, quoted } from "./sql-text.ts";

/** A name that no database file can have, so it cannot collide with one of the operator's. */
export const LAKE_CATALOG = "lake/tables";
/** Jobs write unfinished files into folders such as `_temporary` and `.staging`. */
const HIDDEN = /^[._]/;
const LAKE_VIEWS = "select view_name, sql from duckdb_views() where database_name = $catalog";
/** The SQL of stored views and macros may name tables of the lake as well. */
const STORED_SQL =
  "select sql from duckdb_views() where not internal union all select macro_definition from duckdb_functions() where not internal";

export interface LakeViews {
  /** Makes the lake tables that the SQL names visible to the connection, with their present files. */
  prepare(connection: DuckDBConnection, sql: string): Promise<void>;
  /** Why a table has a folder but no view. */
  whyMissing(table: string): string | undefined;
  close(): void;
}

export async function openLakeViews(instance: DuckDBInstance, lakeDir: string): Promise<LakeViews> {
  const folder = join(lakeDir, "tables");
  /** Created, or being created. */
  const views = new Map<string, Promise<void>>();
  /** The definition of each view, as DuckDB shows it. */
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
    for (const table of [...views.keys(), ...failures.keys()]) if (!tables.includes(table)) await drop(table);
    const text = `${sql}\n${stored}`.toLowerCase();
    for (const table of tables) if (text.includes(quoted(table).slice(1, -1).toLowerCase())) named.add(table);
    if (views.size > 0) await forgetChanged();
    await Promise.all(tables.filter((table) => named.has(table)).map(ensure));
  }

  /** SQL can drop or replace a view, which must not concern the next query. */
  async function forgetChanged(): Promise<void> {
    await Promise.all(views.values());
    const present = await definitionsOf(own);
    for (const [table, definition] of definitions) if (present.get(table) !== definition) await drop(table);
  }

  /** Concurrent queries that name the table wait for the same view. */
  function ensure(table: string): Promise<void> {
    const view = views.get(table) ?? create(table);
    views.set(table, view);
    return view;
  }

  async function create(table: string): Promise<void> {
    const files = literal(join(globLiteral(join(folder, table)), "**", "*.parquet"));
    // Columns are matched by name, because tables gain columns over time. Partition values in paths stay text: 007 must not
    // become 7.
    const options = "union_by_name = true, hive_partitioning = true, hive_types_autocast = false";
    try {
      await own.run(`create or replace view ${viewName(table)} as from read_parquet(${files}, ${options})`);
      definitions.set(table, (await definitionsOf(own)).get(table) ?? "");
      failures.delete(table);
    } catch (error) {
      const [firstLine = ""] = (error as Error).message.split("\n");
      failures.set(table, firstLine);
      views.delete(table); // The next query tries again.
    }
  }

  async function drop(table: string): Promise<void> {
    await own.run(`drop view if exists ${viewName(table)}`);
    views.delete(table);
    definitions.delete(table);
    failures.delete(table);
  }

  return {
    async prepare(connection, sql) {
      await update(sql);
      if (views.size > 0) await connection.run(`set search_path = ${literal(searchPath)}`);
    },
    whyMissing(table) {
      const [, why] = [...failures].find(([failed]) => failed.toLowerCase() === table.toLowerCase()) ?? [];
      return why;
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
