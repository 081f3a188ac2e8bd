/** What a node requests as its child run: the same as before, something else, or its own chain. */
import { describe, expect, test } from "vitest";
import { ACTOR, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useSubRuns } from "./sub-runs.fixture.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const { childrenOf, startParent } = useSubRuns(database, chains);
const BY = { by: "test" };
const RETRY = { maxAttempts: 5, backoffMs: 0 };
// biome-ignore lint/suspicious/noTemplateCurlyInString: a template of chains.
const ATTEMPT = "${node.attempt}";

describe("the next attempt of a node whose child run has failed", () => {
  test("starts a new run of the chain if the params differ", async () => {
    const process = await chains.open();
    acts.set("a", ({ params }) =>
      params["attempt"] === 1 ? Promise.reject(new Error("not with these")) : { artifact: params },
    );
    const runId = await startParent(process, [{ id: "a" }], {
      cfg: { name: "child", params: { attempt: ATTEMPT } },
      retry: RETRY,
    });
    const run = await ended(runId);
    const [first = "", second = "", ...others] = await childrenOf(runId);
    expect(others).toEqual([]);
    expect(run.nodes["sub"]).toMatchObject({
      status: "SUCCESS",
      attempt: 2,
      artifact: { runId: second, artifacts: { a: { attempt: 2 } } },
    });
    expect(await look(first)).toMatchObject({ status: "FAILED", nodes: { a: { attempt: 1 } } });
  });

  test("starts a new run of the items if the list differs", async () => {
    const process = await chains.open();
    acts.set("0", (_ctx, { value }) =>
      value === 1 ? Promise.reject(new Error("not this item")) : { artifact: value },
    );
    const node = { type: "act", cfg: { value: "${item}" } }; // biome-ignore lint/suspicious/noTemplateCurlyInString: a template.
    const chainId = await define(process, [
      { id: "each", type: "map", cfg: { over: [ATTEMPT, "same"], node }, retry: RETRY },
    ]);
    const { runId } = await process.runs.start(chainId, BY);
    expect((await ended(runId)).nodes["each"]).toMatchObject({
      status: "SUCCESS",
      attempt: 2,
      artifact: { items: [2, null] },
    });
    expect(await childrenOf(runId)).toHaveLength(2);
  });

  test("continues that run if the request is the same", async () => {
    const process = await chains.open();
    acts.set("a", ({ attempt }) => (attempt === 1 ? Promise.reject(new Error("not yet")) : {}));
    const runId = await startParent(process, [{ id: "a" }, { id: "b" }], {
      cfg: { name: "child", params: { x: 1, y: { z: [2] } } },
      retry: RETRY,
    });
    expect((await ended(runId)).nodes["sub"]).toMatchObject({ status: "SUCCESS", attempt: 2 });
    const [child = "", ...others] = await childrenOf(runId);
    expect(others).toEqual([]);
    expect((await look(child)).nodes).toMatchObject({ a: { attempt: 2 }, b: { attempt: 1 } });
  });
});

describe("a chain with maxActiveRuns", () => {
  const runs = (name: string) => ({ id: "sub", type: "chain", cfg: { name }, retry: RETRY });
  const sentence = "chain `narrow` waits for this node, and its maxActiveRuns is 1: a further run might wait forever";

  test.each([
    ["runs itself", [runs("narrow")], 0],
    ["runs itself through another chain", [runs("between")], 1],
    [
      "runs itself for each item of a list",
      [{ id: "each", type: "map", cfg: { over: [1], node: { type: "chain", cfg: { name: "narrow" } } } }],
      1,
    ],
  ])("that %s fails with a reason instead of waiting forever", async (_what, nodes, depth) => {
    const process = await chains.open();
    const chainId = await define(process, [{ id: "a" }], { name: "narrow", maxActiveRuns: 1 });
    await define(process, [runs("narrow")], { name: "between" });
    const dagJson = { nodes: nodes.map((node) => ({ ...node })) };
    await process.definitions.update(chainId, { name: "narrow", dagJson, version: 1 }, ACTOR);
    const { runId } = await process.runs.start(chainId, BY);
    const run = await ended(runId);
    expect(run.status).toBe("FAILED");
    expect(run.reason).toContain(sentence);
    const [deepest] = await database.query("select max(depth) as depth from chains.job_run");
    expect(deepest).toEqual({ depth });
  });

  test("may be run twice by another, one after the other", async () => {
    const process = await chains.open();
    await define(process, [{ id: "a" }], { name: "narrow", maxActiveRuns: 1 });
    const chainId = await define(process, [runs("narrow"), { ...runs("narrow"), id: "other" }]);
    const { runId } = await process.runs.start(chainId, BY);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });
});
