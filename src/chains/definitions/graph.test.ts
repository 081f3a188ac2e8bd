import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dagOf, type Nodes } from "../engine/book.fixture.ts";
import { buildGraph, descendants, type GraphNode } from "./graph.ts";

const DEEP = 10_000;
const ids = (nodes: Iterable<GraphNode>) => [...nodes].map(({ id }) => id);
const graphOf = (nodes: Nodes) => buildGraph(dagOf(nodes));
const chainOf = (length: number): Nodes =>
  Object.fromEntries(Array.from({ length }, (_, index) => [`n${index}`, index === 0 ? [] : [`n${index - 1}`]]));

describe("a graph", () => {
  test("has parents before children, in any order of the definition", () => {
    const { nodes } = graphOf({ last: ["left", "right"], left: ["first"], right: ["first"], first: [] });
    expect(ids(nodes)).toEqual(["first", "left", "right", "last"]);
  });

  test("has parents and children in the order of the definition", () => {
    const { byId } = graphOf({ a: [], b: [], c: ["b", "a"], d: ["b"] });
    expect(ids(byId.get("c")?.parents ?? [])).toEqual(["b", "a"]);
    expect(ids(byId.get("b")?.children ?? [])).toEqual(["c", "d"]);
    expect(byId.get("d")?.no).toBe(3);
  });

  test("has each parent and each table once, even if it is named twice", () => {
    const { byId } = graphOf({ a: [], b: { dependsOn: ["a", "a"], waitsFor: ["t", "u", "t"] } });
    expect(ids(byId.get("b")?.parents ?? [])).toEqual(["a"]);
    expect(ids(byId.get("a")?.children ?? [])).toEqual(["b"]);
    expect(byId.get("b")?.waitsFor).toEqual(["t", "u"]);
  });

  test("defaults to `all_success`", () => {
    const { byId, usesTables } = graphOf({ a: [], b: { dependsOn: ["a"], runWhen: "all_done" } });
    expect([...byId.values()].map(({ runWhen }) => runWhen)).toEqual(["all_success", "all_done"]);
    expect(usesTables).toBe(false);
    expect(graphOf({ a: { waitsFor: ["t"] } }).usesTables).toBe(true);
  });

  test("is not built from a cycle or a missing parent", () => {
    expect(() => graphOf({ a: ["b"] })).toThrow("node a depends on b, which does not exist");
    expect(() => graphOf({ a: ["b"], b: ["a"] })).toThrow("the DAG has a cycle");
  });

  test("may be a line of ten thousand nodes in reverse order", () => {
    const { nodes } = buildGraph({ nodes: dagOf(chainOf(DEEP)).nodes.toReversed() });
    expect(nodes[0]?.id).toBe("n0");
    expect(nodes.at(-1)?.id).toBe(`n${DEEP - 1}`);
  });
});

describe("descendants", () => {
  const graph = graphOf({ a: [], b: ["a"], c: ["a"], d: ["b", "c"], e: [], f: ["e", "d"] });
  const descendantsOf = (...from: string[]) =>
    ids(
      descendants(
        graph,
        from.map((id) => graph.byId.get(id) as GraphNode),
      ),
    );

  test("are all nodes reachable from a node, once, in the graph's order", () => {
    expect(descendantsOf("a")).toEqual(["b", "c", "d", "f"]);
    expect(descendantsOf("e")).toEqual(["f"]);
    expect(descendantsOf("f")).toEqual([]);
    expect(descendantsOf()).toEqual([]);
  });

  test("of several nodes do not include these, even if one is a descendant of another", () => {
    expect(descendantsOf("a", "d")).toEqual(["b", "c", "f"]);
  });

  test("may be ten thousand levels deep", () => {
    const deep = buildGraph(dagOf(chainOf(DEEP)));
    expect(descendants(deep, deep.nodes.slice(0, 1))).toHaveLength(DEEP - 1);
  });

  test("are exactly the nodes with a path back to the start", () => {
    const edges = fc.array(fc.tuple(fc.nat(11), fc.nat(11)), { maxLength: 30 });
    fc.assert(
      fc.property(edges, fc.nat(11), (pairs, from) => {
        const upward = pairs.filter(([parent, child]) => parent < child);
        const nodes = Array.from({ length: 12 }, (_, child) => [
          `n${child}`,
          upward.filter((pair) => pair[1] === child).map(([parent]) => `n${parent}`),
        ]);
        const random = graphOf(Object.fromEntries(nodes) as Nodes);
        const start = random.byId.get(`n${from}`) as GraphNode;
        const leadsBack = (node: GraphNode): boolean => node.parents.some((one) => one === start || leadsBack(one));
        expect(descendants(random, [start])).toEqual(random.nodes.filter(leadsBack));
      }),
    );
  });
});
