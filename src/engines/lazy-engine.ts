/**
 * An engine that opens its driver at the first query, so that an unused engine costs nothing and one that cannot be opened is
 * tried again at the next query. Enforces the limits of engine.ts for every kind of engine.
 */

import { once } from "node:events";
import { PassThrough } from "node:stream";
import { counted } from "../kernel/text/sentences.ts";
import { createSlots, type Slots } from "../kernel/work/slots.ts";
import {
  type Driver,
  type DriverOptions,
  type DriverResult,
  type Engine,
  EngineRefusal,
  type QueryOptions,
  type Row,
} from "./engine.ts";
import { limitSize } from "./result/size.ts";
import { type Dialect, dialectOf, sqlTokens } from "./sql/tokens.ts";

const BATCH_ROWS_MAX = 2_000;
const RESULT_BYTES_MAX = 256 * 1024 * 1024;
const HEALTH_TIMEOUT_MS = 5_000;

export interface LazyEngineOptions {
  name: string;
  kind: Engine["kind"];
  slots: Slots;
  open(): Promise<Driver>;
}

/** A query. `stop` is what ends it early: for the caller, a time-out, the row limit, or the closing of the engine. */
interface Work extends QueryOptions {
  sql: string;
  stop: AbortController;
  queue: Slots;
  waits: boolean;
  onRows: DriverOptions["onRows"];
}

export function lazyEngine({ name, kind, slots, open }: LazyEngineOptions): Engine {
  const closing = new AbortController();
  const running = new Map<AbortController, Promise<unknown>>();
  const healthQueue = createSlots(1);
  let driver: Promise<Driver> | undefined;

  function opened(): Promise<Driver> {
    driver ??= open().catch((error: unknown) => {
      driver = undefined;
      throw error;
    });
    return driver;
  }

  async function begin(work: Work): Promise<DriverResult> {
    const { sql, stop, signal } = work;
    signal.throwIfAborted();
    closing.signal.throwIfAborted();
    if (isBlank(sql, dialectOf(kind))) throw new EngineRefusal("The SQL contains no statement.");
    // Not AbortSignal.any: `closing` lives as long as the process and would keep a reference to every query.
    const follow = () => stop.abort(signal.reason);
    signal.addEventListener("abort", follow, { once: true });
    const result = runInTurn(work);
    running.set(stop, result);
    try {
      return await result;
    } catch (error) {
      throw stop.signal.aborted ? stop.signal.reason : error;
    } finally {
      running.delete(stop);
      signal.removeEventListener("abort", follow);
    }
  }

  async function runInTurn(work: Work): Promise<DriverResult> {
    const { sql, params, rowsMax, bytesMax = RESULT_BYTES_MAX, timeoutMs, stop, queue, waits, onRows } = work;
    const { signal } = stop;
    const size = limitSize(bytesMax, () => stop.abort(tooLarge(bytesMax)));
    const release = await queue.take(signal);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop.abort(tooSlow(timeoutMs)), timeoutMs);
    try {
      const ready = await opened();
      signal.throwIfAborted();
      // One row over the limit shows that there are more.
      return await ready.run(sql, { params, signal, waits, rowsMax: rowsMax + 1, size, onRows });
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  return {
    name,
    kind,
    async query(sql, options) {
      const { rowsMax } = options;
      const rows: Row[] = [];
      const onRows = async (batch: Row[]) => {
        for (const row of batch) rows.push(row);
      };
      const work = { ...options, sql, onRows, stop: new AbortController(), queue: slots, waits: true };
      const { columns, rowsChanged } = await begin(work);
      const truncated = rows.length > rowsMax;
      if (truncated) rows.length = rowsMax;
      return { columns, rows, rowCount: columns.length === 0 ? rowsChanged : rows.length, truncated };
    },
    async *stream(sql, options) {
      const { rowsMax } = options;
      const stop = new AbortController();
      const { signal } = stop;
      const batches = new PassThrough({ objectMode: true, highWaterMark: 1 });
      let seen = 0;
      const onRows = async (rows: Row[]) => {
        seen += rows.length;
        if (seen > rowsMax) stop.abort(tooMany(rowsMax));
        for (let at = 0; at < rows.length; at += BATCH_ROWS_MAX) {
          signal.throwIfAborted();
          if (!batches.write(rows.slice(at, at + BATCH_ROWS_MAX))) await once(batches, "drain", { signal });
        }
      };
      const working = begin({ ...options, sql, onRows, stop, queue: slots, waits: true }).finally(() => batches.end());
      working.catch(() => {}); // The await below reports it, if the caller still iterates.
      try {
        yield* batches as AsyncIterable<Row[]>;
        await working;
      } finally {
        stop.abort(new Error("The caller stopped reading the rows."));
        await Promise.allSettled([working]);
      }
    },
    async health() {
      const options = { signal: closing.signal, rowsMax: 1, timeoutMs: HEALTH_TIMEOUT_MS };
      const stop = new AbortController();
      await begin({ ...options, sql: "select 1", stop, queue: healthQueue, waits: false, onRows: async () => {} });
    },
    async close() {
      closing.abort(new Error(`The engine \`${name}\` is closed.`));
      const ending = [...running.values()];
      for (const stop of running.keys()) stop.abort(closing.signal.reason);
      await Promise.allSettled(ending);
      const last = driver;
      driver = undefined;
      await (await last)?.close();
    },
  };
}

/** DuckDB would fail without a message, and Postgres would succeed. */
function isBlank(sql: string, dialect: Dialect): boolean {
  return [...sqlTokens(sql, dialect)].every(({ kind }) => kind === "blank" || kind === "semicolon");
}

function tooMany(rowsMax: number): EngineRefusal {
  return new EngineRefusal(
    `The SQL returns more than ${counted(rowsMax, "row")}, the limit here, so none of them is used.`,
  );
}

function tooLarge(bytesMax: number): EngineRefusal {
  return new EngineRefusal(
    `The SQL returns more than ${counted(bytesMax, "byte")}, the limit here, so no row is used. Select fewer rows, or shorter columns.`,
  );
}

function tooSlow(timeoutMs: number): Error {
  return new Error(`The query took longer than its limit of ${timeoutMs / 1_000} s and was cancelled.`);
}
