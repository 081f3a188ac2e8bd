/** Trino as warehouse, over its HTTP protocol: https://trino.io/docs/current/develop/client-protocol.html */
import { withRetry } from "../../kernel/work/retry.ts";
import { type Driver, type DriverOptions, type DriverResult, EngineRefusal, type Row } from "../engine.ts";
import { uniqueNames } from "../result/unique-names.ts";
import type { TrinoSettings } from "../settings.ts";
import { readCertificates } from "./certificates.ts";
import { createTrinoHttp, NotAccepted, type Page, QueryLost, RESTART, type TrinoHttp } from "./http.ts";
import { type TrinoStatement, trinoStatement } from "./statement.ts";
import { parserOf } from "./values.ts";

/** Errors that Trino classes as user errors although the statement is not at fault. */
const NOT_THE_SQL = new Set(["ABANDONED_QUERY", "ADMINISTRATIVELY_KILLED", "TRANSACTION_CONFLICT", "USER_CANCELED"]);
/** Without a worker, a query is not scheduled: the error of Trino, and that of a coordinator that has not yet counted itself. */
const NO_WORKER = /^(NO_NODES_AVAILABLE: |GENERIC_INTERNAL_ERROR: nodes is empty$)/;
/** A query that ends the server again should not do so for ever. */
const LOST_MAX = 1;

export async function openTrino(name: string, settings: TrinoSettings): Promise<Driver> {
  const http = createTrinoHttp(settings, settings.ca && (await readCertificates(settings.ca, name)));
  return {
    async run(sql, options) {
      const statement = trinoStatement(sql, options.params);
      if (!options.waits) return run(http, statement, options);
      return runOnceUp(http, statement, options);
    },
    close: http.close,
  };
}

/**
 * Waits for a server that restarts: what does not run yet, or was lost before its first row and only reads, is sent again. Those
 * who retry count attempts, and a restart of a minute would use all of them up.
 */
async function runOnceUp(http: TrinoHttp, statement: TrinoStatement, options: DriverOptions): Promise<DriverResult> {
  let hasRows = false;
  let lost = 0;
  const onRows: DriverOptions["onRows"] = (rows) => {
    hasRows = true;
    return options.onRows(rows);
  };
  function retryOn(error: unknown): boolean {
    if (hasRows) return false;
    if (error instanceof NotAccepted) return true;
    lost += error instanceof QueryLost ? 1 : 0;
    return error instanceof QueryLost && statement.isRead && lost <= LOST_MAX;
  }
  const { signal } = options;
  return withRetry(() => run(http, statement, { ...options, onRows }), { policy: RESTART, retryOn, signal });
}

async function run(http: TrinoHttp, statement: TrinoStatement, options: DriverOptions): Promise<DriverResult> {
  const { signal, size, onRows } = options;
  let left = options.rowsMax;
  let columns: Columns | undefined;
  let next: string | undefined;

  function converted(rows: readonly unknown[][], { rowOf }: Columns): Row[] {
    return rows.map((values) => {
      const row = rowOf(values);
      size.add(row);
      signal.throwIfAborted();
      return row;
    });
  }

  try {
    for (let page = await http.submit(statement.text, signal); ; page = await http.next(next, signal)) {
      next = page.nextUri;
      signal.throwIfAborted();
      if (page.error) throw explained(page.error, statement);
      columns ??= page.columns && columnsOf(page.columns);
      const rows = page.updateType === undefined ? (page.data ?? []).slice(0, left) : [];
      left -= rows.length;
      if (columns && rows.length > 0) await onRows(converted(rows, columns)); // A page is a batch of about a megabyte.
      if (next !== undefined && left > 0) continue;
      const isQuery = page.updateType === undefined;
      return { columns: isQuery ? (columns?.names ?? []) : [], rowsChanged: page.updateCount ?? 0 };
    }
  } finally {
    if (next !== undefined) await http.cancel(next);
  }
}

interface Columns {
  names: string[];
  rowOf(values: readonly unknown[]): Row;
}

function columnsOf(columns: NonNullable<Page["columns"]>): Columns {
  const names = uniqueNames(columns.map(({ name }) => name));
  const parsers = columns.map(({ typeSignature }) => parserOf(typeSignature));
  return {
    names,
    rowOf: (values) => Object.fromEntries(names.map((name, index) => [name, parsers[index]?.(values[index])])),
  };
}

function explained({ message, errorName = "", errorType }: NonNullable<Page["error"]>, sent: TrinoStatement): Error {
  const isRefusal = errorType === "USER_ERROR" && !NOT_THE_SQL.has(errorName);
  if (isRefusal) return new EngineRefusal(sent.messageOf(message));
  const reason = `${errorName}: ${message}`;
  const isStarting = errorName === "SERVER_STARTING_UP" || (sent.isRead && NO_WORKER.test(reason));
  return isStarting ? new NotAccepted(`Trino failed with ${reason}`) : new Error(`Trino failed with ${reason}`);
}
