/** Drawing a graph as a tree. */
import { expect, test } from "vitest";
import { drawTree, type Step } from "./tree.ts";

const SIGNS = { "": "", repeat: " …", cycle: " ↻" };

/** The tree from `a`; `a>b` is an edge from a to b. */
function drawn(...ways: string[]): string {
  const steps = new Map<string, Step[]>();
  for (const way of ways) {
    const [from = "", to = "", note = ""] = way.split(/[>:]/);
    steps.set(from, [...(steps.get(from) ?? []), { to, note }]);
  }
  return drawTree("a", steps)
    .map(
      ({ id, branches, sign, notes }) => `${branches}${id}${SIGNS[sign]}${notes.map((note) => ` [${note}]`).join("")}`,
    )
    .join("\n");
}

test("a single node is one line", () => {
  expect(drawn()).toBe("a");
});

test("a node with two paths is drawn on the shorter one", () => {
  expect(drawn("a>b", "b>c", "c>d", "a>d", "d>e")).toBe(`a
├─ b
│  └─ c
│     └─ d …
└─ d
   └─ e`);
});

test("cycles are marked, also those without the start and across branches", () => {
  expect(drawn("a>b", "b>a")).toBe("a\n└─ b\n   └─ a ↻");
  expect(drawn("a>a")).toBe("a\n└─ a ↻");
  expect(drawn("a>b", "a>c", "b>c", "c>b")).toBe("a\n├─ b\n│  └─ c ↻\n└─ c\n   └─ b ↻");
  // There is a path from b to c, but none back.
  expect(drawn("a>b", "a>c", "b>c")).toBe("a\n├─ b\n│  └─ c …\n└─ c");
});

test("several edges between two nodes are one line with all their notes", () => {
  expect(drawn("a>b:sum", "a>b:filter", "a>b:sum")).toBe("a\n└─ b [sum] [filter]");
});

test("a cycle of a thousand nodes is drawn", () => {
  const ids = ["a", ...Array.from({ length: 2_000 }, (_, index) => `n${index}`)];
  const lines = drawn(...ids.map((id, index) => `${id}>${ids[(index + 1) % ids.length]}`)).split("\n");
  expect(lines).toHaveLength(ids.length + 1);
  expect(lines.at(-1)).toMatch(/a ↻$/);
});
