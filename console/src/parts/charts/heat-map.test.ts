import { expect, test } from "vitest";
import { columnsOf, headingsOf, type Look, layoutOf, lookOf, revealing } from "./heat-map.ts";

test.each([
  ["stays where it is when the cell is in view", { row: 3, column: 5 }, { left: 40, top: 0 }, { left: 40, top: 0 }],
  ["moves a cell at the right edge into view", { row: 3, column: 31 }, { left: 0, top: 0 }, { left: 240, top: 0 }],
  ["moves a cell at the left edge into view", { row: 3, column: 2 }, { left: 240, top: 0 }, { left: 40, top: 0 }],
  ["moves a row below the edge into view", { row: 20, column: 5 }, { left: 0, top: 0 }, { left: 0, top: 346 }],
])("a map that becomes narrower %s", (_, place, now, expected) => {
  const layout = layoutOf(32, 400);
  expect(layout.cellPx).toBe(20);
  expect(revealing(place, layout, now, { width: 400, height: 200 })).toEqual(expected);
});

test("above 400 columns a cell has several of them, the last one what is left, and shows the most urgent", () => {
  expect(layoutOf(400, 1_000)).toMatchObject({ group: 1, count: 400 });
  const layout = layoutOf(1_001, 1_000);
  expect(layout).toMatchObject({ group: 3, count: 334 });
  expect([0, 333].map((cell) => columnsOf(cell, layout, 1_001))).toEqual([
    { from: 0, to: 2 },
    { from: 999, to: 1_000 },
  ]);
  const looks: Look[] = [
    { code: "f", state: "failed", word: "failed" },
    { code: "s", state: "success", word: "succeeded" },
  ];
  expect([0, 1, 2, 3].map((cell) => lookOf("ssfsss...f", cell, 3, looks)?.word)).toEqual([
    "failed",
    "succeeded",
    undefined,
    "failed",
  ]);
});

test("short names such as the numbers of shards are all shown, long ones as far as there is room", () => {
  const layout = { group: 1, count: 3, cellPx: 40 };
  const shown = (names: string[]) => headingsOf(names, layout, [0, 2]).map(({ lead }) => lead);
  expect(shown(["0", "1", "2"])).toEqual(["0", "1", "2"]);
  expect(shown(["a-long-name", "b-long-name", "c-long-name"])).toEqual(["a-long-name"]);
});
