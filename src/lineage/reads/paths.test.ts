/** The ways between two nodes of a graph: the shortest first, all counted, none through a circle. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Link } from "./findings.ts";
import { shortestPaths, withoutShortcuts } from "./paths.ts";

const LIMITS = { limit: 10_000, countMax: 10_000, stepsMax: 1_000_000 };
const linksOf = (...arrows: string[]): Link[] =>
  arrows.map((arrow) => {
    const [from = "", to = ""] = arrow.split(">");
    return { from, to, kind: "DERIVES_FROM" };
  });

/** By trying everything. */
function allPaths(links: readonly Link[], from: string, to: string): string[] {
  const found: string[] = [];
  const next = (id: string) => new Set(links.filter((link) => link.from === id).map((link) => link.to));
  function go(path: readonly string[]): void {
    const last = path.at(-1) ?? "";
    if (last === to) found.push(path.join(">"));
    else for (const id of next(last)) if (!path.includes(id)) go([...path, id]);
  }
  go([from]);
  return found.toSorted();
}

describe("paths", () => {
  test("come the shortest first, and as many as are asked for", () => {
    const links = linksOf("a>b", "b>z", "a>z", "a>c", "c>d", "d>z", "z>a", "x>y");
    const all = shortestPaths(links, "a", "z", LIMITS);
    expect(all.paths.map((path) => path.join(">"))).toEqual(["a>z", "a>b>z", "a>c>d>z"]);
    expect(shortestPaths(links, "a", "z", { ...LIMITS, limit: 1 })).toEqual({
      paths: [["a", "z"]],
      pathCount: 3,
      isCut: false,
    });
    expect(shortestPaths(links, "a", "y", LIMITS)).toEqual({ paths: [], pathCount: 0, isCut: false });
  });

  test("of random graphs are those that trying everything finds", () => {
    const arrow = fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 6 }));
    fc.assert(
      fc.property(fc.array(arrow, { maxLength: 20 }), (arrows) => {
        const links = linksOf(...arrows.filter(([from, to]) => from !== to).map(([from, to]) => `${from}>${to}`));
        const { paths, pathCount } = shortestPaths(links, "0", "6", LIMITS);
        expect(paths.map((path) => path.join(">")).toSorted()).toEqual(allPaths(links, "0", "6"));
        expect(pathCount).toBe(paths.length);
        const lengths = paths.map(({ length }) => length);
        expect(lengths).toEqual(lengths.toSorted((one, other) => one - other));
      }),
    );
  });

  test("of a graph with a million paths are found at once, and counted to the bound", () => {
    const links = Array.from({ length: 20 }, (_, layer) =>
      [0, 1].flatMap((from) => [0, 1].map((to) => `${layer}.${from}>${layer + 1}.${to}`)),
    ).flat();
    const found = shortestPaths(linksOf(...links), "0.0", "20.0", { limit: 5, countMax: 1_000, stepsMax: 200_000 });
    expect(found.paths).toHaveLength(5);
    expect(found.pathCount).toBe(1_000);
  });

  test("say so when the search for them stops before it has seen all", () => {
    const links = linksOf("a>b", "b>z", "a>c", "c>d", "d>z");
    expect(shortestPaths(links, "a", "z", LIMITS).isCut).toBe(false);
    expect(shortestPaths(links, "a", "z", { ...LIMITS, stepsMax: 3 })).toEqual({
      paths: [["a", "b", "z"]],
      pathCount: 1,
      isCut: true,
    });
    // The count has its own bound, which the answer tells.
    expect(shortestPaths(links, "a", "z", { ...LIMITS, countMax: 1 }).isCut).toBe(false);
  });

  test("go over the statement, not over an edge that tells the same without it", () => {
    const reads = { from: "a", to: "sql", kind: "INPUT_OF" };
    const writes = { from: "sql", to: "b", kind: "OUTPUT_TO" };
    const other = { from: "c", to: "b", kind: "DERIVES_FROM" };
    expect(withoutShortcuts([reads, writes, other, { from: "a", to: "b", kind: "DERIVES_FROM" }])).toEqual([
      reads,
      writes,
      other,
    ]);
  });
});
