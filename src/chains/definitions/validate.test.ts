import { describe, expect, test } from "vitest";
import { cpuMs } from "../../../test/cpu-time.ts";
import { many, noopNode, problemsOf, problemsWith } from "./validate.fixture.ts";

/** Far more than it takes. */
const VALIDATION_MS_MAX = 1_000;
const MEGABYTE = 1_048_576;

describe("a valid DAG", () => {
  test("has no problems", () => {
    const dag = {
      nodes: [
        { id: "extract", type: "call", cfg: { url: "https://x/${params.day}" }, pool: "heavy", timeoutMs: 1 },
        {
          id: "my-node.2",
          type: "sleep",
          dependsOn: ["extract"],
          cfg: { ms: "${nodes.extract.artifact.ms}" },
          if: 'nodes["extract"].status == "SUCCESS" && node.attempt < 3',
          retry: { maxAttempts: 3, backoffMs: 1_000, factor: 2, maxBackoffMs: 60_000, jitter: 0.2 },
          runWhen: "all_done",
          waitsFor: ["DW_FACT_ORDER_D"],
        },
        { id: "alarm", type: "noop", dependsOn: ["extract"], runWhen: "one_failed" },
      ],
    };
    expect(problemsOf(dag)).toEqual([]);
  });

  test("may have ten thousand nodes in one line, and is checked in under a second", () => {
    const line = many(10_000).map((id, index, all) => ({
      ...noopNode(id, index === 0 ? [] : [all[index - 1] as string]),
      if: `params.limit > ${index}`,
    }));
    for (const nodes of [line, line.toReversed()]) {
      expect(cpuMs(() => expect(problemsOf({ nodes })).toEqual([]))).toBeLessThan(VALIDATION_MS_MAX);
    }
  });

  test("may have four megabytes", () => {
    const nodes = [{ id: "a", type: "call", cfg: { url: "x".repeat(4 * MEGABYTE - 100) } }];
    expect(problemsOf({ nodes })).toEqual([]);
  });
});

describe("a DAG as a whole", () => {
  test.each([[null], [[]], ["text"], [7]])("is refused when it is %j", (value) => {
    expect(problemsOf(value)).toEqual([{ path: "", message: "the DAG must be an object with a list `nodes`" }]);
  });

  test.each([[{}], [{ nodes: [] }], [{ nodes: {} }], [{ nodes: null }]])("must have nodes, unlike %j", (dag) => {
    expect(problemsOf(dag)).toEqual([{ path: "nodes", message: "dag must have nodes" }]);
  });

  test("has no other fields than nodes", () => {
    expect(problemsOf({ nodes: [noopNode("a")], node: [], name: "daily" })).toEqual([
      { path: "node", message: "`node` is not a field. Did you mean `nodes`?" },
      { path: "name", message: "`name` is not a field. A DAG has only `nodes`." },
    ]);
  });

  test("has at most ten thousand nodes", () => {
    expect(problemsOf({ nodes: many(10_001).map((id) => noopNode(id)) })).toEqual([
      { path: "nodes", message: "the DAG has 10001 nodes, more than the 10000 allowed" },
    ]);
  });

  test("has at most four megabytes, counted in bytes", () => {
    const nodes = [{ id: "a", type: "call", cfg: { url: "é".repeat(2 * MEGABYTE) } }];
    expect(problemsOf({ nodes })).toEqual([
      { path: "", message: "the DAG has 4194357 bytes, more than the 4194304 allowed" },
    ]);
  });
});

describe("the nodes of a DAG", () => {
  test("have unique ids", () => {
    expect(problemsOf({ nodes: [noopNode("a"), noopNode("b"), noopNode("a")] })).toEqual([
      { path: "nodes[2].id", nodeId: "a", message: "the id `a` is already used by `nodes[0]`" },
    ]);
  });

  test("depend on nodes that exist", () => {
    expect(problemsOf({ nodes: [noopNode("extract"), noopNode("load", ["extract", "extarct", "nowhere"])] })).toEqual([
      {
        path: "nodes[1].dependsOn[1]",
        nodeId: "load",
        message: "there is no node `extarct`. Did you mean `extract`?",
      },
      { path: "nodes[1].dependsOn[2]", nodeId: "load", message: "there is no node `nowhere`." },
    ]);
  });

  test("form no cycle: the message shows the cycle in the order of execution", () => {
    const nodes = [noopNode("start"), noopNode("c", ["b"]), noopNode("a", ["start", "c"]), noopNode("b", ["a"])];
    expect(problemsOf({ nodes })).toEqual([
      {
        path: "nodes[1].dependsOn",
        nodeId: "c",
        message: "the nodes form a cycle, so none of them can ever start: c -> a -> b -> c",
      },
    ]);
  });

  test("do not depend on themselves", () => {
    expect(problemsOf({ nodes: [noopNode("a", ["a"])] })).toEqual([
      { path: "nodes[0].dependsOn", nodeId: "a", message: "`a` depends on itself" },
    ]);
  });

  test("in a cycle of thousands are shown by its two ends", () => {
    const nodes = many(10_000).map((id, index, all) => noopNode(id, [all.at(index - 1) as string]));
    const [problem, ...others] = problemsOf({ nodes });
    expect(others).toEqual([]);
    expect(problem?.message).toMatch(/: n0 -> n1 -> .* -> n9 -> \(9980 more\) -> n9990 -> .* -> n9999 -> n0$/);
  });
});

describe("the list of problems", () => {
  test("is complete, in the order of the nodes", () => {
    const nodes = [
      { id: "a", type: "nop", colour: "red" },
      { id: "a", type: "sleep", cfg: { ms: -1 }, if: "1 +", pool: "gpu" },
      { id: "b", type: "noop", dependsOn: ["c"] },
      { id: "c", type: "noop", dependsOn: ["b", "d"] },
    ];
    expect(problemsOf({ nodes }).map(({ path }) => path)).toEqual([
      "nodes[0].colour",
      "nodes[0].type",
      "nodes[1].id",
      "nodes[1].cfg.ms",
      "nodes[1].if",
      "nodes[1].pool",
      "nodes[3].dependsOn[1]",
      "nodes[2].dependsOn",
    ]);
  });

  test("ends after a hundred, and says that there are more", () => {
    const problems = problemsOf({ nodes: many(500).map((id) => ({ id, type: "nop" })) });
    expect(problems).toHaveLength(101);
    expect(problems.at(-1)).toEqual({ path: "", message: "there are more problems; this list ends after 100" });
  });

  test("repeats only the start of long input", () => {
    const long = "x".repeat(100_000);
    const nodes = [{ id: long, type: long, [long]: 1, dependsOn: [long, `${long}y`], pool: long, runWhen: long }];
    const problems = problemsOf({ nodes });
    expect(problems.length).toBeGreaterThan(5);
    expect(JSON.stringify(problems).length).toBeLessThan(5_000);
  });

  test.each<[string, () => object, RegExp]>([
    [
      "a list of a million",
      () => ({ dependsOn: Array.from({ length: 1_000_000 }, () => 1) }),
      /^dependsOn: `dependsOn` has 1000000 items, more than the 10000 allowed$/,
    ],
    [
      "a cfg with a hundred thousand fields",
      () => ({ cfg: { deep: Object.fromEntries(many(100_000).map((name) => [name, 1])) } }),
      /^cfg\.deep: `cfg\.deep` has 100000 fields, more than the 1000 allowed$/,
    ],
  ])("is short for %s", (_, node, problem) => {
    const tookMs = cpuMs(() => {
      expect(problemsWith(node() as Record<string, unknown>)).toEqual([expect.stringMatching(problem)]);
    });
    expect(tookMs).toBeLessThan(VALIDATION_MS_MAX);
  });
});
