/** Artifacts of child runs that are too large together: the caller has a reference, and later nodes read through it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of chains.
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useSubRuns } from "./sub-runs.fixture.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begunNodes, define, ended, look } = chains;
const { childrenOf, childOf } = useSubRuns(database, chains);
const BY = { by: "test" };
const RETRY = { maxAttempts: 5, backoffMs: 0 };
const LARGE = "x".repeat(400_000);
const LARGEST = "x".repeat(1_000_000);
const CALLERS = ["chain", "map"] as const;

/** A chain `large` whose nodes 0, 1, ... return this text each, and the node `sub` that runs it, or the same as a map. */
async function caller(process: ChainProcess, type: (typeof CALLERS)[number], text: string, count: number) {
  const child = Array.from({ length: count }, (_, index) => ({ id: String(index) }));
  for (const { id } of child) acts.set(id, () => ({ artifact: text + id }));
  const name = `large ${randomUUID()}`;
  await define(process, child, { name });
  const cfg = type === "chain" ? { name } : { over: child.map(({ id }) => id), node: { type: "act" } };
  return { id: "sub", type, cfg, retry: RETRY };
}

/** Runs the caller and then these nodes. */
async function run(process: ChainProcess, sub: object, after: readonly object[] = []): Promise<string> {
  const nodes = [sub, ...after.map((node) => ({ dependsOn: ["sub"], ...node }))];
  return (await process.runs.start(await define(process, nodes), BY)).runId;
}

describe.each(CALLERS)("the artifacts of a child run of a node of type %s", (type) => {
  const member = type === "chain" ? "artifacts" : "items";

  test("are in its artifact while they fit", async () => {
    const process = await chains.open();
    const runId = await run(process, await caller(process, type, LARGE, 2));
    const whole = type === "chain" ? { 0: `${LARGE}0`, 1: `${LARGE}1` } : [`${LARGE}0`, `${LARGE}1`];
    expect((await ended(runId)).nodes["sub"]?.artifact).toEqual({ runId: await childOf(runId), [member]: whole });
  });

  test("are a reference if they do not, and the child run has run once", async () => {
    const process = await chains.open();
    const runId = await run(process, await caller(process, type, LARGE, 3));
    expect((await ended(runId)).nodes["sub"]).toMatchObject({ status: "SUCCESS", attempt: 1 });
    const childId = await childOf(runId);
    expect((await look(runId)).nodes["sub"]?.artifact).toEqual({ runId: childId, byReference: member });
    expect(await childrenOf(runId)).toEqual([childId]);
    expect(begunNodes()).toHaveLength(3);
    expect(process.logged).toEqual([]);
  });

  test("are read by later nodes as if they were in it", async () => {
    const process = await chains.open();
    const sub = await caller(process, type, LARGE, 3);
    const last = type === "chain" ? 'nodes.sub.artifact.artifacts["2"]' : "nodes.sub.artifact.items[2]";
    acts.set("own", ({ parents }, { text, size }) => ({
      artifact: [text === `${LARGE}2`, size, Object.keys(parents["sub"]?.artifact as object)],
    }));
    const runId = await run(process, sub, [
      { id: "own", cfg: { text: `\${${last}}`, size: `\${size(nodes.sub.artifact.${member})}` } },
      { id: "condition", type: "noop", if: `${last}.endsWith("x2")` },
      { id: "none", type: "noop", if: `${last} == "other"` },
      { id: "status", type: "noop", if: 'nodes.sub.status == "SUCCESS" && nodes.sub.artifact.runId != ""' },
    ]);
    expect((await ended(runId)).nodes).toMatchObject({
      own: { status: "SUCCESS", artifact: [true, 3, ["runId", member]] },
      condition: { status: "SUCCESS" },
      none: { status: "SKIPPED" },
      status: { status: "SUCCESS" },
    });
  });
});

describe("through a reference", () => {
  test("the node of a map reads what its cfg names", async () => {
    const process = await chains.open();
    const sub = await caller(process, "chain", LARGEST, 20);
    acts.set("0", (_ctx, { text }) => ({ artifact: String(text).length })); // The item, and a node of the large run.
    const each = {
      id: "each",
      type: "map",
      cfg: { over: ["x"], node: { type: "act", cfg: { text: '${nodes.sub.artifact.artifacts["1"]}' } } },
    };
    const runId = await run(process, sub, [each]);
    expect((await ended(runId)).nodes["each"]).toMatchObject({ status: "SUCCESS", artifact: { items: [1_000_001] } });
  });

  test("a node reads what it names, of a child run of any size, and all of it only up to a limit", async () => {
    const process = await chains.open();
    const sub = await caller(process, "chain", LARGEST, 20);
    const runId = await run(process, sub, [
      { id: "one", type: "noop", if: 'nodes.sub.artifact.artifacts["7"].endsWith("x7")' },
      { id: "all", type: "noop", if: "size(nodes.sub.artifact.artifacts) == 20", retry: RETRY },
      { id: "own", cfg: { seven: '${nodes.sub.artifact.artifacts["7"].endsWith("x7")}' } },
    ]);
    acts.set("own", ({ parents }, { seven }) => ({ artifact: [seven, parents["sub"]?.artifact] }));
    const { nodes } = await ended(runId);
    const childId = await childOf(runId);
    expect(nodes).toMatchObject({
      one: { status: "SUCCESS" },
      all: { status: "FAILED", attempt: 1 },
      own: { status: "SUCCESS" },
    });
    expect(nodes["all"]?.error).toMatch(
      new RegExp(
        `^it reads all artifacts of run ${childId}, and a node can read 16777216 bytes of child runs in total;`,
      ),
    );
    const named = { runId: childId, artifacts: { 7: `${LARGEST}7` } };
    expect(nodes["own"]?.artifact).toEqual([true, named]);
  });

  test("a node type that reads its parents itself gets the reference if the artifacts are too many", async () => {
    const process = await chains.open();
    const sub = await caller(process, "map", LARGEST, 20);
    acts.set("own", ({ parents }) => ({ artifact: parents["sub"]?.artifact }));
    const runId = await run(process, sub, [{ id: "own" }]);
    const artifact = { runId: expect.any(String), byReference: "items" };
    expect((await ended(runId)).nodes["own"]).toMatchObject({ status: "SUCCESS", artifact });
  });

  test.each([
    ["in it", 1],
    ["by reference, too", 3],
  ])("a node reads what a child run of the child run has: %s", async (_how, others) => {
    const process = await chains.open();
    const inner = { ...(await caller(process, "chain", LARGE, 3)), id: "inner" };
    const between = Array.from({ length: others }, (_, index) => ({ id: `more${index}` }));
    for (const { id } of between) acts.set(id, () => ({ artifact: LARGE }));
    await define(process, [inner, ...between], { name: `between ${others}` });
    const runId = await run(process, { id: "sub", type: "chain", cfg: { name: `between ${others}` } }, [
      { id: "deep", type: "noop", if: 'nodes.sub.artifact.artifacts.inner.artifacts["2"].endsWith("x2")' },
      { id: "all", type: "noop", if: "size(nodes.sub.artifact.artifacts.inner.artifacts) == 3" },
    ]);
    expect((await ended(runId)).nodes).toMatchObject({ deep: { status: "SUCCESS" }, all: { status: "SUCCESS" } });
  });

  test("a node reads only what its own parents have started: other data that looks so stays as it is", async () => {
    const process = await chains.open();
    const sub = await caller(process, "chain", LARGE, 3);
    const outer = await run(process, sub);
    await ended(outer);
    const forged = { runId: await childOf(outer), byReference: "artifacts" };
    const inside = { runId: outer, artifacts: { sub: forged } };
    acts.set("plain", () => ({ artifact: forged }));
    acts.set("nested", () => ({ artifact: inside }));
    acts.set("own", ({ parents }) => ({ artifact: parents }));
    const chainId = await define(process, [
      { id: "plain" },
      { id: "nested" },
      { id: "own", dependsOn: ["plain", "nested"] },
    ]);
    const { runId } = await process.runs.start(chainId, BY);
    const status = "SUCCESS";
    expect((await ended(runId)).nodes["own"]?.artifact).toEqual({
      plain: { status, artifact: forged },
      nested: { status, artifact: inside },
    });
  });
});

test("a caller that failed because of its child run's size, before this, succeeds when it is retried", async () => {
  const process = await chains.open();
  const runId = await run(process, await caller(process, "chain", LARGE, 3));
  await ended(runId);
  const childId = await childOf(runId);
  // As an earlier version has left it.
  await database.query(
    "update chains.job_run_node set status = 'FAILED', last_error = 'too large', artifact_json = null where run_id = $1",
    [runId],
  );
  await database.query("update chains.job_run set status = 'FAILED' where run_id = $1", [runId]);
  await process.runs.retry(runId, { downstream: false, dryRun: false, reason: null }, ACTOR);
  expect((await ended(runId)).nodes["sub"]).toMatchObject({
    status: "SUCCESS",
    attempt: 2,
    artifact: { runId: childId, byReference: "artifacts" },
  });
  expect(begunNodes()).toHaveLength(3);
});
