/** Trino as warehouse, over its HTTP protocol: https://trino.io/docs/current/develop/client-protocol.html */
import { type Driver, type DriverOptions, type DriverResult, EngineRefusal, type Row } from "./engine.ts";
import type { TrinoSettings } from "./settings.ts";
import { createTrinoHttp, type Page, type TrinoHttp } from "./trino-http.ts";
import { trinoStatement } from "./trino-sql.ts";
import { parserOf } from "./trino-values.ts";
import { uniqueNames } from "./unique-names.ts";

/** Errors that Trino classes as user errors although the statement is not at fault. */
const NOT_THE_SQL = new Set(["ABANDONED_QUERY", "ADMINISTRATIVELY_KILLED", "TRANSACTION_CONFLICT", "USER_CANCELED"]);

export function openTrino(settings: TrinoSettings): Driver {
  const http = createTrinoHttp(settings);
  return {
    async run(sql, options) {
      return run(http, trinoStatement(sql, options.params), options);
    },
    close: http.close,
  };
}

async function run(http: TrinoHttp, statement: string, options: DriverOptions): Promise<DriverResult> {
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
    for (let page = await http.submit(statement, signal); ; page = await http.next(next, signal)) {
      next = page.nextUri;
      signal.throwIfAborted();
      if (page.error) throw explained(page.error);
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

function explained({ message, errorName = "", errorType }: NonNullable<Page["error"]>): Error {
  const isRefusal = errorType === "USER_ERROR" && !NOT_THE_SQL.has(errorName);
  return isRefusal ? new EngineRefusal(message) : new Error(`Trino failed with ${errorName}: ${message}`);
}
