import { describe, expect, test } from "vitest";
import { EngineRefusal, type Engines, type QueryOptions, type Row } from "./engine.ts";
import { KINDS, useEveryKind } from "./every-kind.fixture.ts";

// Streams, limits and health, for every kind of engine.
const every = useEveryKind();
const ENDLESS = "select count(*) as n from generate_series(1, 100000000000) as t(i) where i % 3 = 7";
const ROWS = "select i, 'row ' || i as name from generate_series(1, $n) as t(i) order by i";

describe.each(KINDS)("the %s engine", (name) => {
  function stream(
    sql: string,
    options: Partial<QueryOptions> = {},
    from: Engines = every.engines,
  ): AsyncIterable<Row[]> {
    return from.get(name).stream(sql, { signal: new AbortController().signal, rowsMax: 1_000_000, ...options });
  }
  async function all(batches: AsyncIterable<Row[]>): Promise<Row[]> {
    const rows: Row[] = [];
    for await (const batch of batches) rows.push(...batch);
    return rows;
  }

  describe("streams", () => {
    test("every row once, in order, in batches of a limited size", async () => {
      const rows: Row[] = [];
      for await (const batch of stream(ROWS, { params: { n: 12_345 } })) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(2_000);
        rows.push(...batch);
      }
      expect(rows.length).toBe(12_345);
      expect(rows.every(({ i, name: text }, index) => i === index + 1 && text === `row ${index + 1}`)).toBe(true);
    });

    test("no batch where there are no rows", async () => {
      expect(await all(stream("select 1 as a where false"))).toEqual([]);
      expect(await all(stream(`create table streamed_${name} (a int)`))).toEqual([]);
    });

    test.runIf(name !== "trino")("the rows of the last of several statements", async () => {
      const sql = "select 1 as a; select i from generate_series(1, 5000) as t(i); ;";
      expect((await all(stream(sql))).length).toBe(5_000);
      await expect(all(stream(sql, { rowsMax: 4_999 }))).rejects.toThrow("more than 4999 rows");
      const large = "select repeat('x', 1000) from generate_series(1, 40) as t(i);";
      expect(await all(stream(`${large} ${large} select 1 as a`, { bytesMax: 50_000 }))).toEqual([{ a: 1 }]);
    });

    test("nothing before the first batch is requested", async () => {
      stream("create table too_early (a int)");
      await expect(all(stream("select * from too_early"))).rejects.toThrow(EngineRefusal);
    });

    test("as many rows as are allowed, and fails with one more", async () => {
      expect((await all(stream(ROWS, { params: { n: 4_000 }, rowsMax: 4_000 }))).length).toBe(4_000);
      const refusal = new EngineRefusal(
        "The SQL returns more than 3999 rows, the limit here, so none of them is used.",
      );
      await expect(all(stream(ROWS, { params: { n: 4_000 }, rowsMax: 3_999 }))).rejects.toThrow(refusal);
    });

    test("as many bytes as are allowed, and fails with more, long before the whole result is in memory", async () => {
      const sql = "select i, repeat('x', 100000) as text from generate_series(1, $n) as t(i)";
      const bytesMax = 2_000_000;
      expect((await all(stream(sql, { params: { n: 19 }, bytesMax }))).length).toBe(19);
      let seen = 0;
      const read = async () => {
        for await (const batch of stream(sql, { params: { n: 300 }, bytesMax })) seen += batch.length;
      };
      const refusal = new EngineRefusal(
        "The SQL returns more than 2000000 bytes, the limit here, so no row is used. Select fewer rows, or shorter columns.",
      );
      await expect(read()).rejects.toThrow(refusal);
      expect(seen).toBeLessThan(21);
      await expect(
        every.engines
          .get(name)
          .query(sql, { params: { n: 300 }, bytesMax, rowsMax: 300, signal: new AbortController().signal }),
      ).rejects.toThrow(refusal);
    });

    // Trino itself ends a page after about a megabyte.
    test.runIf(name !== "trino")("large rows in small batches, so that the event loop is not blocked", async () => {
      const sql = "select i, repeat('x', 1000000) as text from generate_series(1, 40) as t(i)";
      for await (const batch of stream(sql)) expect(batch.length).toBeLessThanOrEqual(3);
    });

    test("a failure after some rows, not an early end", async () => {
      const sql =
        "select case when i = 9000 then cast('row ' || i as int) else i end as i from generate_series(1, 9000) as t(i)";
      await expect(all(stream(sql))).rejects.toThrow("row 9000");
    });

    test("until the caller leaves the loop, and then frees its slot", async () => {
      for (let round = 0; round < 6; round += 1) {
        for await (const batch of stream(ROWS, { params: { n: 100_000 } })) {
          expect(batch[0]).toEqual({ i: 1, name: "row 1" });
          break;
        }
      }
      expect(await all(stream("select 1 as a"))).toEqual([{ a: 1 }]);
    });

    test("until the signal aborts, and rejects with its reason", async () => {
      const abort = new AbortController();
      const reason = new Error("the run was stopped");
      const taken = (async () => {
        for await (const batch of stream(ROWS, { params: { n: 100_000 }, signal: abort.signal })) {
          if (batch[0]?.["i"] !== 1) abort.abort(reason);
        }
      })();
      await expect(taken).rejects.toBe(reason);
      await expect(all(stream("select 1 as a", { signal: abort.signal }))).rejects.toBe(reason);
    });

    test("no more rows once the engine is closed, also when the caller has stopped reading", async () => {
      const own = every.openOthers();
      const forgotten = stream(ROWS, { params: { n: 100_000 } }, own)[Symbol.asyncIterator]();
      expect((await forgotten.next()).done).toBe(false);
      await own.close();
      const rest = async () => {
        while (!(await forgotten.next()).done);
      };
      await expect(rest()).rejects.toThrow(`The engine \`${name}\` is closed.`);
    });
  });

  describe("has a time limit", () => {
    const late = new Error("The query took longer than its limit of 0.05 s and was cancelled.");
    const options = { signal: new AbortController().signal, rowsMax: 10, timeoutMs: 50 };

    test("that ends a query and says how long it was", async () => {
      const failure = await every.engines
        .get(name)
        .query(ENDLESS, options)
        .catch((error: unknown) => error);
      expect(failure).toEqual(late);
      expect(failure).not.toBeInstanceOf(EngineRefusal);
      await expect(all(stream(ENDLESS, options))).rejects.toThrow(late);
      expect((await every.engines.get(name).query("select 1 as a", { ...options, timeoutMs: undefined })).rows).toEqual(
        [{ a: 1 }],
      );
    });

    test("that includes the time in which the caller reads no rows, so that queued queries get their turn", async () => {
      const forgotten = Array.from({ length: 5 }, () =>
        stream(ROWS, { params: { n: 20_000 }, timeoutMs: 2_000 })[Symbol.asyncIterator](),
      );
      await Promise.all(forgotten.map((batches) => batches.next()));
      expect(await all(stream("select 1 as a"))).toEqual([{ a: 1 }]);
      const rest = async (batches: AsyncIterator<Row[]> | undefined) => {
        while (!(await batches?.next())?.done);
      };
      await expect(rest(forgotten[0])).rejects.toThrow("longer than its limit of 2 s");
    });

    test("that does not include the time in the queue", async () => {
      const busy = Array.from({ length: 4 }, () =>
        every.engines
          .get(name)
          .query(ENDLESS, { ...options, timeoutMs: 1_000 })
          .catch((error: Error) => error.message),
      );
      const waiting = every.engines.get(name).query("select 1 as a", { ...options, timeoutMs: 900 });
      expect((await waiting).rows).toEqual([{ a: 1 }]);
      expect(await Promise.all(busy)).toEqual(Array(4).fill(late.message.replace("0.05", "1")));
    });
  });

  test("is healthy, however busy", async () => {
    const abort = new AbortController();
    const busy = Array.from({ length: 6 }, () =>
      every.engines
        .get(name)
        .query(ENDLESS, { signal: abort.signal, rowsMax: 1 })
        .catch(() => {}),
    );
    await every.engines.get(name).health();
    abort.abort();
    await Promise.all(busy);
  });
});
