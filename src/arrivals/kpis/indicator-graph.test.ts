import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createIndicatorGraph, type Indicator } from "./indicator-graph.ts";

const extended = (kpiId: string): Indicator => ({ kpiId, type: "EXTENDED", references: [] });
const computed = (kpiId: string, ...references: string[]): Indicator => ({ kpiId, type: "COMPUTED", references });

describe("cycleWith", () => {
  const graph = createIndicatorGraph([
    extended("KD1"),
    computed("KD2", "KD1"),
    computed("KD3", "KD2", "KD1"),
    computed("KD4", "KD3", "unknown"),
  ]);

  test("finds none in an acyclic graph", () => {
    expect(graph.cycleWith(computed("KD5", "KD4", "KD1"))).toBeUndefined();
    expect(graph.cycleWith(computed("KD2", "KD1", "KD1"))).toBeUndefined();
    expect(graph.cycleWith(computed("KD1", "KD9"))).toBeUndefined();
  });

  test("prints the cycle from the changed KPI on, each a part of the next", () => {
    expect(graph.cycleWith(computed("KD2", "KD4"))).toBe("KD2 -> KD3 -> KD4 -> KD2");
    expect(graph.cycleWith(computed("KD3", "KD4"))).toBe("KD3 -> KD4 -> KD3");
  });

  test("finds a KPI computed from itself", () => {
    expect(graph.cycleWith(computed("KD5", "KD5"))).toBe("KD5 -> KD5");
  });

  test("finds one through a KPI that was named before it existed", () => {
    expect(graph.cycleWith(computed("unknown", "KD4"))).toBe("unknown -> KD4 -> unknown");
  });

  test("accepts the change that breaks it", () => {
    const round = createIndicatorGraph([computed("a", "b"), computed("b", "a")]);
    expect(round.cycleWith(computed("a", "b"))).toBe("a -> b -> a");
    expect(round.cycleWith(extended("a"))).toBeUndefined();
    expect(round.cycleWith({ ...extended("a"), references: ["b"] })).toBeUndefined();
  });
});

describe("affectedBy", () => {
  // Listed before their parts, so that the order of the result cannot come from the list.
  const graph = createIndicatorGraph([
    computed("margin", "profit", "revenue"),
    computed("profit", "revenue", "costs"),
    computed("headline", "margin", "headcount"),
    extended("revenue"),
    extended("costs"),
    extended("headcount"),
  ]);

  test("lists all that depends on the changed ones, in dependency order", () => {
    expect(graph.affectedBy(["revenue"])).toEqual(["profit", "margin", "headline"]);
    expect(graph.affectedBy(["costs"])).toEqual(["profit", "margin", "headline"]);
    expect(graph.affectedBy(["headcount"])).toEqual(["headline"]);
    expect(graph.affectedBy(["headcount", "costs", "revenue"])).toEqual(["profit", "margin", "headline"]);
  });

  test("is empty for a KPI that is unused or unknown", () => {
    expect(graph.affectedBy(["headline"])).toEqual([]);
    expect(graph.affectedBy(["nobody"])).toEqual([]);
    expect(graph.affectedBy([])).toEqual([]);
  });

  test("lists a changed KPI only if it depends on another", () => {
    expect(graph.affectedBy(["profit"])).toEqual(["margin", "headline"]);
    expect(graph.affectedBy(["margin", "costs"])).toEqual(["profit", "margin", "headline"]);
  });

  test("ends with ten thousand in one chain", () => {
    const line = Array.from({ length: 10_000 }, (_, index) => computed(`k${index}`, `k${index - 1}`));
    const { affectedBy } = createIndicatorGraph(line.toReversed());
    expect(affectedBy(["k-1"])).toEqual(line.map(({ kpiId }) => kpiId));
  });

  test("ends where there is a cycle", () => {
    const { affectedBy } = createIndicatorGraph([computed("a", "b"), computed("b", "a", "c"), computed("d", "c")]);
    expect(affectedBy(["c"])).toEqual(["d"]);
  });
});

test("whatever the graph: no cycle is found, and exactly what depends on a change is affected, in order", () => {
  // A part always has a smaller number, which makes it a DAG; the list is shuffled.
  const count = 12;
  const references = fc.array(fc.array(fc.nat({ max: count - 1 }), { maxLength: 4 }), {
    minLength: count,
    maxLength: count,
  });
  const graphs = references.chain((chosen) => {
    const indicators = chosen.map((parts, index) =>
      computed(`k${index}`, ...parts.filter((part) => part < index).map((part) => `k${part}`)),
    );
    return fc.shuffledSubarray(indicators, { minLength: count });
  });
  const changes = fc.uniqueArray(fc.nat({ max: count - 1 }).map((index) => `k${index}`));
  fc.assert(
    fc.property(graphs, changes, (indicators, changed) => {
      const graph = createIndicatorGraph(indicators);
      expect(indicators.map((indicator) => graph.cycleWith(indicator))).toEqual(indicators.map(() => undefined));

      const partsOf = new Map(indicators.map(({ kpiId, references: parts }) => [kpiId, parts]));
      const isAffected = (kpiId: string): boolean =>
        (partsOf.get(kpiId) ?? []).some((part) => changed.includes(part) || isAffected(part));
      const affected = graph.affectedBy(changed);
      expect(affected.toSorted()).toEqual([...partsOf.keys()].filter(isAffected).toSorted());
      for (const [index, kpiId] of affected.entries()) {
        for (const part of partsOf.get(kpiId) ?? []) expect(affected.indexOf(part)).toBeLessThan(index);
      }
    }),
  );
});
