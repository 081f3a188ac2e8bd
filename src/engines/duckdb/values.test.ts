/** Values that are too large are refused before they are converted: a list of five million items took 27 s and 1 GB. */
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import { limitSize } from "../result/size.ts";
import { jsonAt } from "./values.ts";

async function firstValue(sql: string, bytesMax: number): Promise<unknown> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  onTestFinished(() => {
    connection.closeSync();
    instance.closeSync();
  });
  const result = await connection.run(sql);
  const vector = result.getChunk(0).getColumnVector(0);
  return jsonAt(
    vector,
    0,
    limitSize(bytesMax, () => {}),
    result.columnType(0),
  );
}

test.each([
  ["a list", "select range(1000000)"],
  ["lists in a list", "select [range(300) for i in range(3000)]"],
  ["a list in an object", "select {'deep': range(1000000)}"],
  ["a map", "select histogram(i) from range(200000) as t(i)"], // `map()` itself takes DuckDB 26 us for each entry.
  ["text", "select repeat('x', 2000000)"],
  ["JSON", "select to_json(range(1000000))"],
])("%s", async (_, sql) => {
  await expect(firstValue(sql, 1_000_000)).rejects.toThrow("a row of the result is too large");
});

test("JSON that is deeper than a process can parse", async () => {
  await expect(firstValue("select repeat('[', 5000)::json", 1_000_000)).rejects.toThrow();
  const deep = "select (repeat('[', 500) || repeat(']', 500))::json";
  await expect(firstValue(deep, 1_000_000)).rejects.toThrow("A JSON value of the result cannot be used.");
});

test("smaller ones keep their values, and null stays null", async () => {
  const sql = "select {'a': [1, null, 3], 'b': map {'k': [1.5]}, 'n': null::int[], 'm': null::map(int, int), 's': 'x'}";
  expect(await firstValue(sql, 1_000)).toEqual({ a: [1, null, 3], b: { k: [1.5] }, n: null, m: null, s: "x" });
  expect(await firstValue("select null::struct(a int)", 1_000)).toBeNull();
});
