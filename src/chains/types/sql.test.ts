import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createEngines } from "../../engines/engines.ts";
import type { Engines } from "../../engines/index.ts";
import { FinalFailure, mayRetry, type NodeContext } from "./node-type.ts";
import { createRegistry } from "./registry.ts";
import { sqlType } from "./sql.ts";

const database = useDatabase();
let engines: Engines;
beforeAll(() => {
  const url = "postgres://me@127.0.0.1:1/nowhere";
  engines = createEngines(
    { warehouse: { kind: "postgres", url: database.url }, gone: { kind: "postgres", url } },
    { lakeDir: undefined },
  );
});
afterAll(() => engines.close());

async function run(cfg: Record<string, unknown>, signal = new AbortController().signal) {
  const type = sqlType(engines);
  const completed = createRegistry([type]).complete("sql", cfg);
  if ("problems" in completed) throw new Error(completed.problems.map(({ message }) => message).join(" "));
  const lines: string[] = [];
  const log = (text: string, level = "info") => void lines.push(`${level}: ${text}`);
  const { artifact } = await type.execute({ signal, log } as NodeContext, completed.cfg as never);
  return { artifact, lines };
}
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test("the artifact holds what the SQL returned, on DuckDB unless another engine is named", async () => {
  const { artifact, lines } = await run({
    sql: "select $op_time as t, version() as v",
    params: { op_time: "20260131" },
  });
  expect(artifact).toEqual({
    columns: ["t", "v"],
    rows: [{ t: "20260131", v: expect.stringMatching(/^v1\./) }],
    rowCount: 1,
    truncated: false,
  });
  expect(lines).toEqual([]);
  const other = await run({ engine: "warehouse", sql: "select $1::int as n, version() as v", params: [7] });
  expect(other.artifact).toMatchObject({ rows: [{ n: 7, v: expect.stringMatching(/^PostgreSQL/) }] });
});

test("the artifact keeps up to a thousand rows by default, with a warning in the log if there are more", async () => {
  const sql = "select i from generate_series(1, 20000) as t(i)";
  const { artifact, lines } = await run({ sql });
  expect(artifact).toMatchObject({ rowCount: 1000, truncated: true });
  expect(lines).toEqual(["warn: There are more than 1000 rows; the artifact keeps only these."]);
  expect((await run({ sql, rowsMax: 10_000 })).artifact).toMatchObject({ rowCount: 10_000, truncated: true });
  expect(await failureOf(run({ sql, rowsMax: 10_001 }))).toBeInstanceOf(Error);
});

describe("expectRows", () => {
  test("fails a node with too few rows, but not for good", async () => {
    const failure = await failureOf(run({ sql: "select 1 as a", expectRows: 2 }));
    expect(failure).toEqual(new Error("1 row, but at least 2 expected."));
    expect(mayRetry(failure)).toBe(true);
    expect((await run({ sql: "values (1), (2)", expectRows: 2 })).artifact).toMatchObject({ rowCount: 2 });
  });

  test("counts beyond rowsMax, and what a statement changes", async () => {
    const sql = "select i from generate_series(1, 2000) as t(i)";
    expect((await run({ sql, expectRows: 1500 })).artifact).toMatchObject({ rowCount: 1500, truncated: true });
    await run({ engine: "warehouse", sql: "create table filled (a int)" });
    const insert = `insert into filled ${sql}`;
    expect((await run({ engine: "warehouse", sql: insert, rowsMax: 0, expectRows: 2000 })).artifact).toMatchObject({
      rowCount: 2000,
    });
  });
});

describe("fails for good, in the engine's words, with", () => {
  test.each([
    ["duckdb", "selec 1", /syntax error at or near "selec"/],
    ["warehouse", "selec 1", /syntax error at or near "selec"/],
    ["duckdb", "select * from missing", /missing.* does not exist/],
    ["warehouse", "select * from missing", /missing.* does not exist/],
    ["duckdb", "create table k (a int primary key); insert into k values (1), (1)", /[Dd]uplicate key/],
    ["warehouse", "create table k (a int primary key); insert into k values (1), (1)", /duplicate key/],
    ["duckdb", "select $nothing", /uses \$nothing/],
    ["wharehouse", "select 1", /Did you mean `warehouse`\?/],
  ])("%s: %s", async (engine, sql, message) => {
    const failure = await failureOf(run({ engine, sql }));
    expect(failure).toBeInstanceOf(FinalFailure);
    expect(String(failure)).toMatch(message);
  });
});

test("a query on an engine that cannot be reached may be retried", async () => {
  const failure = await failureOf(run({ engine: "gone", sql: "select 1" }));
  expect(failure).toBeInstanceOf(Error);
  expect(mayRetry(failure)).toBe(true);
});

test.each(["duckdb", "warehouse"])("a stopped run ends its query on %s", async (engine) => {
  const abort = new AbortController();
  const sql = "select count(*) from generate_series(1, 100000000000) as t(i) where i % 3 = 7";
  const endless = failureOf(run({ engine, sql }, abort.signal));
  const reason = new Error("stopped");
  setImmediate(() => abort.abort(reason));
  expect(await endless).toBe(reason);
});
