/** The layout in layers and the folding of graphs, on random graphs. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { STATES, type State } from "../states/state.ts";
import { around, type Folded, fold } from "./fold.ts";
import { LAYER_GAP, layersOf, layOutInLayers, NODE_GAP } from "./layers.ts";
import { type GraphEdge, linksOf, NODE_HEIGHT, NODE_WIDTH } from "./model.ts";
import { planOf } from "./plan.ts";

interface Given {
  nodes: { id: string; state: State }[];
  edges: GraphEdge[];
}

/** Edges of an acyclic graph lead to later nodes; others lead anywhere. */
function graphs({ isAcyclic }: { isAcyclic: boolean }): fc.Arbitrary<Given> {
  return fc.integer({ min: 1, max: 40 }).chain((count) => {
    const index = fc.integer({ min: 0, max: count - 1 });
    return fc.record({
      nodes: fc
        .array(fc.constantFrom<State>("success", "success", "success", "waiting", "failed"), {
          minLength: count,
          maxLength: count,
        })
        .map((states) => states.map((state, at) => ({ id: `n${at}`, state }))),
      edges: fc.array(fc.tuple(index, index), { maxLength: 2 * count, size: "max" }).map((pairs) =>
        pairs
          .filter(([from, to]) => from !== to)
          .map(([from, to]) => (isAcyclic && from > to ? [to, from] : [from, to]))
          .map(([from, to]) => ({ from: `n${from}`, to: `n${to}` })),
      ),
    });
  });
}

const idsOf = ({ nodes }: Given) => nodes.map(({ id }) => id);

describe("the layout in layers", () => {
  it("puts every node to the right of all its parents", () => {
    fc.assert(
      fc.property(graphs({ isAcyclic: true }), (graph) => {
        const layers = layersOf(idsOf(graph), linksOf(idsOf(graph), graph.edges));
        const { positions } = layOutInLayers(sized(graph));
        for (const { from, to } of graph.edges) {
          expect(layers.get(to)).toBeGreaterThan(layers.get(from) ?? 0);
          expect(positions.get(to)?.x).toBeGreaterThanOrEqual((positions.get(from)?.x ?? 0) + NODE_WIDTH + LAYER_GAP);
        }
      }),
    );
  });

  it("places every node, none over another, also in a graph with cycles", () => {
    fc.assert(
      fc.property(graphs({ isAcyclic: false }), (graph) => {
        const { positions } = layOutInLayers(sized(graph));
        expect([...positions.keys()].toSorted()).toEqual(idsOf(graph).toSorted());
        const all = [...positions.values()];
        for (const column of new Set(all.map(({ x }) => x))) {
          const tops = all
            .filter(({ x }) => x === column)
            .map(({ y }) => y)
            .toSorted((one, other) => one - other);
          const gaps = tops.slice(1).map((top, at) => top - (tops[at] ?? 0));
          for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(NODE_HEIGHT + NODE_GAP - 0.001);
        }
      }),
    );
  });

  it("places 10,000 nodes", () => {
    const nodes = Array.from({ length: 10_000 }, (_, at) => ({ id: `n${at}`, height: NODE_HEIGHT }));
    const edges = nodes.flatMap(({ id }, at) => [Math.floor(at / 2), at - 7].flatMap((from) => edgeOf(from, id, at)));
    expect(layOutInLayers({ nodes, edges }).positions.size).toBe(10_000);
  });
});

function edgeOf(from: number, to: string, at: number): GraphEdge[] {
  return from >= 0 && from < at ? [{ from: `n${from}`, to }] : [];
}

function sized({ nodes, edges }: Given) {
  return { nodes: nodes.map(({ id }) => ({ id, height: NODE_HEIGHT })), edges };
}

describe("folding", () => {
  const cases = fc.tuple(graphs({ isAcyclic: true }), fc.integer({ min: 1, max: 10 }));

  it("keeps every node in exactly one group", () => {
    fc.assert(
      fc.property(cases, ([graph, max]) => {
        const { groups } = fold(graph.nodes, graph.edges, { max });
        expect([...groups.values()].flat().toSorted()).toEqual(idsOf(graph).toSorted());
      }),
    );
  });

  it("keeps every edge inside a group or between two, and draws no other", () => {
    fc.assert(
      fc.property(cases, ([graph, max]) => {
        const folded = fold(graph.nodes, graph.edges, { max });
        const owner = ownersIn(folded);
        const outside = graph.edges
          .map(({ from, to }) => [owner.get(from), owner.get(to)])
          .filter(([from, to]) => from !== to);
        const drawn = folded.edges.map(({ from, to }) => [from, to]);
        expect(new Set(drawn.map(String))).toEqual(new Set(outside.map(String)));
      }),
    );
  });

  it("makes no cycle", () => {
    fc.assert(
      fc.property(cases, ([graph, max]) => {
        const { groups, edges } = fold(graph.nodes, graph.edges, { max });
        const ids = [...groups.keys()];
        const layers = layersOf(ids, linksOf(ids, edges));
        for (const { from, to } of edges) expect(layers.get(to)).toBeGreaterThan(layers.get(from) ?? 0);
      }),
      // A cycle needs several things at once.
      { numRuns: 500 },
    );
  });

  it("leaves a graph alone that is small enough, and nodes that were unfolded", () => {
    fc.assert(
      fc.property(cases, ([graph, max]) => {
        expect(fold(graph.nodes, graph.edges, { max: graph.nodes.length }).groups.size).toBe(graph.nodes.length);
        const apart = new Set(idsOf(graph).filter((_, at) => at % 3 === 0));
        const { groups } = fold(graph.nodes, graph.edges, { max, apart });
        for (const id of apart) expect(groups.get(id)).toEqual([id]);
      }),
    );
  });

  it("folds what has succeeded before a failure, and leaves the failure by itself", () => {
    const nodes = [
      ...Array.from({ length: 50 }, (_, at) => ({ id: `load${at}`, state: "success" as const })),
      { id: "merge", state: "failed" as const },
      ...Array.from({ length: 50 }, (_, at) => ({ id: `out${at}`, state: "skipped" as const })),
    ];
    const edges = nodes.flatMap(({ id }) => {
      if (id.startsWith("load")) return [{ from: id, to: "merge" }];
      return id.startsWith("out") ? [{ from: "merge", to: id }] : [];
    });
    const { groups, edges: drawn } = fold(nodes, edges, { max: 10 });
    expect([...groups.values()].map(({ length }) => length)).toEqual([50, 1, 50]);
    expect(drawn.map(({ from, to }) => [from, to])).toEqual([
      ["group:load0", "merge"],
      ["merge", "group:out0"],
    ]);
  });
});

function ownersIn({ groups }: Folded): Map<string, string> {
  return new Map([...groups].flatMap(([id, members]) => members.map((member) => [member, id] as const)));
}

describe("the surroundings of a node", () => {
  it("are its ancestors and descendants of that depth, and no more than fit", () => {
    fc.assert(
      fc.property(graphs({ isAcyclic: true }), fc.integer({ min: 1, max: 4 }), (graph, depth) => {
        const links = linksOf(idsOf(graph), graph.edges);
        const near = around(links, "n0", { depth, max: 1_000 });
        const further = around(links, "n0", { depth: depth + 1, max: 1_000 });
        for (const id of near) expect(further).toContain(id);
        const direct = [...(links.before.get("n0") ?? []), ...(links.after.get("n0") ?? [])];
        for (const id of direct) expect(near).toContain(id);
        expect(around(links, "n0", { depth, max: 6 }).size).toBeLessThanOrEqual(7);
      }),
    );
  });

  it("are drawn when folding is not enough, and tell how many neighbours are left out", () => {
    // A complete binary tree with states that alternate: little can be folded.
    const nodes = Array.from({ length: 2_000 }, (_, at) => ({ id: `n${at}`, state: STATES[at % 5] }));
    const edges = nodes.flatMap(({ id }, at) => (at === 0 ? [] : [{ from: `n${Math.floor((at - 1) / 2)}`, to: id }]));
    const plan = planOf(nodes, edges, { focus: "n7", depth: 1, unfolded: new Set(nodes.map(({ id }) => id)) });
    expect(plan.kind).toBe("focused");
    expect([...plan.groups.keys()].toSorted()).toEqual(["n15", "n16", "n3", "n7"]);
    expect(plan.hidden.get("n15")).toEqual({ before: 0, after: 2 });
    expect(plan.hidden.get("n3")).toEqual({ before: 1, after: 1 });
  });
});
