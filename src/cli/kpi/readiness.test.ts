/** The table of a range of opTimes. */
import { expect, test } from "vitest";
import { matrix, type Readiness } from "./readiness.ts";

const EMPTY: Readiness = { opTimes: [], tables: [], models: [], partial: false };

test("tables and models have a column for each day, with a legend of the symbols in use", () => {
  const states = ["waiting", "quiet", "asking", "ready", "running", "idle", "idle", "idle"];
  const opTimes = states.map((_, index) => `2025120${index + 1}`);
  const last = [null, null, "SUCCESS", null, null, "SUCCESS", "FAILED", null] as const;
  const cells = Object.fromEntries(
    opTimes.map((at, index) => [at, { state: states[index] ?? "", last: last[index] ?? null }]),
  );
  const tables = [{ table: "DW_A", cells: { 20251201: { arrivals: 1 }, 20251202: { arrivals: 3 } } }];
  expect(matrix({ opTimes, tables, models: [{ modelId: "MODEL-01", cells }], partial: true }, 80)).toBe(
    `202512   01 02 03 04 05 06 07 08
DW_A     ✓  ↻  ·  ·  ·  ·  ·  ·
MODEL-01 …  ◔  ?  ○  ●  ✓  ✗  ·

✓ arrived or succeeded
↻ arrived more than once
· nothing yet
… waits for tables
◔ waits in case a table comes again
? has something new, and asks before it runs again
○ waits for a free worker
● runs
✗ failed

There are more tables or models than are shown.`,
  );
});

test("days of two months are distinguished, and a wide table is split into blocks", () => {
  const opTimes = ["20251230", "20251231", "20260101", "20260102"];
  const tables = [{ table: "订单", cells: { 20260101: { arrivals: 1 } } }];
  expect(
    matrix({ ...EMPTY, opTimes, tables }, 24)
      .split("\n\n")
      .slice(0, 2),
  ).toEqual(["     20251230 20251231\n订单 ·        ·", "     20260101 20260102\n订单 ✓        ·"]);
  expect(matrix({ ...EMPTY, opTimes: ["20251130", "20251231"], tables }, 80)).toBe(
    "2025 1130 1231\n订单 ·    ·\n\n· nothing yet",
  );
});

test("names that are not dates share their common prefix, and a single one is not shortened", () => {
  const tables = [{ table: "T", cells: {} }];
  expect(matrix({ ...EMPTY, opTimes: ["batch-1", "batch-22"], tables }, 80)).toMatch(/^batch- 1  22\n/);
  expect(matrix({ ...EMPTY, opTimes: ["20251219"], tables }, 80)).toMatch(/^ {2}20251219\n/);
});

test("an empty table says why it is empty", () => {
  expect(matrix(EMPTY, 80)).toBe("Nothing has arrived in this range.");
  expect(matrix({ ...EMPTY, opTimes: ["1"] }, 80)).toBe("There is no published model.");
});
