/** What is drawn of a graph: pills for what can be brought, one folded node for what is too much, no edge twice. */
import { describe, expect, test } from "vitest";
import type { GraphAsset, GraphReply, Kind, Link } from "../api.ts";
import { drawnGraph, hopOf, listOf, withHop } from "./drawn.ts";

const TEXTS = { others: (count: string) => `${count} more`, openList: "list", masked: "masked", indirect: "indirect" };

function asset(id: string, more: Partial<GraphAsset> = {}, kind: Kind = "TABLE"): GraphAsset {
  const path = ["external", "lake", "shop", id];
  return { id, kind, name: id, fullName: `lake.shop.${id}`, path, description: null, distance: 0, ...more };
}
const link = (from: string, to: string, kind = "INPUT_OF"): Link => ({ from, to, kind });

function draw(nodes: GraphAsset[], edges: Link[], direction: "up" | "down" | "both" = "both") {
  const reply: GraphReply = { start: nodes[0]?.id ?? "", partial: false, reason: null, nodes, edges };
  return drawnGraph(reply, direction, TEXTS, String);
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
    const { nodes } = draw([asset("a", { moreUp: 3, moreDown: 4 })], [], "down");
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
  const { nodes, unused } = draw([asset("t"), ...columns], [link("x", "y", "DERIVES_FROM")]);
  expect(nodes.map(({ id }) => id)).toEqual(["x", "y"]);
  expect(unused).toBe(2);
  expect(draw([asset("t"), ...columns], []).nodes.map(({ id }) => id)).toEqual(["t"]);
});

test("what was opened is kept in its order, each once, and no more than the server takes", () => {
  expect(withHop(withHop(withHop(undefined, "1:up"), "2:down"), "1:up")).toBe("2:down,1:up");
  expect(withHop("junk,3:up", "4:up")).toBe("3:up,4:up");
  const many = Array.from({ length: 50 }, (_, n) => `${n}:up`);
  const hops = many.reduce<string | undefined>((expand, hop) => withHop(expand, hop), undefined) ?? "";
  expect(hops.split(",")).toEqual(many.slice(-30));
});
