/** Frames of runs: shapes of DAGs, states, and windows that are too small. */
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { cpuMs } from "../../../test/cpu-time.ts";
import { displayWidth } from "../common/output.ts";
import type { RunNode } from "./api.ts";
import { at, BEGIN, nodeOf, runOf } from "./frame.fixture.ts";
import { type FrameInput, frame } from "./frame.ts";

function draw(nodes: readonly RunNode[], options: Partial<FrameInput> = {}): string[] {
  return frame({ run: runOf(), nodes, now: BEGIN + 5_000, width: 100, height: 1_000, colour: false, ...options });
}

const treeOf = (nodes: readonly RunNode[], options: Partial<FrameInput> = {}) => draw(nodes, options).slice(2);

describe("the head", () => {
  test("shows the run, its state and duration, and how many nodes have ended", () => {
    const nodes = [nodeOf("a", [], "SUCCESS"), nodeOf("b", ["a"], "RUNNING"), nodeOf("c", ["b"]), nodeOf("d", ["c"])];
    expect(draw(nodes, { run: runOf({ opTime: "2025-01-01" }) }).slice(0, 2)).toEqual([
      "daily  RUNNING  5.0s  run run-1  opTime 2025-01-01",
      `${"█".repeat(7)}${"░".repeat(23)}  1/4  1 success, 1 running, 2 pending`,
    ]);
  });

  test("shows the final duration and the reason when the run has ended", () => {
    const run = runOf({ status: "FAILED", endedAt: at(90), reason: "node b failed\nat line 1" });
    expect(draw([nodeOf("b", [], "FAILED")], { run }).slice(0, 3)).toEqual([
      "daily  FAILED  1:30  run run-1",
      `${"█".repeat(30)}  1/1  1 failed`,
      "node b failed",
    ]);
  });

  test("has a full bar only when all nodes have ended", () => {
    const nodes = Array.from({ length: 1_000 }, (_, index) =>
      nodeOf(`n${index}`, [], index > 0 ? "SUCCESS" : "RUNNING"),
    );
    expect(draw(nodes)[1]).toContain("█░  999/1000");
  });
});

describe("the tree", () => {
  test("of one node is a line", () => {
    expect(treeOf([nodeOf("only")])).toEqual(["○ only"]);
  });

  test("shows each node once, under its first parent, and names the others", () => {
    const nodes = [
      nodeOf("join", ["right", "left", "top"]),
      nodeOf("top"),
      nodeOf("left", ["top"]),
      nodeOf("right", ["top"]),
      nodeOf("leaf", ["left"]),
      nodeOf("apart"),
    ];
    expect(treeOf(nodes)).toEqual([
      "○ top",
      "├─ ○ left",
      "│  └─ ○ leaf",
      "├─ ○ right",
      "└─ ○ join              also after right, left",
      "○ apart",
    ]);
  });

  test("names only some of many parents", () => {
    const roots = ["a", "b", "c", "d", "e", "f"].map((id) => nodeOf(id));
    expect(treeOf([...roots, nodeOf("join", ["a", "b", "c", "d", "e", "f"])])[1]).toBe(
      "└─ ○ join           also after b, c, d and 2 more",
    );
  });

  test("that is too deep for the window loses its first branches, not its names", () => {
    const nodes = Array.from({ length: 50 }, (_, index) => nodeOf(`n${index}`, index === 0 ? [] : [`n${index - 1}`]));
    const lines = treeOf(nodes, { width: 40 });
    expect(lines.slice(0, 6)).toEqual([
      "○ n0",
      "└─ ○ n1",
      "   └─ ○ n2",
      "      └─ ○ n3",
      "         └─ ○ n4",
      "…        └─ ○ n5",
    ]);
    expect(lines.at(-1)).toBe("…        └─ ○ n49");
  });

  test("lists 200 siblings below their parent", () => {
    const nodes = [nodeOf("root"), ...Array.from({ length: 200 }, (_, index) => nodeOf(`n${index}`, ["root"]))];
    const lines = treeOf(nodes);
    expect(lines).toHaveLength(201);
    expect([lines[1], lines[199], lines[200]]).toEqual(["├─ ○ n0", "├─ ○ n198", "└─ ○ n199"]);
  });
});

describe("a node", () => {
  test("has a symbol for its state, its duration and a note", () => {
    const nodes = [
      nodeOf("pending", [], "PENDING", { waitingFor: "the table DW_ORDER" }),
      nodeOf("running", [], "RUNNING", { attempt: 2, progress: 0.456, progressNote: "rows", childRunId: "run-2" }),
      nodeOf("retrying", [], "RETRYING", { attempt: 2, dueAt: at(46), lastError: "timed out\nstack", endedAt: at(1) }),
      nodeOf("due", [], "RETRYING", { attempt: 2, dueAt: at(4) }),
      nodeOf("success", [], "SUCCESS", { endedAt: at(0.34) }),
      nodeOf("failed", [], "FAILED", { attempt: 3, lastError: "\n  no such table\nmore", endedAt: at(3_723) }),
      nodeOf("byHand", [], "FAILED", { attempt: 5, lastError: "again" }),
      nodeOf("skipped", [], "SKIPPED"),
      nodeOf("again", [], "PENDING", { startedAt: at(0), endedAt: at(1) }),
      nodeOf("stopped", [], "STOPPED", { endedAt: at(12.34) }),
    ];
    expect(treeOf(nodes)).toEqual([
      "○ pending            waits for the table DW_ORDER",
      "● running      5.0s  attempt 2/3, 45%, rows, run run-2",
      "↻ retrying     1.0s  retry 2/3 in 0:41: timed out",
      "↻ due                retry 2/3",
      "✓ success     340ms",
      "✗ failed    1:02:03  attempt 3/3: no such table",
      "✗ byHand       1.0s  attempt 5: again",
      "⊘ skipped",
      "○ again",
      "■ stopped     12.3s",
    ]);
  });

  test.each([
    [
      "The command ended with exit code 7. Last lines of stderr:\nfirst\nbroken\n\n",
      "The command ended with exit code 7: broken",
    ],
    ["it failed with:\r\n  no such table\r\n", "it failed with: no such table"],
    ["The query failed: no such table\nat line 1", "The query failed: no such table"],
    ["Last words:", "Last words:"],
  ])("shows the relevant line of the error %j", (lastError, shown) => {
    const run = runOf({ status: "FAILED", endedAt: at(5), reason: `node \`a\` failed: ${lastError}` });
    expect(draw([nodeOf("a", [], "FAILED", { lastError })], { run }).slice(2)).toEqual([
      `node \`a\` failed: ${shown}`,
      `✗ a     1.0s  ${shown}`,
    ]);
  });

  test("that lost its worker shows no attempt out of its maximum", () => {
    const lost = { attempt: 2, maxAttempts: 2, lastError: "its worker was lost" };
    const nodes = [
      nodeOf("a", [], "RETRYING", { ...lost, endedAt: at(1) }),
      nodeOf("b", [], "RUNNING", { ...lost, lastError: "its worker was shut down", progress: 0.5 }),
      nodeOf("c", [], "FAILED", { ...lost, attempt: 5, lastError: "5 workers in a row were lost" }),
      nodeOf("d", [], "RETRYING", { ...lost, lastError: "the sensor was lost" }),
    ];
    expect(treeOf(nodes)).toEqual([
      "↻ a     1.0s  attempt 2 (its worker was lost)",
      "● b     5.0s  attempt 2 (its worker was shut down), 50%",
      "✗ c     1.0s  attempt 5 (5 workers in a row were lost)",
      "↻ d           retry 2/2: the sensor was lost",
    ]);
  });

  test("that is skipped shows the reason, dimmed", () => {
    const nodes = [nodeOf("a", [], "SKIPPED", { lastError: "its `if` is false: 1 > 2" })];
    expect(treeOf(nodes)).toEqual(["⊘ a           its `if` is false: 1 > 2"]);
    expect(treeOf(nodes, { colour: true })[0]).toContain("\u001b[2m  its `if` is false: 1 > 2\u001b[22m");
  });

  test("shows what it waits for only if the tree does not", () => {
    const waits = { waitingFor: "a free worker" };
    expect(
      treeOf([
        nodeOf("done", [], "SKIPPED"),
        nodeOf("ready", ["done"], "PENDING", waits),
        nodeOf("going", [], "RUNNING"),
        nodeOf("waiting", ["going", "done"], "PENDING", waits),
      ]),
    ).toEqual([
      "⊘ done",
      "├─ ○ ready             waits for a free worker",
      "└─ ○ waiting           also after going",
      "● going          5.0s",
    ]);
  });

  test("with a start in the future has a duration of zero", () => {
    expect(treeOf([nodeOf("a", [], "RUNNING", { startedAt: at(60) })])).toEqual(["● a      0ms"]);
  });

  test("cannot send control characters to the terminal", () => {
    const evil = "\u001b[2J\u202e";
    const run = runOf({ jobName: evil, runId: evil, opTime: evil, reason: evil });
    const nodes = [
      nodeOf(evil, [], "FAILED", { lastError: evil }),
      nodeOf("w", [evil, evil], "PENDING", { waitingFor: evil }),
      nodeOf("r", [], "RUNNING", { progressNote: evil, childRunId: evil }),
    ];
    const text = draw(nodes, { run, width: 300 }).join("");
    expect(text).toContain("\\u001b[2J\\u202e");
    // oxlint-disable-next-line no-control-regex -- it matches control characters
    expect(text).not.toMatch(/[\u0000-\u001f\u202e]/);
  });
});

describe("a window", () => {
  const nodes = [
    nodeOf("root", [], "SUCCESS"),
    ...Array.from({ length: 60 }, (_, index) => nodeOf(`done${index}`, ["root"], "SUCCESS")),
    nodeOf("late", ["done59"], "RUNNING"),
    nodeOf("later", ["late"], "PENDING"),
    nodeOf("broken", ["done7"], "FAILED", { lastError: "no" }),
  ];

  test("that is too low hides ended nodes first, and counts the hidden ones", () => {
    expect(treeOf(nodes, { height: 8 })).toEqual([
      "✓ root            1.0s",
      "├─ ✓ done0        1.0s",
      "├─ ✗ broken       1.0s  no",
      "└─ ● late         5.0s",
      "   └─ ○ later",
      "… 59 more: 59 success",
    ]);
  });

  test("that is still lower shows failures first", () => {
    expect(treeOf(nodes, { height: 1 })).toEqual([
      "✗ broken     1.0s  no",
      "… 63 more: 61 success, 1 running, 1 pending",
    ]);
  });

  test("never has too many lines, whatever its size", () => {
    const wide = [...nodes, nodeOf("订单".repeat(40), ["late"], "FAILED", { lastError: "字".repeat(200) })];
    for (const [width, height] of [
      [1, 4],
      [7, 5],
      [20, 10],
      [33, 24],
      [80, 66],
      [200, 500],
    ] as const) {
      const lines = draw(wide, { width, height, run: runOf({ jobName: "名".repeat(50) }) });
      expect(lines.length).toBeLessThanOrEqual(height);
      expect(Math.max(...lines.map(displayWidth)), `${width} columns`).toBeLessThanOrEqual(width);
    }
  });

  test("shows the same text with and without colours", () => {
    const coloured = draw(nodes, { colour: true, width: 30 });
    expect(coloured.map(stripVTControlCharacters)).toEqual(draw(nodes, { width: 30 }));
    expect(coloured.join("\n")).toContain("\u001b[31m✗ \u001b[39m");
  });
});

test.each([
  [
    "in layers of a hundred",
    (index: number) =>
      index < 100 ? [] : [0, 7, 13].map((step) => `n${index - 100 - (index % 100) + ((index + step) % 100)}`),
  ],
  ["one behind the other", (index: number) => (index === 0 ? [] : [`n${index - 1}`])],
  ["all behind one", (index: number) => (index === 0 ? [] : ["n0"])],
])("10,000 nodes %s are drawn quickly", (_, parents) => {
  const nodes = Array.from({ length: 10_000 }, (__, index) =>
    nodeOf(`n${index}`, parents(index), index < 5_000 ? "SUCCESS" : index === 7_777 ? "RUNNING" : "PENDING"),
  );
  draw(nodes, { height: 50 });
  let lines: readonly string[] = [];
  const tookMs = cpuMs(() => {
    lines = draw(nodes, { height: 50 });
  });
  expect(lines).toHaveLength(50);
  expect(lines.filter((line) => line.includes("● n7777"))).toHaveLength(1);
  expect(draw(nodes, { height: Number.POSITIVE_INFINITY })).toHaveLength(10_002);
  // About 20 ms on two old cores; quadratic time would be seconds.
  expect(tookMs).toBeLessThan(500);
});
