/** DuckDB in this process: a database file, or memory, and whatever Parquet, CSV and JSON files its SQL names. */
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBMaterializedResult,
  type DuckDBPreparedStatement,
  type DuckDBValue,
  ResultReturnType,
  StatementType,
} from "@duckdb/node-api";
import { bindable, toJson } from "./duckdb-values.ts";
import { type Driver, type DriverOptions, type DriverResult, EngineRefusal, type Row } from "./engine.ts";
import { type LakeViews, openLakeViews } from "./lake-views.ts";
import { named, usedNames } from "./params.ts";
import type { DuckDbSettings } from "./settings.ts";
import { sqlTokens } from "./sql-tokens.ts";

const IN_MEMORY = ":memory:";
/** DuckDB's own default, most of the machine's memory, would be taken from the server around it. */
const MEMORY_LIMIT_DEFAULT = "1GB";
const INTERRUPT_EVERY_MS = 20;
const ONE_TRANSACTION = "Several statements are one transaction. To end it earlier, let them begin with `begin`.";
/** Trouble that may pass, by the words before the message: the disk, the memory, another transaction, DuckDB itself. */
const MAY_PASS = /^(IO|HTTP|Connection|Network|Out of Memory|Transaction\w*|INTERRUPT|INTERNAL|FATAL) Error\b/;

export async function openDuckDb(settings: DuckDbSettings, lakeDir: string | undefined): Promise<Driver> {
  const { path = IN_MEMORY, memoryLimit, threads } = settings;
  if (path !== IN_MEMORY) await mkdir(dirname(path), { recursive: true });
  const instance = await DuckDBInstance.create(path, {
    memory_limit: memoryLimit ?? MEMORY_LIMIT_DEFAULT,
    ...(threads === undefined ? {} : { threads: String(threads) }),
    // Beside a file there is a place to spill to; without one DuckDB would choose the working directory.
    ...(path === IN_MEMORY ? { temp_directory: join(tmpdir(), `millrace-duckdb-${process.pid}`) } : {}),
    // A query must not download native code into the server because it happens to name an address or a format. What the
    // operator has installed is loaded when needed, and SQL may read and write files: chains are written by people who may.
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "true",
  });
  const lake = lakeDir === undefined ? undefined : await openLakeViews(instance, lakeDir);

  return {
    async run(sql, options) {
      // Each query has its own connection (80 us to open), so nothing of it is left for the next.
      const connection = await instance.connect();
      const stopInterrupting = interruptOnAbort(connection, options.signal);
      try {
        await lake?.show(connection, sql);
        const result = await runAll(connection, sql, options);
        options.signal.throwIfAborted();
        return result;
      } catch (error) {
        throw explained(error, lake);
      } finally {
        stopInterrupting();
        connection.closeSync();
      }
    },
    async close() {
      lake?.close(); // The file is written out when the last connection to it ends.
      instance.closeSync();
    },
  };
}

/** Again and again until the query has ended: an interrupt that comes before DuckDB has begun to execute is lost. */
function interruptOnAbort(connection: DuckDBConnection, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    connection.interrupt();
    timer = setInterval(() => connection.interrupt(), INTERRUPT_EVERY_MS);
  };
  signal.addEventListener("abort", begin, { once: true });
  return () => {
    signal.removeEventListener("abort", begin);
    clearInterval(timer);
  };
}

async function runAll(connection: DuckDBConnection, sql: string, options: DriverOptions): Promise<DriverResult> {
  const { signal, rowsMax } = options;
  const params = named(options.params);
  usedNames(sql, params); // Refuses before the first statement what a later one would miss.
  const statements = await connection.extractStatements(sql);
  const last = statements.count - 1;
  let transaction: "none" | "ours" | "theirs" = "none";
  for (let index = 0; ; index += 1) {
    signal.throwIfAborted();
    const statement = await statements.prepare(index);
    const isTransaction = statement.statementType === StatementType.TRANSACTION;
    if (transaction === "ours" && isTransaction) throw new EngineRefusal(ONE_TRANSACTION);
    if (index === 0 && isTransaction) transaction = "theirs";
    if (index === 0 && last > 0 && !isTransaction) {
      transaction = "ours";
      await connection.run("begin");
    }
    if (index < last) {
      await execute(statement, params);
      continue;
    }
    const result = await execute(await limited(connection, statement, sql, rowsMax), params);
    const answer = await handOver(result, options);
    if (transaction === "ours") await connection.run("commit");
    if (transaction === "theirs") await refuseOpenTransaction(connection);
    return answer;
  }
}

/**
 * A query that stops after the last row that is wanted. DuckDB holds a result in memory outside of its limit (50 million
 * rows took 2.5 GB), and when it streams one instead, an error in the middle looks like the end of the rows.
 */
async function limited(
  connection: DuckDBConnection,
  statement: DuckDBPreparedStatement,
  sql: string,
  rowsMax: number,
): Promise<DuckDBPreparedStatement> {
  if (statement.statementType !== StatementType.SELECT) return statement;
  try {
    return await connection.prepare(`from (${lastStatement(sql)}\n) limit ${rowsMax}`);
  } catch {
    return statement; // A pragma counts as a query but cannot stand inside another. Its result is small.
  }
}

function lastStatement(sql: string): string {
  let last = "";
  let current = "";
  let isBlank = true;
  for (const { kind, text } of sqlTokens(sql)) {
    if (kind === "semicolon") {
      current = "";
      isBlank = true;
      continue;
    }
    current += text;
    isBlank &&= kind === "blank";
    if (!isBlank) last = current;
  }
  return last;
}

async function execute(
  statement: DuckDBPreparedStatement,
  params: Readonly<Record<string, unknown>>,
): Promise<DuckDBMaterializedResult> {
  try {
    for (const [name, value] of Object.entries(params)) {
      const position = positionOf(statement, name);
      const bound = bindable(value);
      if (position !== undefined) statement.bindValue(position, bound.value, bound.type);
    }
    return await statement.run();
  } finally {
    statement.destroySync();
  }
}

function positionOf(statement: DuckDBPreparedStatement, name: string): number | undefined {
  try {
    return statement.parameterIndex(name);
  } catch {
    return undefined; // The statement does not use it.
  }
}

/** Closing the connection would roll back in silence what looks like a success. */
async function refuseOpenTransaction(connection: DuckDBConnection): Promise<void> {
  const wasOpen = await connection.run("rollback").then(
    () => true,
    () => false,
  );
  if (wasOpen) throw new EngineRefusal("The SQL begins a transaction and does not end it, so it was rolled back.");
}

/** The result lies in memory, but as DuckDB packs it: only one chunk at a time (2,048 rows) becomes objects. */
async function handOver(result: DuckDBMaterializedResult, { rowsMax, onRows }: DriverOptions): Promise<DriverResult> {
  const { rowsChanged } = result;
  if (result.returnType !== ResultReturnType.QUERY_RESULT) return { columns: [], rowsChanged };
  const columns = result.deduplicatedColumnNames();
  const types = result.columnTypes();
  const rowOf = (values: readonly DuckDBValue[]): Row =>
    Object.fromEntries(columns.map((name, column) => [name, toJson(values[column], types[column])]));
  for (let index = 0, left = rowsMax; index < result.chunkCount && left > 0; index += 1) {
    const rows = result.getChunk(index).getRows().slice(0, left).map(rowOf);
    left -= rows.length;
    await onRows(rows);
  }
  return { columns, rowsChanged };
}

function explained(error: unknown, lake: LakeViews | undefined): unknown {
  if (!(error instanceof Error) || error instanceof EngineRefusal) return error;
  const message = error.message.replace(/^Failed to extract statements: /, "");
  const [, table = ""] = /^Catalog Error: Table with name (.+) does not exist!/.exec(message) ?? [];
  const unreadable = lake?.whyMissing(table);
  // The file may still be under way.
  if (unreadable) return new Error(`The table ${table} of the lake cannot be read. ${unreadable}`, { cause: error });
  return MAY_PASS.test(message) ? error : new EngineRefusal(message, { cause: error });
}
