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
      "a type that is nothing like any",
      { type: "kubernetes" },
      ["type: there is no node type `kubernetes`. Known here: noop, sleep, chain, map, call."],
    ],
    ["an empty type", { type: "" }, ["type: `type` has 0 characters. Accepted: text from 1 to 64 characters."]],
    ["a type that is no text", { type: 7 }, ["type: `type` is 7. Accepted: text from 1 to 64 characters."]],
    ["a field that is misspelt", { dependOn: [] }, ["dependOn: `dependOn` is not a field. Did you mean `dependsOn`?"]],
    [
      "a field that is nothing like any",
      { description: "" },
      [
        "description: `description` is not a field. Known here: id, type, dependsOn, cfg, retry, timeoutMs, runWhen, if, waitsFor, pool.",
      ],
    ],
    [
      "parents that are no list",
      { dependsOn: "a" },
      ["dependsOn: `dependsOn` is text. Accepted: a list of at most 1000 items, each text."],
    ],
    ["a parent that is no text", { dependsOn: ["a", 7] }, ["dependsOn[1]: `dependsOn[1]` is 7. Accepted: text."]],
    [
      "a time-out of nothing",
      { timeoutMs: 0 },
      ["timeoutMs: `timeoutMs` is 0. Accepted: a whole number from 1 to 604800000."],
    ],
    [
      "a bad policy of retries",
      { retry: { maxAttempts: 0, attempts: 3 } },
      [
        "retry.attempts: `retry.attempts` is not a field. Known here: maxAttempts, backoffMs, factor, maxBackoffMs, jitter.",
        "retry.maxAttempts: `retry.maxAttempts` is 0. Accepted: a whole number from 1 to 1000.",
      ],
    ],
    [
      "a rule that is misspelt",
      { runWhen: "all_sucess" },
      ["runWhen: `runWhen` is text. Accepted: one of all_success, all_done, one_failed. Did you mean `all_success`?"],
    ],
    ["a pool that is misspelt", { pool: "heavi" }, ["pool: there is no pool `heavi`. Did you mean `heavy`?"]],
    [
      "a pool that is not there",
      { pool: "gpu" },
      ["pool: there is no pool `gpu`. Make it with PUT /api/v1/pools/{name}."],
    ],
    ["a cfg that is no object", { cfg: [] }, ["cfg: `cfg` is a list. Accepted: named values."]],
    [
      "an `if` without end",
      { if: "params.x ==" },
      ["if: `params.x ==` is not valid at column 12: unexpected token: EOF."],
    ],
    [
      "an `if` about something unknown",
      { if: "parms.x" },
      [
        "if: `parms.x` uses `parms` at column 1, which is not known here; known are: `params`, `opTime`, `nodes`, `run`, `node`. Did you mean `params`?",
      ],
    ],
    [
      "a rule that can never come true",
      { runWhen: "one_failed", dependsOn: [] },
      ["runWhen: `one_failed` needs a parent in `dependsOn`: without one the node would never run"],
    ],
    [
      "a rule that does not wait, and tables to wait for",
      { runWhen: "one_failed", waitsFor: ["t"] },
      ["waitsFor: a node with `one_failed` runs as soon as a parent has failed, and cannot wait for tables"],
    ],
  ])("cannot have %s", (_, node, problems) => {
    expect(problemsWith(node)).toEqual(problems);
  });
});

describe("the cfg of a node", () => {
  test("fits its type, while a template is taken on trust", () => {
    expect(problemsWith({ type: "sleep", cfg: { ms: "${params.ms}" } })).toEqual([]);
    expect(problemsWith({ type: "sleep", cfg: { ms: "soon" } })).toEqual([
      "cfg.ms: `cfg.ms` is text. Accepted: a whole number from 0 to 604800000.",
    ]);
    expect(problemsWith({ type: "sleep" })).toEqual([
      "cfg.ms: `cfg.ms` is missing. Accepted: a whole number from 0 to 604800000.",
    ]);
  });

  test("has templates that can be read", () => {
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
  ])("and `%s` use the results of parents only, for no others are there", (field, node) => {
    const withResultOf = (id: string) => JSON.parse(JSON.stringify(node).replace("extarct", id)) as typeof node;
    const nodes = [noopNode("extract"), noopNode("between", ["extract"])];
    const problems = (id: string) =>
      problemsOf({ nodes: [...nodes, { ...noopNode("x", ["between"]), ...withResultOf(id) }] });
    expect(problems("between")).toEqual([]);
    expect(problems("extract")).toEqual([
      {
        path: `nodes[2].${field}`,
        nodeId: "x",
        message:
          "`nodes.extract` is used, but only the results of its parents are known to a node: add it to `dependsOn`",
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

  test("knows the item, and may be of any other type", () => {
    expect(mapOf({ type: "call", cfg: { url: "${item.url}?i=${index}&a=${nodes.a.artifact.x}" } })).toEqual([]);
    expect(mapOf({ type: "noop", retry: { maxAttempts: 2 }, timeoutMs: 5, pool: "heavy" })).toEqual([]);
    expect(mapOf({ type: "chain", cfg: { name: "one", params: { item: "${item}" } } })).toEqual([]);
  });

  test.each<[string, Record<string, unknown>, string[]]>([
    [
      "of a type there is not",
      { type: "slep" },
      ["cfg.node.type: there is no node type `slep`. Did you mean `sleep`?"],
    ],
    [
      "with a bad cfg",
      { type: "sleep", cfg: { ms: -1, mss: 1 } },
      [
        "cfg.node.cfg.mss: `cfg.mss` is not a field of `sleep`. Did you mean `ms`?",
        "cfg.node.cfg.ms: `cfg.ms` is -1. Accepted: a whole number from 0 to 604800000.",
      ],
    ],
    [
      "with a template about something unknown",
      { type: "sleep", cfg: { ms: "${itm}" } },
      [expect.stringMatching(/^cfg\.node\.cfg\.ms: `itm` uses `itm`.* Did you mean `item`\?/)],
    ],
    [
      "that uses the result of a stranger",
      { type: "sleep", cfg: { ms: "${nodes.b.artifact}" } },
      [expect.stringMatching(/^cfg\.node\.cfg: `nodes\.b` is used, but there is no node `b`/)],
    ],
    [
      "in a pool there is not",
      { type: "noop", pool: "heavi" },
      ["cfg.node.pool: there is no pool `heavi`. Did you mean `heavy`?"],
    ],
    [
      "with bad retries",
      { type: "noop", retry: { maxAttempts: 0 } },
      ["cfg.node.retry.maxAttempts: `cfg.node.retry.maxAttempts` is 0. Accepted: a whole number from 1 to 1000."],
    ],
    [
      "with a template where nobody would fill it in",
      { type: "noop", timeoutMs: "${params.ms}" },
      ["cfg.node.timeoutMs: `cfg.node.timeoutMs` is text. Accepted: a whole number from 1 to 604800000."],
    ],
    [
      "with what only a node of a chain has",
      { type: "noop", dependsOn: ["a"] },
      [
        "cfg.node.dependsOn: `cfg.node.dependsOn` is not a field of `map`. Known here: type, cfg, retry, timeoutMs, pool.",
      ],
    ],
    [
      "that is a map itself",
      { type: "map", cfg: { over: [], node: { type: "noop" } } },
      [
        "cfg.node.type: a map cannot run another map. Put the inner one into a chain of its own and run that with `chain`",
      ],
    ],
  ])("cannot be one %s", (_, node, problems) => {
    expect(mapOf(node)).toEqual(problems);
  });

  test("must be there", () => {
    expect(problemsWith({ type: "map", cfg: { over: [1] } })).toEqual([
      expect.stringMatching(/^cfg\.node: `cfg\.node` is missing/),
    ]);
  });
});

describe("a secret in the cfg of a node", () => {
  test("is taken wherever the node itself uses it, also for each item of a map", () => {
    const node = { type: "call", cfg: { url: "https://x.org", headers: { authorization: "Bearer ${secrets.TOKEN}" } } };
    expect(problemsWith(node)).toEqual([]);
    expect(problemsWith({ type: "map", cfg: { over: [1], node } })).toEqual([]);
  });

  const stored = (type: string) =>
    `what is in the cfg of \`${type}\` is stored, so the secret \`TOKEN\` cannot be. Write \`\${secrets.TOKEN}\` into the node that uses it`;
  const handsOver = { type: "chain", cfg: { name: "other", params: { token: "${secrets.TOKEN}" } } };
  test.each<[string, Record<string, unknown>, string]>([
    ["to the run of a chain", handsOver, `cfg: ${stored("chain")}`],
    [
      "to the runs that a map starts",
      { type: "map", cfg: { over: [1], node: handsOver } },
      `cfg.node.cfg: ${stored("chain")}`,
    ],
    [
      "as an item",
      { type: "map", cfg: { over: ["${secrets.TOKEN}"], node: { type: "noop" } } },
      `cfg: ${stored("map")}`,
    ],
  ])("is not handed over %s, where it would be stored", (_, node, problem) => {
    expect(problemsWith(node)).toEqual([problem]);
  });

  test("is not known to a condition", () => {
    expect(problemsWith({ if: 'secrets.TOKEN == "x"' })).toEqual([
      expect.stringMatching(/^if: .*uses `secrets` at column 1, which is not known here.* Secrets are for `cfg`\.$/),
    ]);
  });
});
