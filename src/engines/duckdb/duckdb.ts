/** DuckDB in this process, on a database file or in memory; its SQL can also name Parquet, CSV and JSON files of the lake. */
import { chmod, mkdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBMaterializedResult,
  type DuckDBPreparedStatement,
  ResultReturnType,
  StatementType,
} from "@duckdb/node-api";
import { messageOf } from "../../kernel/text/message-of.ts";
import { BATCH, type Driver, type DriverOptions, type DriverResult, EngineRefusal, type Row } from "../engine.ts";
import type { DuckDbSettings } from "../settings.ts";
import { named, usedNames } from "../sql/params.ts";
import { sqlTokens } from "../sql/tokens.ts";
import { refuseChanges, refuseStatement, restrict, withAdvice } from "./access.ts";
import { ATTEMPTS_MAX, FILE_GONE, globLiteral, LAKE_CATALOG, type LakeViews, openLakeViews } from "./lake-views.ts";
import { bindable, jsonAt } from "./values.ts";

const IN_MEMORY = ":memory:";
/** DuckDB's own default is most of the machine's memory, which the server needs as well. */
const MEMORY_LIMIT_DEFAULT = "1GB";
const INTERRUPT_EVERY_MS = 20;
const ONE_TRANSACTION = "Several statements are one transaction. To end it earlier, start the SQL with `begin`.";
/** Prefixes of errors that a retry may cure: the disk, the memory, another transaction, DuckDB itself. */
const TRANSIENT = /^(IO|HTTP|Connection|Network|Out of Memory|Transaction\w*|INTERRUPT|INTERNAL|FATAL) Error\b/;

export async function openDuckDb(settings: DuckDbSettings, lakeDir: string | undefined): Promise<Driver> {
  const { path = IN_MEMORY, memoryLimit, threads, unrestricted = false } = settings;
  const directories = [...(lakeDir === undefined ? [] : [lakeDir]), ...(settings.directories ?? [])].map((each) =>
    resolve(each),
  );
  for (const directory of settings.directories ?? []) await refuseNoDirectory(directory);
  if (path !== IN_MEMORY) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  if (lakeDir !== undefined) await closeToOthers(lakeDir, 0o700);
  const instance = await DuckDBInstance.create(path, {
    memory_limit: memoryLimit ?? MEMORY_LIMIT_DEFAULT,
    ...(threads === undefined ? {} : { threads: String(threads) }),
    // A database file has a directory to spill to; in memory, DuckDB would spill to the working directory.
    ...(path === IN_MEMORY ? { temp_directory: join(tmpdir(), `millrace-duckdb-${process.pid}`) } : {}),
    // A query that names a URL or a file format must not download native code.
    autoinstall_known_extensions: "false",
    autoload_known_extensions: String(unrestricted),
  });
  if (path !== IN_MEMORY) await closeToOthers(path, 0o600);
  const lake = lakeDir === undefined ? undefined : await openLakeViews(instance, lakeDir);
  const [home] = await onConnection(instance, async (connection) =>
    (await connection.run("select current_database()")).getColumns(),
  );
  const databases = new Set([LAKE_CATALOG, String(home?.[0]).toLowerCase()]);
  // DuckDB compares paths as text, and a glob is one too.
  const paths = [...directories, ...directories.map(globLiteral)];
  if (!unrestricted) await onConnection(instance, (connection) => restrict(connection, paths));

  /** With a connection for each query (80 us to open), so that no session state reaches the next one. */
  function runOnce(sql: string, options: DriverOptions): Promise<DriverResult> {
    return onConnection(instance, async (connection) => {
      const stopInterrupting = interruptOnAbort(connection, options.signal);
      try {
        await lake?.prepare(connection, sql);
        const result = await runAll(connection, sql, options, unrestricted ? () => {} : refuseStatement);
        options.signal.throwIfAborted();
        return result;
      } finally {
        stopInterrupting();
      }
    });
  }

  return {
    async run(sql, options) {
      if (!unrestricted) refuseChanges(sql, databases);
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await runOnce(sql, options);
        } catch (error) {
          options.signal.throwIfAborted();
          // It has failed as a whole, and rows are passed on only when all of them are there.
          const isRepeatable = attempt < ATTEMPTS_MAX && FILE_GONE.test(messageOf(error)) && !beginsTransaction(sql);
          if (!isRepeatable || !lake?.refresh()) throw explained(error, lake, directories);
        }
      }
    },
    async close() {
      lake?.close(); // DuckDB writes its file when the last connection closes.
      instance.closeSync();
    },
  };
}

async function refuseNoDirectory(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isDirectory())
    throw new EngineRefusal(`The \`directories\` of the engine name ${resolve(path)}, which is not a directory.`);
}

async function onConnection<T>(
  instance: DuckDBInstance,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
  }
}

/** What is closed to others already, such as 0770 for a group, stays as it is. */
async function closeToOthers(path: string, mode: number): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found && (found.mode & 0o007) !== 0) await chmod(path, mode);
}

/** Repeats the interrupt until the query has ended: DuckDB ignores one that comes before it begins to execute. */
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

async function runAll(
  connection: DuckDBConnection,
  sql: string,
  options: DriverOptions,
  check: (type: StatementType) => void,
): Promise<DriverResult> {
  const { signal, rowsMax } = options;
  const params = named(options.params);
  usedNames(sql, params); // A parameter that a later statement lacks is refused before the first one runs.
  const statements = await connection.extractStatements(sql);
  const last = statements.count - 1;
  let transaction: "none" | "ours" | "in the SQL" = "none";
  for (let index = 0; ; index += 1) {
    signal.throwIfAborted();
    const statement = await statements.prepare(index);
    check(statement.statementType);
    const isTransaction = statement.statementType === StatementType.TRANSACTION;
    if (transaction === "ours" && isTransaction) throw new EngineRefusal(ONE_TRANSACTION);
    if (index === 0 && isTransaction) transaction = "in the SQL";
    if (index === 0 && last > 0 && !isTransaction) {
      transaction = "ours";
      await connection.run("begin");
    }
    if (index < last) {
      await execute(statement, params);
      continue;
    }
    const result = await execute(await limited(connection, statement, sql, rowsMax), params);
    const answer = await passRows(result, options);
    if (transaction === "ours") await connection.run("commit");
    if (transaction === "in the SQL") await refuseOpenTransaction(connection);
    return answer;
  }
}

/**
 * Adds a row limit to a query. DuckDB holds a whole result in memory, outside its memory limit (50 million rows took 2.5 GB).
 * When it streams a result instead, an error in the middle looks like the end of the rows.
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
    return statement; // A pragma counts as a query but cannot be a subquery. Its result is small.
  }
}

/** Statements of such SQL may have been committed before a later one failed. */
function beginsTransaction(sql: string): boolean {
  for (const { kind, text } of sqlTokens(sql)) {
    if (kind === "other") return /^(begin|start)$/i.test(text);
  }
  return false;
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

/** Without this, closing the connection would silently roll back a query that reported success. */
async function refuseOpenTransaction(connection: DuckDBConnection): Promise<void> {
  const wasOpen = await connection.run("rollback").then(
    () => true,
    () => false,
  );
  if (wasOpen) throw new EngineRefusal("The SQL begins a transaction and does not end it, so it was rolled back.");
}

/**
 * The result stays in DuckDB's compact form; only one batch at a time becomes objects. Row by row, because a chunk has 2,048
 * rows, however large they are.
 */
async function passRows(result: DuckDBMaterializedResult, options: DriverOptions): Promise<DriverResult> {
  const { rowsMax, signal, size, onRows } = options;
  const { rowsChanged } = result;
  if (result.returnType !== ResultReturnType.QUERY_RESULT) return { columns: [], rowsChanged };
  const columns = result.deduplicatedColumnNames();
  const types = result.columnTypes();
  let rows: Row[] = [];
  let bytes = 0;
  for (let index = 0, left = rowsMax; index < result.chunkCount && left > 0; index += 1) {
    const chunk = result.getChunk(index);
    const vectors = columns.map((name, column) => ({
      name,
      vector: chunk.getColumnVector(column),
      type: types[column],
    }));
    const rowOf = (at: number): Row =>
      Object.fromEntries(vectors.map(({ name, vector, type }) => [name, jsonAt(vector, at, size, type)]));
    for (let at = 0; at < chunk.rowCount && left > 0; at += 1, left -= 1) {
      const row = rowOf(at);
      rows.push(row);
      bytes += size.add(row);
      if (rows.length < BATCH.rowsMax && bytes < BATCH.bytesMax) continue;
      signal.throwIfAborted();
      await onRows(rows);
      await nextTurn(); // The whole result is in memory, so nothing else would let other work of the process run.
      rows = [];
      bytes = 0;
    }
  }
  signal.throwIfAborted();
  if (rows.length > 0) await onRows(rows);
  return { columns, rowsChanged };
}

function explained(error: unknown, lake: LakeViews | undefined, directories: readonly string[]): unknown {
  if (!(error instanceof Error) || error instanceof EngineRefusal) return error;
  const message = error.message.replace(/^Failed to extract statements: /, "");
  const [, table = ""] = /^Catalog Error: Table with name (.+) does not exist!/.exec(message) ?? [];
  const unreadable = lake?.whyMissing(table);
  // Not a refusal: the file may still arrive.
  if (unreadable) return new Error(`The table ${table} of the lake cannot be read. ${unreadable}`, { cause: error });
  if (TRANSIENT.test(message)) return error;
  return new EngineRefusal(withAdvice(message, directories), { cause: error });
}
