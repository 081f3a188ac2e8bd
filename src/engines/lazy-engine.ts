/**
 * An engine that opens at its first query: what is only configured costs nothing, and one that cannot be reached at the
 * start of the process is tried again at the next query. The limits of engine.ts are kept here, for all kinds alike.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
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
import { sqlTokens } from "./sql-tokens.ts";

const BATCH_ROWS_MAX = 2_000;
const HEALTH_TIMEOUT_MS = 5_000;

export interface LazyEngineOptions {
  name: string;
  kind: Engine["kind"];
  slots: Slots;
  open(): Promise<Driver>;
}

/** A query, and the one thing that ends it early, whoever wants that: the caller, the clock, a limit, or the engine's end. */
interface Work extends QueryOptions {
  sql: string;
  stop: AbortController;
  line: Slots;
  onRows: DriverOptions["onRows"];
}

export function lazyEngine({ name, kind, slots, open }: LazyEngineOptions): Engine {
  const closing = new AbortController();
  const underWay = new Map<AbortController, Promise<unknown>>();
  const healthLine = createSlots(1);
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
    if (holdsNothing(sql)) throw new EngineRefusal("The SQL holds no statement.");
    // Not AbortSignal.any: the signal of an engine lives as long as the process and would remember every query.
    const follow = () => stop.abort(signal.reason);
    signal.addEventListener("abort", follow, { once: true });
    const result = inLine(work);
    underWay.set(stop, result);
    try {
      return await result;
    } catch (error) {
      throw stop.signal.aborted ? stop.signal.reason : error;
    } finally {
      underWay.delete(stop);
      signal.removeEventListener("abort", follow);
    }
  }

  async function inLine({ sql, params, rowsMax, timeoutMs, stop, line, onRows }: Work): Promise<DriverResult> {
    const { signal } = stop;
    const giveBack = await line.take(signal);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop.abort(tooSlow(timeoutMs)), timeoutMs);
    try {
      const ready = await opened();
      signal.throwIfAborted();
      // One more than is wanted shows that there are more.
      return await ready.run(sql, { params, signal, rowsMax: rowsMax + 1, onRows });
    } finally {
      clearTimeout(timer);
      giveBack();
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
      const work = { ...options, sql, onRows, stop: new AbortController(), line: slots };
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
      const working = begin({ ...options, sql, onRows, stop, line: slots }).finally(() => batches.end());
      working.catch(() => {}); // Told below, if anybody still listens.
      try {
        yield* batches as AsyncIterable<Row[]>;
        await working;
      } finally {
        stop.abort(new Error("Nobody takes the rows any more."));
        await Promise.allSettled([working]);
      }
    },
    async health() {
      const options = { signal: closing.signal, rowsMax: 1, timeoutMs: HEALTH_TIMEOUT_MS };
      const stop = new AbortController();
      await begin({ ...options, sql: "select 1", stop, line: healthLine, onRows: async () => {} });
    },
    async close() {
      closing.abort(new Error(`The engine \`${name}\` is closed.`));
      const running = [...underWay.values()];
      for (const stop of underWay.keys()) stop.abort(closing.signal.reason);
      await Promise.allSettled(running);
      const last = driver;
      driver = undefined;
      await (await last)?.close();
    },
  };
}

/** DuckDB would fail without a word, Postgres succeed. */
function holdsNothing(sql: string): boolean {
  return [...sqlTokens(sql)].every(({ kind }) => kind === "blank" || kind === "semicolon");
}

function tooMany(rowsMax: number): EngineRefusal {
  return new EngineRefusal(
    `The SQL returns more than ${rowsMax} rows, which is the limit here, so none of them counts.`,
  );
}

function tooSlow(timeoutMs: number): Error {
  return new Error(`The query took longer than the ${timeoutMs / 1_000} s that it may take, so it was ended.`);
}
