/**
 * An engine that opens at its first query: what is only configured costs nothing, and one that cannot be reached at the
 * start of the process is tried again at the next query.
 */
import { type Driver, type Engine, EngineRefusal, type QueryOptions, type QueryResult } from "./engine.ts";
import type { Slots } from "./slots.ts";
import { sqlTokens } from "./sql-tokens.ts";

export interface LazyEngineOptions {
  name: string;
  kind: Engine["kind"];
  slots: Slots;
  open(): Promise<Driver>;
}

export function lazyEngine({ name, kind, slots, open }: LazyEngineOptions): Engine {
  const closing = new AbortController();
  const underWay = new Map<AbortController, Promise<unknown>>();
  let driver: Promise<Driver> | undefined;

  function opened(): Promise<Driver> {
    driver ??= open().catch((error: unknown) => {
      driver = undefined;
      throw error;
    });
    return driver;
  }

  async function run(sql: string, options: QueryOptions): Promise<QueryResult> {
    const giveBack = await slots.take(options.signal);
    try {
      const ready = await opened();
      options.signal.throwIfAborted();
      return await ready.run(sql, options);
    } finally {
      giveBack();
    }
  }

  return {
    name,
    kind,
    async query(sql, options) {
      options.signal.throwIfAborted();
      closing.signal.throwIfAborted();
      if (holdsNothing(sql)) throw new EngineRefusal("The SQL holds no statement.");
      // Not AbortSignal.any: the signal of an engine lives as long as the process and would remember every query.
      const stop = new AbortController();
      const follow = () => stop.abort(options.signal.reason);
      options.signal.addEventListener("abort", follow, { once: true });
      const result = run(sql, { ...options, signal: stop.signal });
      underWay.set(stop, result);
      try {
        return await result;
      } finally {
        underWay.delete(stop);
        options.signal.removeEventListener("abort", follow);
      }
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
