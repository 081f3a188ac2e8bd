/** DuckDB in this process: a database file, or memory, and whatever Parquet, CSV and JSON files its SQL names. */
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBMaterializedResult,
  type DuckDBPreparedStatement,
  ResultReturnType,
  StatementType,
} from "@duckdb/node-api";
import { bindable, toJson } from "./duckdb-values.ts";
import { type Driver, EngineRefusal, type QueryOptions, type QueryResult } from "./engine.ts";
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

export async function openDuckDb({ path = IN_MEMORY, memoryLimit, threads }: DuckDbSettings): Promise<Driver> {
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
  return {
    async run(sql, options) {
      // Each query has its own connection (80 us to open), so nothing of it is left for the next.
      const connection = await instance.connect();
      const stopInterrupting = interruptOnAbort(connection, options.signal);
      try {
        const result = await runAll(connection, sql, options);
        options.signal.throwIfAborted();
        return result;
      } catch (error) {
        throw options.signal.aborted ? options.signal.reason : explained(error);
      } finally {
        stopInterrupting();
        connection.closeSync();
      }
    },
    async close() {
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

async function runAll(connection: DuckDBConnection, sql: string, options: QueryOptions): Promise<QueryResult> {
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
    const answer = read(result, rowsMax);
    if (transaction === "ours") await connection.run("commit");
    if (transaction === "theirs") await refuseOpenTransaction(connection);
    return answer;
  }
}

/**
 * A query that stops after one row more than is wanted. DuckDB holds a result in memory outside of its limit (50 million
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
    return await connection.prepare(`from (${lastStatement(sql)}\n) limit ${rowsMax + 1}`);
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

function read(result: DuckDBMaterializedResult, rowsMax: number): QueryResult {
  if (result.returnType !== ResultReturnType.QUERY_RESULT) {
    return { columns: [], rows: [], rowCount: result.rowsChanged, truncated: false };
  }
  const columns = result.deduplicatedColumnNames();
  const types = result.columnTypes();
  const rows: Record<string, unknown>[] = [];
  for (let index = 0; index < result.chunkCount && rows.length < rowsMax; index += 1) {
    const chunk = result.getChunk(index).getRows();
    for (const values of chunk.slice(0, rowsMax - rows.length)) {
      rows.push(Object.fromEntries(columns.map((name, column) => [name, toJson(values[column], types[column])])));
    }
  }
  return { columns, rows, rowCount: rows.length, truncated: result.rowCount > rows.length };
}

function explained(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof EngineRefusal) return error;
  const message = error.message.replace(/^Failed to extract statements: /, "");
  return MAY_PASS.test(message) ? error : new EngineRefusal(message, { cause: error });
}
