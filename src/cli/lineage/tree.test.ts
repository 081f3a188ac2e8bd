/** How a graph becomes a tree of lines. */
import { expect, test } from "vitest";
import { drawTree, type Step } from "./tree.ts";

const SIGNS = { "": "", repeat: " …", circle: " ↻" };

/** `a>b` is a step from a to b; from `a` on, as it is drawn. */
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

test("a node alone is one line", () => {
  expect(drawn()).toBe("a");
});

test("what is reached on two ways hangs on the shorter one", () => {
  expect(drawn("a>b", "b>c", "c>d", "a>d", "d>e")).toBe(`a
├─ b
│  └─ c
│     └─ d …
└─ d
   └─ e`);
});

test("circles are marked, also those that do not lead through the start or along one branch", () => {
  expect(drawn("a>b", "b>a")).toBe("a\n└─ b\n   └─ a ↻");
  expect(drawn("a>a")).toBe("a\n└─ a ↻");
  expect(drawn("a>b", "a>c", "b>c", "c>b")).toBe("a\n├─ b\n│  └─ c ↻\n└─ c\n   └─ b ↻");
  // From b to c there is a way, but none back.
  expect(drawn("a>b", "a>c", "b>c")).toBe("a\n├─ b\n│  └─ c …\n└─ c");
});

test("several ways between two nodes are one line with what is to say of each", () => {
  expect(drawn("a>b:sum", "a>b:filter", "a>b:sum")).toBe("a\n└─ b [sum] [filter]");
});

test("a thousand nodes in a row, and back, are no trouble", () => {
  const ids = ["a", ...Array.from({ length: 2_000 }, (_, index) => `n${index}`)];
  const lines = drawn(...ids.map((id, index) => `${id}>${ids[(index + 1) % ids.length]}`)).split("\n");
  expect(lines).toHaveLength(ids.length + 1);
  expect(lines.at(-1)).toMatch(/a ↻$/);
});
