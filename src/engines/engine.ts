/**
 * What a warehouse engine is to the rest of Millrace, whatever its kind. The same rules hold for all of them:
 *
 * - A query sees nothing of the one before: session settings, temporary tables and open transactions end with it.
 *   (What DuckDB sets for the whole database, such as its memory limit, stays, and so do databases attached to it.)
 * - SQL may hold several statements, separated by `;`. They are one transaction, unless they begin with `begin`, and the
 *   result is that of the last. With Postgres none of them may then use a parameter, a limit of its protocol; Trino takes
 *   one statement only.
 * - Parameters are an object (`$op_time`) or a list (`$1`); those that no statement uses are ignored. (DuckDB wants each
 *   statement to count from `$1`; it also takes `?`.) A value that is a list of things alike becomes an array; an object, or
 *   any other list, becomes JSON text.
 * - Values come back as JSON. A whole or decimal number is a number if a double holds it to its last digit, else text: a KPI
 *   can be computed with at once, and nothing is rounded in silence. Dates and times are ISO 8601 text, with `Z` where they
 *   name a moment; NaN and the infinities are text, since JSON has none; bytes are base64.
 * - A few queries run at a time and the others wait in line (engines.ts). The time limit of a query begins when it is its
 *   turn and ends with its last row, and a stream has its place in line until then: whoever queries the same engine from
 *   inside of the loop may wait for himself.
 */
export interface Engine {
  readonly name: string;
  readonly kind: "duckdb" | "postgres" | "trino";
  /** For results that fit in memory: of more than `rowsMax` rows it keeps the first, and says so. */
  query(sql: string, options: QueryOptions): Promise<QueryResult>;
  /**
   * For results of any size, in batches; the next is fetched while the caller works on one. With more than `rowsMax` rows it
   * fails, since half a result is a wrong one; and like any other failure that may come after rows were handed over, so whoever
   * takes them must be able to take them back. It begins with the first batch that is asked for, and leaving the loop ends it.
   */
  stream(sql: string, options: QueryOptions): AsyncIterable<Row[]>;
  /** Throws when the engine does not answer within some seconds, however many queries wait in line. */
  health(): Promise<void>;
  /** Interrupts what runs. An engine that was never used has nothing to close. */
  close(): Promise<void>;
}

export type Params = Readonly<Record<string, unknown>> | readonly unknown[];
export type Row = Record<string, unknown>;

export interface QueryOptions {
  params?: Params | undefined;
  /** Interrupts the query, also inside the engine; its promise then rejects with the signal's reason. */
  signal: AbortSignal;
  rowsMax: number;
  /** Unset: as long as it takes. */
  timeoutMs?: number | undefined;
}

export interface QueryResult {
  /** Unique: a name that comes again is told apart by a number. */
  columns: string[];
  rows: Row[];
  /** How many rows are in `rows`; for a statement that returns none, how many it changed. */
  rowCount: number;
  /** There were more rows than `rowsMax`. */
  truncated: boolean;
}

export interface Engines {
  get(name: string): Engine;
  names(): string[];
  close(): Promise<void>;
}

/** The engine that is there without any configuration, and is used where none is named. */
export const ENGINE_DEFAULT = "duckdb";

/** What the kinds of engine bring: an open connection to one, to be given SQL by `lazyEngine`. */
export interface Driver {
  /** Rejects with the reason of the signal once that has aborted, and the query has ended. */
  run(sql: string, options: DriverOptions): Promise<DriverResult>;
  /** Called once nothing runs any more. */
  close(): Promise<void>;
}

export interface DriverOptions {
  params: Params | undefined;
  signal: AbortSignal;
  /** The rows after so many are dropped. */
  rowsMax: number;
  /** The next batch may follow once the promise is resolved. It rejects only when the signal has aborted. */
  onRows(rows: Row[]): Promise<void>;
}

export interface DriverResult {
  /** None for a statement that returns no rows. */
  columns: string[];
  rowsChanged: number;
}

/** The SQL, its parameters or the engine's name is wrong, and will be at the next try. Any other error may pass by itself. */
export class EngineRefusal extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineRefusal";
  }
}
