/** What is drawn of a graph: pills for what can be brought, one folded node for what is too much, no edge twice. */
import { describe, expect, test } from "vitest";
import type { GraphAsset, GraphReply, Kind, Link } from "../api.ts";
import { drawnGraph, hopOf, listOf, type Wish, withColumn, withHop } from "./drawn.ts";

const TEXTS = {
  others: (count: string) => `${count} more`,
  openList: "list",
  otherColumns: (count: string) => `+${count} more columns`,
  expandColumns: "expand",
  masked: "masked",
  indirect: "indirect",
};

function asset(id: string, more: Partial<GraphAsset> = {}, kind: Kind = "TABLE"): GraphAsset {
  const path = ["external", "lake", "shop", id];
  return { id, kind, name: id, fullName: `lake.shop.${id}`, path, description: null, distance: 0, ...more };
}
const link = (from: string, to: string, kind = "INPUT_OF"): Link => ({ from, to, kind });

function draw(nodes: GraphAsset[], edges: Link[], wish: Partial<Wish> = {}) {
  const reply: GraphReply = { start: nodes[0]?.id ?? "", partial: false, reason: null, nodes, edges };
  return drawnGraph(reply, { direction: "both", selected: undefined, columns: undefined, ...wish }, TEXTS, String);
}

describe("neighbours that are not in the graph", () => {
  test("are a pill as long as one more step brings all of them", () => {
    const { nodes } = draw([asset("a", { moreUp: 37 }), asset("b", { moreDown: 2 })], [link("a", "b")]);
    expect(nodes.map(({ id, hiddenBefore, hiddenAfter }) => [id, hiddenBefore, hiddenAfter])).toEqual([
      ["a", 37, 0],
      ["b", 0, 2],
    ]);
  });

  test("are one node that opens a list, where an asset has more than are drawn at once", () => {
    const { nodes, edges } = draw([asset("1", { moreDown: 2_992 }), asset("2")], [link("1", "2")]);
    expect(nodes.map(({ id, title, hiddenAfter }) => [id, title, hiddenAfter])).toEqual([
      ["1", "1", undefined],
      ["list:1:down", "2992 more", undefined],
      ["2", "2", 0],
    ]);
    expect(edges).toContainEqual({ from: "1", to: "list:1:down" });
    expect(hopOf(listOf("list:1:down"))).toEqual({ id: "1", direction: "down" });
  });

  test("are not shown in a direction that is not looked at", () => {
    const { nodes } = draw([asset("a", { moreUp: 3, moreDown: 4 })], [], { direction: "down" });
    expect(nodes).toMatchObject([{ hiddenBefore: 0, hiddenAfter: 4 }]);
  });
});

test("an edge between tables is not drawn beside the statement that tells the same", () => {
  const nodes = [asset("a"), asset("sql", {}, "SQL"), asset("b"), asset("c")];
  const edges = [
    link("a", "sql"),
    link("sql", "b", "OUTPUT_TO"),
    link("a", "b", "DERIVES_FROM"),
    link("b", "c", "DERIVES_FROM"),
  ];
  expect(draw(nodes, edges).edges).toEqual([
    { from: "a", to: "sql" },
    { from: "sql", to: "b" },
    { from: "b", to: "c" },
  ]);
});

test("columns without lineage are counted and left out, unless none has any", () => {
  const columns = ["x", "y", "z"].map((id) => asset(id, {}, "COLUMN"));
  const { nodes, assets, unused } = draw([asset("t"), ...columns], [link("x", "y", "DERIVES_FROM")]);
  expect(nodes.map(({ id }) => id)).toEqual(["x", "y"]);
  // The table is not drawn either, but it is no column.
  expect({ assets, unused }).toEqual({ assets: 2, unused: 1 });
  expect(draw([asset("t"), ...columns], []).nodes.map(({ id }) => id)).toEqual(["t"]);
});

describe("of a table with many used columns", () => {
  const COUNT = 14;
  const numbers = Array.from({ length: COUNT }, (_, n) => n);
  const columnOf = (table: string, n: number, distance: number) =>
    asset(`${table}${10 + n}`, { distance, path: ["external", "lake", "shop", table, `c${n}`] }, "COLUMN");
  // The columns of the second table come from those of the first, in the opposite order.
  const [first, second] = [numbers.map((n) => columnOf("1", n, 0)), numbers.map((n) => columnOf("2", n, 1))];
  const edges = numbers.map((n) => link(`1${10 + n}`, `2${10 + COUNT - 1 - n}`, "DERIVES_FROM"));
  const drawn = (wish?: Partial<Wish>) => draw([asset("0"), ...first, ...second], edges, wish);
  const titles = (wish?: Partial<Wish>) => drawn(wish).nodes.map(({ title }) => title);

  const ids = (table: string, from = 0, to = COUNT) => numbers.slice(from, to).map((n) => `${table}${10 + n}`);

  test("ten are drawn, in other tables those that come from them, and one node stands for the others", () => {
    expect(titles()).toEqual([...ids("1", 0, 10), ...ids("2", 4), "+4 more columns", "+4 more columns"]);
    const { edges: lines, others } = drawn();
    expect([...others]).toEqual([
      ["120", 4],
      ["210", 4],
    ]);
    expect(lines).toContainEqual({ from: "110", to: "223" });
    expect(lines).toContainEqual({ from: "120", to: "210" });
  });

  test("all are drawn once the table is expanded, and the asset of the page stays the middle", () => {
    const columns = withColumn(withColumn("junk", "210"), "120");
    expect(columns).toBe("210,120");
    expect(titles({ columns: "120" }).slice(0, COUNT)).toEqual(ids("1"));
    expect(titles({ columns })).toEqual([...ids("1"), ...ids("2")]);
    expect(drawn({ columns }).start).toBe(drawn().start);
  });

  test("the one whose details are open is always drawn", () => {
    expect(titles({ selected: "123" })).toContain("123");
    expect([...drawn({ selected: "123" }).others.keys()]).toEqual(["119", "211"]);
  });
});

test("what was opened is kept in its order, each once, and no more than the server takes", () => {
  expect(withHop(withHop(withHop(undefined, "1:up"), "2:down"), "1:up")).toBe("2:down,1:up");
  expect(withHop("junk,3:up", "4:up")).toBe("3:up,4:up");
  const many = Array.from({ length: 50 }, (_, n) => `${n}:up`);
  const hops = many.reduce<string | undefined>((expand, hop) => withHop(expand, hop), undefined) ?? "";
  expect(hops.split(",")).toEqual(many.slice(-30));
});
