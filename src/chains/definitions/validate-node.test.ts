import { describe, expect, test } from "vitest";
import { noopNode, problemsOf, problemsWith } from "./validate.fixture.ts";

describe("a node", () => {
  test.each([[1], [null], ["a"], [[]]])("is an object, not %j", (node) => {
    expect(problemsOf({ nodes: [node] })).toEqual([
      { path: "nodes[0]", message: "`nodes[0]` must be an object with `id` and `type`" },
    ]);
  });

  test("has an id and a type", () => {
    expect(problemsOf({ nodes: [{}] })).toEqual([
      { path: "nodes[0].id", message: "`id` is missing. Accepted: text." },
      { path: "nodes[0].type", message: "`type` is missing. Accepted: text from 1 to 64 characters." },
    ]);
  });

  test.each(["a b", "", "é", "x".repeat(65)])("cannot have the id %j", (id) => {
    expect(problemsOf({ nodes: [{ id, type: "noop" }] })).toMatchObject([
      { path: "nodes[0].id", message: "`id` is not acceptable: 1 to 64 letters, digits, `_`, `.` or `-`." },
    ]);
  });

  test.each<[string, Record<string, unknown>, string[]]>([
    ["a type that is misspelt", { type: "slep" }, ["type: there is no node type `slep`. Did you mean `sleep`?"]],
    [
      "an unknown type",
      { type: "kubernetes" },
      ["type: there is no node type `kubernetes`. Known here: noop, sleep, chain, map, call."],
    ],
    ["an empty type", { type: "" }, ["type: `type` has 0 characters. Accepted: text from 1 to 64 characters."]],
    ["a type that is not text", { type: 7 }, ["type: `type` is 7. Accepted: text from 1 to 64 characters."]],
    ["a field that is misspelt", { dependOn: [] }, ["dependOn: `dependOn` is not a field. Did you mean `dependsOn`?"]],
    [
      "an unknown field",
      { description: "" },
      [
        "description: `description` is not a field. Known here: id, type, dependsOn, cfg, retry, timeoutMs, runWhen, if, waitsFor, pool.",
      ],
    ],
    [
      "parents that are not a list",
      { dependsOn: "a" },
      ["dependsOn: `dependsOn` is text. Accepted: a list of at most 1000 items, each text."],
    ],
    ["a parent that is not text", { dependsOn: ["a", 7] }, ["dependsOn[1]: `dependsOn[1]` is 7. Accepted: text."]],
    [
      "a time-out of 0",
      { timeoutMs: 0 },
      ["timeoutMs: `timeoutMs` is 0. Accepted: a whole number from 1 to 604800000."],
    ],
    [
      "an invalid retry policy",
      { retry: { maxAttempts: 0, attempts: 3 } },
      [
        "retry.attempts: `retry.attempts` is not a field. Known here: maxAttempts, backoffMs, factor, maxBackoffMs, jitter.",
        "retry.maxAttempts: `retry.maxAttempts` is 0. Accepted: a whole number from 1 to 1000.",
      ],
    ],
    [
      "a rule that is misspelt",
      { runWhen: "all_sucess" },
      [
        "runWhen: `runWhen` is `all_sucess`. Accepted: one of all_success, all_done, one_failed. Did you mean `all_success`?",
      ],
    ],
    ["a pool that is misspelt", { pool: "heavi" }, ["pool: there is no pool `heavi`. Did you mean `heavy`?"]],
    [
      "a pool that does not exist",
      { pool: "gpu" },
      ["pool: there is no pool `gpu`. Create it with PUT /api/v1/pools/{name}."],
    ],
    ["a cfg that is not an object", { cfg: [] }, ["cfg: `cfg` is a list. Accepted: named values."]],
    [
      "an incomplete `if`",
      { if: "params.x ==" },
      ["if: `params.x ==` is not valid at column 12: unexpected token: EOF."],
    ],
    [
      "an `if` with an unknown variable",
      { if: "parms.x" },
      [
        "if: `parms.x` uses `parms` at column 1, which is not known here; known are: `params`, `opTime`, `nodes`, `run`, `node`. Did you mean `params`?",
      ],
    ],
    [
      "`one_failed` without parents",
      { runWhen: "one_failed", dependsOn: [] },
      ["runWhen: `one_failed` needs a parent in `dependsOn`: without one the node would never run"],
    ],
    [
      "`one_failed` and tables to wait for",
      { runWhen: "one_failed", waitsFor: ["t"] },
      ["waitsFor: a node with `one_failed` runs as soon as a parent has failed, and cannot wait for tables"],
    ],
  ])("cannot have %s", (_, node, problems) => {
    expect(problemsWith(node)).toEqual(problems);
  });
});

describe("the cfg of a node", () => {
  test("is checked against its type, except for templates", () => {
    expect(problemsWith({ type: "sleep", cfg: { ms: "${params.ms}" } })).toEqual([]);
    expect(problemsWith({ type: "sleep", cfg: { ms: "soon" } })).toEqual([
      "cfg.ms: `cfg.ms` is text. Accepted: a whole number from 0 to 604800000.",
    ]);
    expect(problemsWith({ type: "sleep" })).toEqual([
      "cfg.ms: `cfg.ms` is missing. Accepted: a whole number from 0 to 604800000.",
    ]);
  });

  test("has valid templates", () => {
    const headers = { a: "${params.x", "x-b": "${1 +}", ok: "$${params.x" };
    expect(problemsWith({ type: "call", cfg: { url: "${item}", headers } })).toEqual([
      expect.stringMatching(/^cfg\.url: `item` uses `item` at column 1, which is not known here/),
      expect.stringMatching(/^cfg\.headers\.a: The `\$\{` at column 1 is not closed/),
      expect.stringMatching(/^cfg\.headers\.x-b: `1 \+` is not valid at column 4/),
    ]);
  });

  test.each([
    ["if", { if: 'nodes.extarct.status == "FAILED"' }],
    ["cfg", { type: "call", cfg: { url: "https://x/${nodes.extarct.artifact}" } }],
  ])("and `%s` may only use the results of parents", (field, node) => {
    const withResultOf = (id: string) => JSON.parse(JSON.stringify(node).replace("extarct", id)) as typeof node;
    const nodes = [noopNode("extract"), noopNode("between", ["extract"])];
    const problems = (id: string) =>
      problemsOf({ nodes: [...nodes, { ...noopNode("x", ["between"]), ...withResultOf(id) }] });
    expect(problems("between")).toEqual([]);
    expect(problems("extract")).toEqual([
      {
        path: `nodes[2].${field}`,
        nodeId: "x",
        message: "`nodes.extract` is used, but a node only gets the results of its parents: add it to `dependsOn`",
      },
    ]);
    expect(problems("extarct")).toMatchObject([
      { message: "`nodes.extarct` is used, but there is no node `extarct`. Did you mean `extract`?" },
    ]);
  });
});

describe("the node that a map runs", () => {
  const mapOf = (node: Record<string, unknown>) =>
    problemsWith({ type: "map", cfg: { over: "${nodes.a.artifact.list}", node } });

  test("may use the item, and may have any other type", () => {
    expect(mapOf({ type: "call", cfg: { url: "${item.url}?i=${index}&a=${nodes.a.artifact.x}" } })).toEqual([]);
    expect(mapOf({ type: "noop", retry: { maxAttempts: 2 }, timeoutMs: 5, pool: "heavy" })).toEqual([]);
    expect(mapOf({ type: "chain", cfg: { name: "one", params: { item: "${item}" } } })).toEqual([]);
  });

  test.each<[string, Record<string, unknown>, string[]]>([
    ["of an unknown type", { type: "slep" }, ["cfg.node.type: there is no node type `slep`. Did you mean `sleep`?"]],
    [
      "with an invalid cfg",
      { type: "sleep", cfg: { ms: -1, mss: 1 } },
      [
        "cfg.node.cfg.mss: `cfg.mss` is not a field of `sleep`. Did you mean `ms`?",
        "cfg.node.cfg.ms: `cfg.ms` is -1. Accepted: a whole number from 0 to 604800000.",
      ],
    ],
    [
      "with a template that uses an unknown variable",
      { type: "sleep", cfg: { ms: "${itm}" } },
      [expect.stringMatching(/^cfg\.node\.cfg\.ms: `itm` uses `itm`.* Did you mean `item`\?/)],
    ],
    [
      "that uses the result of a node that is not a parent",
      { type: "sleep", cfg: { ms: "${nodes.b.artifact}" } },
      [expect.stringMatching(/^cfg\.node\.cfg: `nodes\.b` is used, but there is no node `b`/)],
    ],
    [
      "in a pool that does not exist",
      { type: "noop", pool: "heavi" },
      ["cfg.node.pool: there is no pool `heavi`. Did you mean `heavy`?"],
    ],
    [
      "with invalid retries",
      { type: "noop", retry: { maxAttempts: 0 } },
      ["cfg.node.retry.maxAttempts: `cfg.node.retry.maxAttempts` is 0. Accepted: a whole number from 1 to 1000."],
    ],
    [
      "with a template in a field that is not rendered",
      { type: "noop", timeoutMs: "${params.ms}" },
      ["cfg.node.timeoutMs: `cfg.node.timeoutMs` is text. Accepted: a whole number from 1 to 604800000."],
    ],
    [
      "with a field that only nodes of a chain have",
      { type: "noop", dependsOn: ["a"] },
      [
        "cfg.node.dependsOn: `cfg.node.dependsOn` is not a field of `map`. Known here: type, cfg, retry, timeoutMs, pool.",
      ],
    ],
    [
      "that is a map itself",
      { type: "map", cfg: { over: [], node: { type: "noop" } } },
      ["cfg.node.type: a map cannot run another map. Put the inner one into another chain and run that with `chain`"],
    ],
  ])("cannot be one %s", (_, node, problems) => {
    expect(mapOf(node)).toEqual(problems);
  });

  test("is required", () => {
    expect(problemsWith({ type: "map", cfg: { over: [1] } })).toEqual([
      expect.stringMatching(/^cfg\.node: `cfg\.node` is missing/),
    ]);
  });
});

describe("a secret in the cfg of a node", () => {
  test("is accepted where the node itself uses it, also for each item of a map", () => {
    const node = { type: "call", cfg: { url: "https://x.org", headers: { authorization: "Bearer ${secrets.TOKEN}" } } };
    expect(problemsWith(node)).toEqual([]);
    expect(problemsWith({ type: "map", cfg: { over: [1], node } })).toEqual([]);
  });

  const stored = (type: string) =>
    `the cfg of \`${type}\` is stored, so it must not contain the secret \`TOKEN\`. Write \`\${secrets.TOKEN}\` into the node that uses it`;
  const passesOn = { type: "chain", cfg: { name: "other", params: { token: "${secrets.TOKEN}" } } };
  test.each<[string, Record<string, unknown>, string]>([
    ["in the params of a child run", passesOn, `cfg: ${stored("chain")}`],
    [
      "in the params of a child run of each item",
      { type: "map", cfg: { over: [1], node: passesOn } },
      `cfg.node.cfg: ${stored("chain")}`,
    ],
    [
      "as an item",
      { type: "map", cfg: { over: ["${secrets.TOKEN}"], node: { type: "noop" } } },
      `cfg: ${stored("map")}`,
    ],
  ])("is refused where it would be stored: %s", (_, node, problem) => {
    expect(problemsWith(node)).toEqual([problem]);
  });

  test("is refused in a condition", () => {
    expect(problemsWith({ if: 'secrets.TOKEN == "x"' })).toEqual([
      expect.stringMatching(/^if: .*uses `secrets` at column 1, which is not known here.* Secrets are for `cfg`\.$/),
    ]);
  });
});
