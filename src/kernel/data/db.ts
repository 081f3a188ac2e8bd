/**
 * All access to Postgres. Two pools: `work` for the hot path, and `reads` for lists and pages, which are read-only and time
 * out after some seconds, so that no slow page can hold back vacuum or use the workers' connections.
 */
import pg from "pg";
import { type RetryPolicy, withRetry } from "../work/retry.ts";
import type { Statement } from "./statement.ts";

export interface Queryable {
  /**
   * Statements of a transaction that are sent without awaiting each other take one round trip. They still run in order, and
   * after a failure the later ones fail too.
   */
  rows<Row>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]>;
}

/** One attempt of a transaction, for as long as its body runs. */
export interface Tx extends Queryable {
  /**
   * Calls `fn` after the commit, before `db.tx` resolves, in the order of registration; a function registered twice is called
   * once. An attempt that is rolled back drops it. Its exceptions go to `onAfterCommitError`, since the transaction is
   * committed.
   */
  afterCommit(fn: () => void): void;
}

export interface Db extends Queryable {
  /** Runs `work` in one transaction; after a serialization failure or deadlock it runs again, a bounded number of times. */
  tx<T>(work: (tx: Tx) => Promise<T | CommitWith<T>>): Promise<T>;
  /** For lists and pages: the read-only pool with its statement time-out. */
  read<Row>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * Runs `work`, whose reads all use one connection of the read-only pool, one after the other: a walk of many statements
   * waits for a free connection once instead of before each.
   */
  reading<T>(work: (db: Db) => Promise<T>): Promise<T>;
  /** Runs `work` on its own connection without prepared statements or a time-out: for migrations only. */
  exclusive<T>(work: (client: pg.Client) => Promise<T>): Promise<T>;
  /** A connection outside the pools. The caller ends it. */
  dedicated(purpose: string, settings?: pg.ClientConfig): Promise<pg.Client>;
  /** Runs a statement on a dedicated connection, with the same metrics as the pools. */
  rowsOn<Row>(client: pg.Client, statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]>;
  stats(): PoolStats;
  close(): Promise<void>;
}

/** Returned by a transaction that has sent its last statements: COMMIT is sent without awaiting their answers. */
export class CommitWith<T> {
  readonly answer: Promise<T>;

  constructor(answer: Promise<T>) {
    this.answer = answer;
  }
}

export interface PoolStats {
  connections: number;
  idle: number;
  waiting: number;
}

/** What node-postgres connects with: a URL, or the socket of the embedded server. */
export type Connection =
  | { connectionString: string }
  | { host: string; port: number; user: string; database: string; password?: string };

export interface DbOptions {
  connection: Connection;
  applicationName?: string;
  poolSize?: number;
  /** Called after each statement, for metrics, with the time since it was sent, including the wait for earlier ones. */
  onStatement?: (name: string, seconds: number) => void;
  /** An idle connection broke and the pool has dropped it; for the log. */
  onIdleError?: (error: Error) => void;
  /** A function of `afterCommit` threw, which is a bug. Without this handler the exception is uncaught. */
  onAfterCommitError?: (error: unknown) => void;
}

const READ_POOL_SIZE = 4;
const READ_TIMEOUT_MS = 10_000;
const WORK_TIMEOUT_MS = 60_000;
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 60_000;
/** Ends the transaction of a suspended process, so that its locks are released. */
const IDLE_IN_TRANSACTION_MS = 15_000;

const CONFLICT_RETRY: RetryPolicy = { maxAttempts: 8, baseMs: 5, factor: 2, capMs: 200, jitter: 0.5 };
const UNREACHABLE = new Set(
  "ECONNREFUSED ECONNRESET EPIPE ETIMEDOUT ENOENT ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH".split(" "),
);
/** The server answers but cannot work now: SQLSTATEs outside the classes for a lost connection or a shutdown. */
const TEMPORARY = new Set([
  "25P03", // The transaction was idle for too long, and its connection was ended.
  "53100", // The disk is full.
  "53200", // Out of memory.
  "53300", // Too many connections.
]);
/** In the work pool: the server is not the primary, or no longer. In the read-only pool: a bug. */
const READ_ONLY = "25006";
export const UNIQUE_VIOLATION = "23505";
export const FOREIGN_KEY_VIOLATION = "23503";
const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const QUERY_CANCELED = "57014";
const LOCK_NOT_AVAILABLE = "55P03";
/** An earlier statement of the transaction has failed, so this one was not executed. */
const IN_FAILED_TRANSACTION = "25P02";

export function openDb(options: DbOptions): Db {
  const base = {
    ...options.connection,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
  };
  const applicationName = options.applicationName ?? "millrace";
  const work = new pg.Pool({
    ...base,
    application_name: applicationName,
    max: options.poolSize ?? 10,
    // Statements that do not await each other are sent together: a round trip takes longer than most of them.
    pipeline: true,
    statement_timeout: WORK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    // Every statement of the hot path has an index. A plan that was cached while the table was small could keep scanning
    // the whole table for the life of the connection.
    options: "-c enable_seqscan=off",
  });
  const reads = new pg.Pool({
    ...base,
    application_name: `${applicationName} reads`,
    max: READ_POOL_SIZE,
    statement_timeout: READ_TIMEOUT_MS,
    options: "-c default_transaction_read_only=on -c plan_cache_mode=force_custom_plan",
  });
  let closing = false;
  for (const pool of [work, reads]) {
    pool.on("error", (error) => {
      if (!closing) options.onIdleError?.(error); // The server may stop before it has read the end of the connection.
    });
    pool.on("connect", ignoreErrorEvents);
  }

  async function run<Row>(
    client: pg.Pool | pg.ClientBase,
    { name, text }: Statement<Row>,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    const started = performance.now();
    try {
      const result = await client.query<pg.QueryResultRow>({ name, text, values: values as unknown[] });
      return result.rows as Row[];
    } finally {
      options.onStatement?.(name, (performance.now() - started) / 1000);
    }
  }

  const retried = <T>(attempt: () => Promise<T>) => withRetry(attempt, { policy: CONFLICT_RETRY, retryOn: isConflict });

  const readOn =
    (client: pg.Pool | pg.ClientBase): Db["read"] =>
    (statement, values) =>
      run(client, statement, values).catch((error: unknown) => {
        if (sqlState(error) !== READ_ONLY) throw error;
        throw new Error(`${statement.name} writes, but was run in the read-only pool`, { cause: error });
      });

  const db: Db = {
    rows: (statement, values) => retried(() => run(work, statement, values)),
    read: readOn(reads),
    async reading(body) {
      const client = await reads.connect();
      const oneConnection: Db = { ...db, read: readOn(client), reading: (inner) => inner(oneConnection) };
      try {
        return await body(oneConnection);
      } finally {
        client.release();
      }
    },
    tx: (body) => retried(() => transaction(work, body)),
    async exclusive(body) {
      const client = await connect(`${applicationName} migrate`);
      try {
        return await body(client);
      } finally {
        await client.end();
      }
    },
    dedicated: (purpose, settings) => connect(`${applicationName} ${purpose}`, settings),
    rowsOn: run,
    stats: () => ({
      connections: work.totalCount + reads.totalCount,
      idle: work.idleCount + reads.idleCount,
      waiting: work.waitingCount + reads.waitingCount,
    }),
    async close() {
      closing = true;
      await Promise.all([work.end(), reads.end()]);
    },
  };
  return db;

  async function connect(name: string, settings?: pg.ClientConfig): Promise<pg.Client> {
    const client = new pg.Client({
      ...options.connection,
      application_name: name,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      ...settings,
    });
    ignoreErrorEvents(client);
    await client.connect();
    return client;
  }

  async function transaction<T>(pool: pg.Pool, body: (tx: Tx) => Promise<T | CommitWith<T>>): Promise<T> {
    const client = await pool.connect();
    const afterwards = new Set<() => void>();
    let answer: T;
    let broken: Error | undefined;
    let isOver = false;
    let failure: unknown;
    const tx: Tx = {
      async rows(statement, values) {
        if (isOver) throw new Error(`${statement.name} was sent after its transaction had ended`);
        try {
          return await run(client, statement, values);
        } catch (error) {
          // A caller that awaits several statements may get this error first, and needs the original one.
          if (sqlState(error) === IN_FAILED_TRANSACTION && failure !== undefined) throw failure;
          failure = error;
          throw error;
        }
      },
      afterCommit(fn) {
        if (isOver) throw new Error("afterCommit was called after its transaction had ended");
        afterwards.add(fn);
      },
    };
    try {
      // Sent together with the first statement. If only this fails, the error surfaces at the commit.
      const begun = client.query("begin");
      begun.catch(() => {});
      const result = await body(tx);
      isOver = true;
      const [answered, { command }] = await Promise.all([
        result instanceof CommitWith ? result.answer : result,
        client.query("commit"),
        begun,
      ]);
      // Postgres answers ROLLBACK without an error if a statement has failed and its error was ignored.
      if (command !== "COMMIT") throw new Error("nothing was committed: a statement of the transaction has failed");
      answer = answered;
    } catch (error) {
      isOver = true;
      await client.query("rollback").catch((rollbackError: Error) => {
        broken = rollbackError;
      });
      // A connection to a demoted server would fail for the rest of its life.
      if (sqlState(error) === READ_ONLY) broken = error as Error;
      throw error;
    } finally {
      client.release(broken); // Discarded if it is broken.
    }
    for (const fn of afterwards) callAfterCommit(fn);
    return answer;
  }

  function callAfterCommit(fn: () => void): void {
    try {
      fn();
    } catch (error) {
      const report = options.onAfterCommitError ?? throwUncaught;
      report(error);
    }
  }
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/**
 * A connection that breaks fails its present or next statement, which is enough. It also emits an error event, which would
 * end the process without a listener; the pool listens only while the connection is idle.
 */
function ignoreErrorEvents(client: pg.ClientBase): void {
  client.on("error", () => {});
}

function isConflict(error: unknown): boolean {
  const code = sqlState(error);
  return code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED;
}

/** The SQLSTATE of a Postgres error, if it is one. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Whether a statement, or its wait for a lock, timed out: its values are not at fault. */
export function isTimedOut(error: unknown): boolean {
  const code = sqlState(error);
  return code === QUERY_CANCELED || code === LOCK_NOT_AVAILABLE;
}

/**
 * Whether the database is unreachable, disconnected or temporarily unable to work, as opposed to having refused the
 * statement. The outcome of such a write is unknown, so it is not repeated here: the caller gets the error and may repeat
 * it, since repeats are harmless.
 */
export function isUnavailable(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== undefined) {
    const isDisconnected = code.startsWith("08") || code.startsWith("57P");
    return isDisconnected || TEMPORARY.has(code) || code === READ_ONLY || UNREACHABLE.has(code);
  }
  // node-postgres gives these two no code.
  const message = error instanceof Error ? error.message : "";
  return /^Connection terminated|timeout exceeded when trying to connect|not queryable/.test(message);
}
