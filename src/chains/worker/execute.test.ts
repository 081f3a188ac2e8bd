import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal } from "../../../test/until.ts";
import type { NodeDef } from "../definitions/dag.ts";
import { buildGraph, type GraphNode } from "../definitions/graph.ts";
import { dagOf } from "../engine/book.fixture.ts";
import type { RunFacts } from "../store/runs.ts";
import { FinalFailure, type NodeContext, type NodeResult, nodeType } from "../types/node-type.ts";
import { createRegistry } from "../types/registry.ts";
import { execute, type Outcome } from "./execute.ts";
import type { PreparedNode } from "./prepare.ts";

const database = useDatabase();
const ARTIFACT_BYTES_MAX = 1_048_576;
const unstopped = new AbortController();

type Work = (ctx: NodeContext) => Promise<NodeResult>;

/** Runs a node whose `execute` is `work`. */
async function run(
  work: Work,
  {
    node = {},
    stop = unstopped,
    ...item
  }: Partial<Omit<PreparedNode, "node">> & { node?: Partial<NodeDef>; stop?: AbortController } = {},
) {
  const lines: object[] = [];
  const progress: object[] = [];
  const checkpoints: unknown[] = [];
  const scripted = nodeType({ type: "scripted", summary: "", cfg: Type.Object({}), execute: work });
  const graph = buildGraph(dagOf({ x: { type: "scripted", ...node } }));
  const facts: RunFacts = {
    run_id: "run-1",
    name: "a chain",
    chain_id: null,
    chain_version: null,
    params: { day: 7 },
    op_time: "2026010100",
    priority: 0,
    run_timeout_ms: null,
    trigger: "api",
    parent_run_id: null,
    parent_node_id: null,
    depth: 0,
  };
  const prepared = {
    run_id: "run-1",
    node_id: "x",
    fence: "9",
    attempt: 2,
    returned: 0,
    checkpoint: { offset: 3 },
    parents: { a: { status: "SUCCESS", artifact: 1 } },
    secrets: new Map(),
    node: graph.byId.get("x") as GraphNode,
    run: { facts, graph },
    ...item,
  };
  const outcome = await execute(
    {
      registry: createRegistry([scripted]),
      output: { line: (line) => lines.push(line), progress: (share) => progress.push(share), flush: async () => {} },
      saveCheckpoint: async (_, value) => void checkpoints.push(value),
    },
    prepared,
    stop,
  );
  return { outcome, lines, progress, checkpoints };
}
const outcomeOf = async (work: Work, node?: Partial<NodeDef>): Promise<Outcome> =>
  (await run(work, node ? { node } : {})).outcome;
const failed = (error: unknown, final = false) => ({ kind: "failed", error, final });

describe("a node that runs", () => {
  test("gets its context", async () => {
    let given: NodeContext | undefined;
    await run(async (ctx) => {
      given = ctx;
      return {};
    });
    expect(given).toMatchObject({
      runId: "run-1",
      nodeId: "x",
      attempt: 2,
      key: "run-1/x/2",
      opTime: "2026010100",
      params: { day: 7 },
      parents: { a: { status: "SUCCESS", artifact: 1 } },
      checkpoint: { offset: 3 },
    });
  });

  test("succeeds with its artifact and checkpoint", async () => {
    expect(await outcomeOf(async () => ({ artifact: { rows: 7 }, checkpoint: [1] }))).toEqual({
      kind: "succeeded",
      artifact: { rows: 7 },
      checkpoint: [1],
    });
    expect(await outcomeOf(async () => ({}))).toEqual({ kind: "succeeded", artifact: null });
  });

  test("may request a child run", async () => {
    const subRun = { of: { chain: "other" }, params: {}, opTime: null };
    expect(await outcomeOf(async () => ({ subRun }))).toEqual({ kind: "sub-run", subRun });
  });

  test("requests one that can be stored, although an expression split a surrogate pair", async () => {
    const subRunWith = (text: string) => {
      const dag = { nodes: [{ id: "0", type: "noop", cfg: { text } }] };
      return { of: { dag }, params: { [text]: text }, opTime: text };
    };
    expect(await outcomeOf(async () => ({ subRun: subRunWith("\uD83D") }))).toEqual({
      kind: "sub-run",
      subRun: subRunWith("\uFFFD"),
    });
  });

  test("reports progress under its fence, between 0 and 1", async () => {
    const { lines, progress, checkpoints } = await run(async (ctx) => {
      ctx.log("one");
      ctx.log("two", "warn");
      ctx.progress(0.5, "half");
      ctx.progress(7);
      ctx.progress(-1);
      await ctx.saveCheckpoint({ offset: 4 });
      return {};
    });
    const held = { run_id: "run-1", node_id: "x", fence: "9" };
    expect(lines).toEqual([
      { ...held, attempt: 2, level: "info", line: "one" },
      { ...held, attempt: 2, level: "warn", line: "two" },
    ]);
    expect(progress).toEqual([
      { ...held, progress: 0.5, note: "half" },
      { ...held, progress: 1, note: null },
      { ...held, progress: 0, note: null },
    ]);
    expect(checkpoints).toEqual([{ offset: 4 }]);
  });

  test("logs up to a limit, and the last line says that there was more", async () => {
    const { lines } = await run(async (ctx) => {
      for (let n = 1; n <= 100_003; n += 1) ctx.log(`line ${n}`);
      return {};
    });
    expect(lines).toHaveLength(100_001);
    expect(lines.slice(-2)).toMatchObject([
      { line: "line 100000" },
      { level: "warn", line: "The log ends here: an attempt can log 100000 lines." },
    ]);
  });

  test("does not run if its `if` is false", async () => {
    const work = vi.fn<Work>(async () => ({}));
    expect(await outcomeOf(work, { if: "params.day > 7" })).toEqual({
      kind: "skipped",
      reason: "its `if` is false: params.day > 7",
    });
    expect(work).not.toHaveBeenCalled();
  });
});

describe("a node that fails", () => {
  test("reports why, and may be retried", async () => {
    expect(await outcomeOf(() => Promise.reject(new Error("no route")))).toEqual(failed("no route"));
    expect(await outcomeOf(() => Promise.reject("a text"))).toEqual(failed("a text"));
  });

  test("does so too when it throws synchronously", async () => {
    const work: Work = () => {
      throw new Error("at once");
    };
    expect(await outcomeOf(work)).toEqual(failed("at once"));
  });

  test("for good is not retried", async () => {
    expect(await outcomeOf(() => Promise.reject(new FinalFailure("refused")))).toEqual(failed("refused", true));
    const own = Object.assign(new Error("own"), { retry: false });
    expect(await outcomeOf(() => Promise.reject(own))).toEqual(failed("own", true));
  });

  test("always has a message, of limited length", async () => {
    expect(await outcomeOf(() => Promise.reject(new Error("")))).toEqual(failed("it failed without a message"));
    const { error } = (await outcomeOf(() => Promise.reject(new Error("x".repeat(9_000))))) as { error: string };
    expect(error).toHaveLength(4_000);
  });

  test("has a message that can be stored", async () => {
    expect(await outcomeOf(() => Promise.reject(new Error("a\0b\uD800")))).toEqual(failed("a\uFFFDb\uFFFD"));
    const cut = (await outcomeOf(() => Promise.reject(new Error(`${"x".repeat(3_999)}😀`)))) as { error: string };
    expect(cut.error.isWellFormed()).toBe(true);
  });

  test.each([
    ["an `if` that is not boolean", { if: "params.day" }, "its `if` is neither true nor false: params.day"],
    ["an `if` that cannot be evaluated", { if: "params.x == 1" }, "`params.x == 1` failed: there is no `params.x`."],
    [
      "a template that cannot be filled in",
      { cfg: { a: "${params.x}" } },
      "`params.x` failed: there is no `params.x`.",
    ],
    ["an unknown type", { type: "elsewhere" }, "this process has no node type `elsewhere`"],
  ])("because of %s fails for good: another attempt would repeat it", async (_, node, error) => {
    expect(await outcomeOf(async () => ({}), node)).toEqual(failed(error, true));
  });
});

describe("the artifact of a node", () => {
  test.each<[string, unknown, unknown]>([
    ["a text with NUL", "a\0b", "a\uFFFDb"],
    ["half a surrogate pair, deep inside", { a: [{ b: "x\uDC00" }] }, { a: [{ b: "x\uFFFD" }] }],
    ["a key with NUL", { "a\0": 1, b: { "\uD800": 2 } }, { "a\uFFFD": 1, b: { "\uFFFD": 2 } }],
    ["text that only looks like an escape", "\\u0000 \\ud800 \\\\u0000", "\\u0000 \\ud800 \\\\u0000"],
    ["whole pairs and controls", '😀\u0001\n"', '😀\u0001\n"'],
    ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["what JSON does not know", { a: undefined, b: Number.NaN }, { b: null }],
  ])("can be stored if it contains %s", async (_, artifact, stored) => {
    const outcome = await outcomeOf(async () => ({ artifact, checkpoint: artifact }));
    expect(outcome).toEqual({ kind: "succeeded", artifact: stored, checkpoint: stored });
    const [row] = await database.query<{ doc: unknown }>("select $1::jsonb as doc", [
      JSON.stringify((outcome as { artifact: unknown }).artifact),
    ]);
    expect(row?.doc).toEqual(stored);
  });

  test("is at most a megabyte, and the error says what to do", async () => {
    const text = "x".repeat(ARTIFACT_BYTES_MAX - 2);
    expect(await outcomeOf(async () => ({ artifact: text }))).toMatchObject({ kind: "succeeded" });
    expect(await outcomeOf(async () => ({ artifact: `${text}x` }))).toEqual(
      failed(
        "its artifact has 1048577 bytes, more than the 1048576 allowed; store large results elsewhere and return a reference",
        true,
      ),
    );
    expect(await outcomeOf(async () => ({ checkpoint: `${text}x` }))).toEqual(
      failed(expect.stringMatching(/^its checkpoint has 1048577 bytes/), true),
    );
  });

  test.each<[string, () => unknown, string]>([
    ["refers to itself", circular, "not JSON: Converting circular structure to JSON"],
    ["contains a BigInt", () => 1n, "not JSON: Do not know how to serialize a BigInt"],
    ["is nested deeper than the limit", () => nested(257), "nested deeper than 256 levels"],
    ["is nested too deep to be measured", () => nested(20_000), "nested too deeply"],
  ])("fails for good when it %s", async (_, make, reason) => {
    const sentence = `its artifact cannot be stored: it is ${reason}`;
    expect(await outcomeOf(async () => ({ artifact: make() }))).toEqual(failed(sentence, true));
  });

  test("may be nested up to the limit", async () => {
    expect(await outcomeOf(async () => ({ artifact: nested(256) }))).toMatchObject({ kind: "succeeded" });
  });
});

describe("a node that times out", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const timedOut = failed("it took longer than its 1000 ms");
  const node = { timeoutMs: 1_000 };

  test("fails as soon as it reacts to its signal", async () => {
    const aborted = signal<unknown>();
    const work: Work = ({ signal: abort }) =>
      new Promise((_, reject) => {
        abort.addEventListener("abort", () => {
          aborted.resolve(abort.reason);
          reject(new Error("the connection was closed"));
        });
      });
    const outcome = outcomeOf(work, node);
    await vi.advanceTimersByTimeAsync(999);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await aborted.promise).toEqual(new Error("it took longer than its 1000 ms"));
    expect(await outcome).toEqual(timedOut);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is abandoned a little later if it ignores its signal", async () => {
    let ended: Outcome | undefined;
    void outcomeOf(() => new Promise(() => {}), node).then((outcome) => (ended = outcome));
    await vi.advanceTimersByTimeAsync(1_000 + 4_999);
    expect(ended).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toEqual(timedOut);
  });

  test("fails even if it returns a result later", async () => {
    const outcome = outcomeOf(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_001));
      return { artifact: "half of it" };
    }, node);
    await vi.advanceTimersByTimeAsync(1_001);
    expect(await outcome).toEqual(timedOut);
  });

  test("is not affected if it ends before", async () => {
    expect(await outcomeOf(async () => ({ artifact: 1 }), node)).toEqual({ kind: "succeeded", artifact: 1 });
    expect(await outcomeOf(() => Promise.reject(new Error("own")), node)).toEqual(failed("own"));
    expect(vi.getTimerCount()).toBe(0);
  });
});

test.each([{}, { timeoutMs: 60_000 }])("a node that is stopped is aborted, with the definition %j", async (node) => {
  const stop = new AbortController();
  const work: Work = ({ signal: abort }) =>
    new Promise((_, reject) => {
      abort.addEventListener("abort", () => reject(abort.reason as Error));
      stop.abort(new Error("the run was stopped"));
    });
  expect((await run(work, { node, stop })).outcome).toEqual(failed("the run was stopped"));
});

function circular(): object {
  const itself: Record<string, unknown> = {};
  itself["itself"] = itself;
  return itself;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

test("a secret of its cfg is masked in all output of a node", async () => {
  const secrets = new Map([["TOKEN", { value: "open sesame" }]]);
  const node = { cfg: { token: "${secrets.TOKEN}" } };
  const output = await run(
    async (ctx) => {
      ctx.log("log: open sesame");
      ctx.progress(0.5, "note: open sesame");
      await ctx.saveCheckpoint({ at: "open sesame" });
      return { artifact: ["open sesame"], checkpoint: { open: "open sesame" } };
    },
    { node, secrets },
  );
  expect(output.outcome).toEqual({ kind: "succeeded", artifact: ["***"], checkpoint: { open: "***" } });
  expect(output.checkpoints).toEqual([{ at: "***" }]);
  expect(output.lines).toMatchObject([{ line: "log: ***" }]);
  expect(output.progress).toMatchObject([{ note: "note: ***" }]);

  const failing = await run(() => Promise.reject(new Error("refused: open sesame")), { node, secrets });
  expect(failing.outcome).toEqual(failed("refused: ***"));

  const subRun = { of: { chain: "other" }, params: { token: "open sesame" }, opTime: null };
  const started = await run(async () => ({ subRun }), { node, secrets });
  expect(started.outcome).toEqual(failed("it starts a run with a secret in it, which would be stored", true));

  const odd = await run(
    () => Promise.reject(Object.assign(new Error(), { message: { toString: () => "open sesame" } })),
    {
      node,
      secrets,
    },
  );
  expect(odd.outcome).toEqual(failed("***"));
});
