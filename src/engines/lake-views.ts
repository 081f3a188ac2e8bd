/**
 * The tables of the lake for a DuckDB database: each folder under `tables/` of the lake is a view of that name over the
 * Parquet files in it. The views live in a database of their own, in memory, which is searched after the one of the engine.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";

/** No database file can be called so, hence none of the operator's is in the way. */
const CATALOG = "lake/tables";
/** Folders that jobs write into before their files count are called `_temporary`, `.staging` and the like. */
const HIDDEN = /^[._]/;
/** In the SQL of a stored view or macro too, a table of the lake may be named. */
const STORED_SQL =
  "select sql from duckdb_views() where not internal union all select macro_definition from duckdb_functions() where not internal";

export interface LakeViews {
  /** Lets a connection find the tables that this SQL names, with the files that are there now. */
  show(connection: DuckDBConnection, sql: string): Promise<void>;
  /** Why a table that has a folder is no view. */
  whyMissing(table: string): string | undefined;
  close(): void;
}

export async function openLakeViews(instance: DuckDBInstance, lakeDir: string): Promise<LakeViews> {
  const folder = join(lakeDir, "tables");
  /** Those that are there or under way. */
  const views = new Map<string, Promise<void>>();
  /** By any SQL so far. */
  const named = new Set<string>();
  const failures = new Map<string, string>();
  const own = await instance.connect();
  const [[home] = []] = await (await own.run("select current_database()")).getRows();
  const stored = (await (await own.run(STORED_SQL)).getRows()).join("\n");
  await own.run(`attach ':memory:' as ${quoted(CATALOG)}`);
  const searchPath = [String(home), CATALOG].map((catalog) => `${quoted(catalog)}.main`).join();

  /**
   * Only what the SQL could mean, since DuckDB looks through all files of a table to make its view (82 ms for a thousand).
   * Afterwards the view needs no care: each query that uses it looks for its files and columns anew.
   */
  async function update(sql: string): Promise<void> {
    const tables = await tablesIn(folder);
    if (!tables) return;
    for (const table of [...views.keys(), ...failures.keys()]) if (!tables.includes(table)) await forget(table);
    const text = `${sql}\n${stored}`.toLowerCase();
    for (const table of tables) if (text.includes(quoted(table).slice(1, -1).toLowerCase())) named.add(table);
    await Promise.all(tables.filter((table) => named.has(table)).map(ensure));
  }

  /** Whoever else names the table meanwhile waits for the same. */
  function ensure(table: string): Promise<void> {
    const view = views.get(table) ?? create(table);
    views.set(table, view);
    return view;
  }

  async function create(table: string): Promise<void> {
    const files = literal(join(globLiteral(join(folder, table)), "**", "*.parquet"));
    // Of each column the name counts, not its place: tables gain columns in the course of time. Parts of the path are text,
    // since 20251219 is no number and 007 would not stay itself.
    const options = "union_by_name = true, hive_partitioning = true, hive_types_autocast = false";
    try {
      await own.run(`create view ${viewName(table)} as from read_parquet(${files}, ${options})`);
      failures.delete(table);
    } catch (error) {
      const [firstLine = ""] = (error as Error).message.split("\n");
      failures.set(table, firstLine);
      views.delete(table); // The next query tries again.
    }
  }

  async function forget(table: string): Promise<void> {
    await own.run(`drop view if exists ${viewName(table)}`);
    views.delete(table);
    failures.delete(table);
  }

  return {
    async show(connection, sql) {
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

/** Undefined where they cannot be read now, which is no reason to forget those of before. */
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
  return `${quoted(CATALOG)}.main.${quoted(table)}`;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A pattern that only this path fits. */
function globLiteral(path: string): string {
  return path.replace(/[*?[]/g, "[$&]");
}
