/**
 * What a warehouse engine is to the rest of Millrace, whatever its kind. The same rules hold for all of them:
 *
 * - A query sees nothing of the one before: session settings, temporary tables and open transactions end with it.
 *   (What DuckDB sets for the whole database, such as its memory limit, stays, and so do databases attached to it.)
 * - SQL may hold several statements, separated by `;`. They are one transaction, unless they begin with `begin`, and the
 *   result is that of the last. With Postgres none of them may then use a parameter, a limit of its protocol.
 * - Parameters are an object (`$op_time`) or a list (`$1`); those that no statement uses are ignored. (DuckDB wants each
 *   statement to count from `$1`; it also takes `?`.) A value that is a list of things alike becomes an array; an object, or
 *   any other list, becomes JSON text.
 * - Values come back as JSON. A whole or decimal number is a number if a double holds it to its last digit, else text: a KPI
 *   can be computed with at once, and nothing is rounded in silence. Dates and times are ISO 8601 text, with `Z` where they
 *   name a moment; NaN and the infinities are text, since JSON has none; bytes are base64.
 */
export interface Engine {
  readonly name: string;
  readonly kind: "duckdb" | "postgres";
  query(sql: string, options: QueryOptions): Promise<QueryResult>;
  /** Interrupts what runs. An engine that was never used has nothing to close. */
  close(): Promise<void>;
}

export type Params = Readonly<Record<string, unknown>> | readonly unknown[];

export interface QueryOptions {
  params?: Params | undefined;
  /** Interrupts the query, also inside the engine; its promise then rejects with the signal's reason. */
  signal: AbortSignal;
  rowsMax: number;
}

export interface QueryResult {
  /** Unique: a name that comes again is told apart by a number. */
  columns: string[];
  rows: Record<string, unknown>[];
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

/** What the kinds of engine bring: an open connection to one, to be given SQL by `lazyEngine`. */
export interface Driver {
  run(sql: string, options: QueryOptions): Promise<QueryResult>;
  /** Called once nothing runs any more. */
  close(): Promise<void>;
}

/** The SQL, its parameters or the engine's name is wrong, and will be at the next try. Any other error may pass by itself. */
export class EngineRefusal extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineRefusal";
  }
}
