/**
 * The interface of a warehouse engine. The same rules hold for every kind:
 *
 * - A query leaves no session state to the next: settings, temporary tables and open transactions end with it. (Databases that
 *   SQL attaches to DuckDB persist, and so do its settings where the engine is `unrestricted`.)
 * - SQL may have several statements, separated by `;`. They are one transaction, unless they begin with `begin`, and the
 *   result is that of the last statement. Postgres then allows no parameters, a limit of its protocol; Trino accepts only
 *   one statement.
 * - Parameters are an object (`$op_time`) or a list (`$1`); unused ones are ignored. (In DuckDB each statement counts from `$1`,
 *   and `?` works too.) A list of values of one type is sent as an array; an object, or any other list, as JSON text.
 * - Values are returned as JSON, the same from every kind (same-json.test.ts). A whole or decimal number is a number if a double
 *   holds it exactly, else text, so that nothing is rounded silently, also inside of JSON. Dates, times and intervals are ISO 8601
 *   text, with `Z` for instants; NaN and the infinities are text, since JSON has none; bytes are base64.
 * - A few queries run at a time and the others wait in a queue (engines.ts). The time limit of a query starts when it leaves the
 *   queue and ends with its last row. A stream holds its slot until then, so a query on the same engine inside the loop
 *   can deadlock.
 */
import type { ResultSize } from "./result/size.ts";

export interface Engine {
  readonly name: string;
  readonly kind: "duckdb" | "postgres" | "trino";
  /** For results that fit in memory. Keeps the first `rowsMax` rows and sets `truncated` if there are more. */
  query(sql: string, options: QueryOptions): Promise<QueryResult>;
  /**
   * For results of any size, in batches; the next is fetched while the caller works on one. Fails with more than `rowsMax` rows,
   * since half a result is wrong. A failure may come after rows were yielded, so the caller must be able to undo its work on
   * them. The query starts when the first batch is requested and is cancelled when the caller leaves the loop.
   */
  stream(sql: string, options: QueryOptions): AsyncIterable<Row[]>;
  /** Throws if the engine does not answer within some seconds, however many queries are queued. */
  health(): Promise<void>;
  /** Cancels running queries. An engine that was never used has nothing to close. */
  close(): Promise<void>;
}

/**
 * The size of a batch: large enough that its cost does not matter, small enough that converting it (some milliseconds) does
 * not delay the other work of the process. A single row may be larger.
 */
export const BATCH = { rowsMax: 1_000, bytesMax: 1_048_576 } as const;

export type Params = Readonly<Record<string, unknown>> | readonly unknown[];
export type Row = Record<string, unknown>;

export interface QueryOptions {
  params?: Params | undefined;
  /** Cancels the query, also on the server; the promise then rejects with the signal's reason. */
  signal: AbortSignal;
  rowsMax: number;
  /** A larger result fails, since half of it would be wrong. Counted as in result/size.ts; unset: 256 MB. */
  bytesMax?: number | undefined;
  /** Unset: no limit. */
  timeoutMs?: number | undefined;
}

export interface QueryResult {
  /** Unique: a repeated name gets a number. */
  columns: string[];
  rows: Row[];
  /** The length of `rows`; for a statement that returns no rows, how many it changed. */
  rowCount: number;
  /** There were more rows than `rowsMax`. */
  truncated: boolean;
}

export interface Engines {
  get(name: string): Engine;
  names(): string[];
  /** Why the engine cannot parse the SQL, whether its tables exist or not. Only DuckDB tells: the others would have to be asked. */
  syntaxError(name: string, sql: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** The built-in engine, which is used where none is named. */
export const ENGINE_DEFAULT = "duckdb";

/** What each kind of engine implements: an open connection that `lazyEngine` sends SQL to. */
export interface Driver {
  /** After an abort, rejects with the signal's reason once the query has ended. */
  run(sql: string, options: DriverOptions): Promise<DriverResult>;
  /** Called when no query runs. */
  close(): Promise<void>;
}

export interface DriverOptions {
  params: Params | undefined;
  signal: AbortSignal;
  /** Whether to wait for a server that restarts. A health check does not: it wants to know. */
  waits: boolean;
  /** Further rows are dropped. */
  rowsMax: number;
  /** Counts each row as soon as it is converted, before the next one is. */
  size: ResultSize;
  /** The next batch is passed when the promise resolves. It rejects only after an abort. */
  onRows(rows: Row[]): Promise<void>;
}

export interface DriverResult {
  /** Empty for a statement that returns no rows. */
  columns: string[];
  rowsChanged: number;
}

/** The SQL, its parameters or the engine's name is wrong, so a retry fails as well. Any other error may be transient. */
export class EngineRefusal extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineRefusal";
  }
}
