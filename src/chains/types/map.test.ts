import { describe, expect, test } from "vitest";
import { compileTemplate } from "../../kernel/expressions/template.ts";
import type { Dag } from "../definitions/dag.ts";
import { buildGraph } from "../definitions/graph.ts";
import { VARIABLES } from "../definitions/variables.ts";
import { map } from "./map.ts";
import { nodeContext } from "./node-context.fixture.ts";
import type { NodeContext } from "./node-type.ts";

type Cfg = Parameters<typeof map.execute>[1];

async function dagOf(cfg: Cfg, given: Partial<NodeContext> = {}): Promise<Dag> {
  const { subRun } = await map.execute(nodeContext(given), cfg);
  if (!subRun || !("dag" in subRun.of)) throw new Error("no DAG was made");
  buildGraph(subRun.of.dag);
  return subRun.of.dag;
}

describe("a map", () => {
  test("makes a node for each item, with its templates rendered", async () => {
    const node = { type: "call", cfg: { url: "https://x/${item.id}", at: "${index}", of: "${nodes.a.artifact}" } };
    const parents = { a: { status: "SUCCESS", artifact: "list" } };
    expect((await dagOf({ over: [{ id: 7 }, { id: 8 }], node }, { parents })).nodes).toEqual([
      { id: "0", type: "call", cfg: { url: "https://x/7", at: 0, of: "list" } },
      { id: "1", type: "call", cfg: { url: "https://x/8", at: 1, of: "list" } },
    ]);
  });

  test("passes retry, timeoutMs and pool on to each", async () => {
    const rest = { retry: { maxAttempts: 3 }, timeoutMs: 50, pool: "heavy" };
    expect((await dagOf({ over: [1], node: { type: "noop", ...rest } })).nodes).toEqual([
      { id: "0", type: "noop", cfg: {}, ...rest },
    ]);
  });

  test("runs them with the params and opTime of its own run", async () => {
    const given = { params: { day: 7 }, opTime: "2026010100" };
    expect(await map.execute(nodeContext(given), { over: [1], node: { type: "noop" } })).toMatchObject({
      subRun: { params: { day: 7 }, opTime: "2026010100" },
    });
  });

  test("limits parallel items: each depends on the one maxParallel places before it", async () => {
    const { nodes } = await dagOf({ over: [1, 2, 3, 4, 5], maxParallel: 2, node: { type: "noop" } });
    expect(nodes.map(({ dependsOn, runWhen }) => [dependsOn, runWhen])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      [["0"], "all_done"],
      [["1"], "all_done"],
      [["2"], "all_done"],
    ]);
  });

  test("runs twenty at a time by default", async () => {
    const { nodes } = await dagOf({ over: Array.from({ length: 50 }), node: { type: "noop" } });
    expect(nodes.filter(({ dependsOn }) => dependsOn === undefined)).toHaveLength(20);
  });

  test("escapes rendered values, so that they are not rendered again", async () => {
    const item = { text: "${params.secret}", list: ["$${x}", 1, null] };
    const { nodes } = await dagOf({ over: [item], node: { type: "noop", cfg: { given: "${item}" } } });
    const compiled = compileTemplate(nodes[0]?.cfg, VARIABLES);
    if ("problems" in compiled) throw new Error(compiled.problems[0]?.message);
    expect(compiled.template.isConstant).toBe(true);
    expect(compiled.template.render({})).toEqual({ given: item });
  });

  test("of an empty list succeeds at once", async () => {
    expect(await map.execute(nodeContext(), { over: [], node: { type: "noop" } })).toEqual({ artifact: { items: [] } });
  });

  test("fails for good if a large value is repeated in too many items", async () => {
    const given = { params: { blob: "x".repeat(1_000_000) } };
    const node = { type: "noop", cfg: { a: "${params.blob}" } };
    expect((await dagOf({ over: Array.from({ length: 16 }), node }, given)).nodes).toHaveLength(16);
    await expect(map.execute(nodeContext(given), { over: Array.from({ length: 10_000 }), node })).rejects.toMatchObject(
      {
        message: "the cfg of its items has more than 16777216 bytes in total; pass references instead of large values",
        retry: false,
      },
    );
  });

  test("logs the number of items", async () => {
    const ctx = nodeContext();
    await map.execute(ctx, { over: [1, 2, 3], maxParallel: 2, node: { type: "noop" } });
    expect(ctx.lines).toEqual([{ level: "info", text: "3 items, at most 2 at a time" }]);
  });

  test("fails for good if the cfg of an item's node is invalid", async () => {
    const node = { type: "noop", cfg: { a: "${item +}" } };
    await expect(map.execute(nodeContext(), { over: [1], node })).rejects.toMatchObject({
      message: expect.stringMatching(/^the node's cfg: `item \+` is not valid/),
      retry: false,
    });
  });
});

test("a secret after a dollar sign is still rendered", async () => {
  const node = { type: "call", cfg: { price: "${item}${secrets.TOKEN}" } };
  const { nodes } = await dagOf({ over: ["a$$", "b"], node });
  const compiled = nodes.map(({ cfg }) => compileTemplate(cfg, VARIABLES));
  const secrets = new Map([["TOKEN", "open sesame"]]);
  expect(compiled.map((one) => ("template" in one ? one.template.render({ secrets }) : one))).toEqual([
    { price: "a$$open sesame" },
    { price: "bopen sesame" },
  ]);
});

test("the child run contains the name of a secret, and data that looks like one stays data", async () => {
  const cfg = { url: "${item}", token: "Bearer ${secrets.TOKEN}", plain: "$${secrets.TOKEN}" };
  const { nodes } = await dagOf({ over: ["${secrets.TOKEN}"], node: { type: "call", cfg } });
  expect(nodes).toEqual([
    {
      id: "0",
      type: "call",
      cfg: { url: "$${secrets.TOKEN}", token: "Bearer ${secrets.TOKEN}", plain: "$${secrets.TOKEN}" },
    },
  ]);
});
