/** Nodes that wait for a child run: of another chain (`chain`) or of the items of a list (`map`). */
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useSubRuns } from "./sub-runs.fixture.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, begunNodes, define, ended, look } = chains;
const { childrenOf, childOf, startParent } = useSubRuns(database, chains);
const BY = { by: "test" };
const again = { downstream: false, dryRun: false, reason: null };
const fails = (message: string) => () => {
  throw new Error(message);
};

describe("a chain node", () => {
  test("starts the chain with its params and opTime, and returns the artifacts of its nodes", async () => {
    const process = await chains.open();
    const seen: unknown[] = [];
    acts.set("a", ({ params, opTime }) => {
      seen.push(params, opTime);
      return { artifact: { rows: 3 } };
    });
    const cfg = {
      name: "child",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of chains.
      params: { day: "${params.day}" },
    };
    const runId = await startParent(
      process,
      [{ id: "a" }, { id: "b", dependsOn: ["a"] }],
      { cfg },
      { params: { day: "monday" }, opTime: "20250101", priority: 3 },
    );
    const run = await ended(runId);
    const childId = await childOf(runId);
    expect(run).toMatchObject({
      status: "SUCCESS",
      nodes: { sub: { attempt: 1, artifact: { runId: childId, artifacts: { a: { rows: 3 } } } } },
    });
    expect(seen).toEqual([{ day: "monday" }, "20250101"]);
    const [child] = await database.query(
      "select trigger, priority, depth, job_name from chains.job_run where run_id = $1",
      [childId],
    );
    expect(child).toEqual({ trigger: "chain", priority: 3, depth: 1, job_name: "child" });
  });

  test("holds no slot while it waits", async () => {
    const process = await chains.open({ slots: 1 });
    const runId = await startParent(process, [{ id: "a" }]);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("fails with its child run; a retry continues the same run, and only runs what failed", async () => {
    const process = await chains.open();
    acts.set("bad", fails("no luck"));
    const runId = await startParent(process, [{ id: "good" }, { id: "bad" }, { id: "last", dependsOn: ["bad"] }]);
    const run = await ended(runId);
    const childId = await childOf(runId);
    expect(run).toMatchObject({
      status: "FAILED",
      nodes: {
        sub: { status: "FAILED", error: `run ${childId} ended with FAILED: node \`bad\` failed: no luck` },
        after: { status: "SKIPPED" },
      },
    });
    acts.delete("bad");
    begun.length = 0;
    await process.runs.retry(runId, again, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 2 } } });
    expect(await childrenOf(runId)).toEqual([childId]);
    expect(begunNodes()).toEqual(["bad", "last", "after"]);
    expect(await look(childId)).toMatchObject({
      status: "SUCCESS",
      nodes: { good: { attempt: 1 }, bad: { attempt: 2 } },
    });
  });

  test("is retried automatically as often as its retry policy says", async () => {
    const process = await chains.open();
    acts.set("a", ({ attempt }) => (attempt < 3 ? fails("not yet")() : {}));
    const runId = await startParent(process, [{ id: "a" }], { retry: { maxAttempts: 3, backoffMs: 1 } });
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { sub: { attempt: 3 } } });
    expect(await childrenOf(runId)).toHaveLength(1);
  });

  test.each([
    ["is unknown", { cfg: { name: "${'unknown'}" } }, "there is no chain named `unknown`"],
    ["is disabled", { cfg: { name: "disabled" } }, "chain `disabled` is disabled"],
    [
      "waits for tables, without an opTime",
      { cfg: { name: "tables" } },
      "chain `tables` waits for tables and needs an opTime",
    ],
  ])("fails at once when the chain %s", async (_what, sub, error) => {
    const process = await chains.open();
    await define(process, [{ id: "a" }], { name: "disabled", enabled: false });
    await define(process, [{ id: "a", waitsFor: ["T"] }], { name: "tables" });
    const runId = await startParent(process, [{ id: "a" }], { ...sub, retry: { maxAttempts: 5, backoffMs: 0 } });
    expect(await ended(runId)).toMatchObject({
      status: "FAILED",
      nodes: { sub: { attempt: 1, error: expect.stringContaining(error) } },
    });
    expect(await childrenOf(runId)).toEqual([]);
  });

  test("that runs its own chain ends at the nesting limit", async () => {
    const process = await chains.open();
    const chainId = await define(process, [{ id: "sub", type: "chain", cfg: { name: "itself" } }], { name: "itself" });
    const { runId } = await process.runs.start(chainId, BY);
    const run = await ended(runId);
    expect(run.status).toBe("FAILED");
    expect(run.nodes["sub"]?.error).toContain("runs are nested more than 10 deep");
    const [{ depth } = { depth: 0 }] = await database.query<{ depth: number }>(
      "select max(depth) as depth from chains.job_run",
    );
    expect(depth).toBe(10);
  });

  test("is reported the end of its child run by the timers if no process did", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const { act, begun: begin } = held();
    acts.set("a", act);
    const runId = await startParent(process, [{ id: "a" }]);
    await process.timers.runOnce();
    const childId = await childOf(runId);
    await process.timers.runOnce();
    await begin();
    // As if the process had died between the end of the child run and the report to its parent.
    await database.query(`with run as (
        update chains.job_run set status = 'SUCCESS', ended_at = now() where parent_run_id is not null returning run_id
      ), node as (
        update chains.job_run_node set status = 'SUCCESS', ended_at = now() where run_id in (select run_id from run)
      ), live as (delete from chains.live_node where run_id in (select run_id from run))
      delete from chains.live_run where run_id in (select run_id from run)`);
    expect(await process.timers.runOnce()).toMatchObject({ children_reported: 1 });
    expect(await ended(runId)).toMatchObject({
      status: "SUCCESS",
      nodes: { sub: { artifact: { runId: childId, artifacts: {} } } },
    });
  });
});

describe("a stop of a run whose node waits for a child run", () => {
  test("stops the child run as well, and the node is STOPPED", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("a", act);
    const runId = await startParent(process, [{ id: "a" }]);
    const [context] = await begin();
    expect(await process.runs.stop(runId, ACTOR)).toMatchObject({ status: "STOPPING" });
    const run = await ended(runId);
    expect(run).toMatchObject({
      status: "STOPPED",
      nodes: { sub: { status: "STOPPED" }, after: { status: "STOPPED" } },
    });
    expect(context?.signal.aborted).toBe(true);
    expect(await look(await childOf(runId))).toMatchObject({
      status: "STOPPED",
      reason: "no node waits for it anymore",
    });
  });

  test("stops all nested child runs", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("deepest", act);
    await define(process, [{ id: "deepest" }], { name: "grandchild" });
    const runId = await startParent(process, [{ id: "middle", type: "chain", cfg: { name: "grandchild" } }]);
    await begin();
    await process.runs.stop(runId, ACTOR);
    expect((await ended(runId)).status).toBe("STOPPED");
    const rows = await database.query("select status from chains.job_run");
    expect(rows).toEqual([{ status: "STOPPED" }, { status: "STOPPED" }, { status: "STOPPED" }]);
  });

  test("is completed by the timers if the process died in between, even after the grace period", async () => {
    const process = await chains.open({ stopGraceSeconds: 1 });
    const { act, begun: begin } = held();
    acts.set("a", act);
    const runId = await startParent(process, [{ id: "a" }]);
    await begin();
    await process.timers.stop();
    await process.runs.stop(runId, ACTOR);
    expect((await look(runId)).nodes["sub"]?.status).toBe("RUNNING");
    await database.query("update chains.live_run set grace_at = now() where grace_at is not null");
    const other = await chains.open({ roles: ["scheduler"] });
    expect((await ended(runId)).status).toBe("STOPPED");
    expect((await ended(await childOf(runId))).status).toBe("STOPPED");
    expect(other.logged).toEqual([]);
  });

  test("can be resumed, and its child run continues", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("a", act);
    const runId = await startParent(process, [{ id: "a" }]);
    await begin();
    await process.runs.stop(runId, ACTOR);
    await ended(runId);
    acts.delete("a");
    await process.runs.resume(runId, ACTOR);
    expect((await ended(runId)).status).toBe("SUCCESS");
    const [childId, ...others] = await childrenOf(runId);
    expect(others).toEqual([]);
    expect(await look(childId ?? "")).toMatchObject({ status: "SUCCESS", nodes: { a: { attempt: 2 } } });
  });
});

describe("a map node", () => {
  const mapOver = async (
    process: ChainProcess,
    over: unknown,
    { node = {}, ...cfg }: Record<string, object | number> = {},
  ) => {
    const item = {
      type: "act",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: templates of chains.
      cfg: { value: "${item}", at: "${index}" },
      ...(node as object),
    };
    const chainId = await define(process, [{ id: "each", type: "map", cfg: { over, ...cfg, node: item } }]);
    return (await process.runs.start(chainId, { ...BY, params: { list: ["x", "y"] } })).runId;
  };
  const actForAll = (count: number, act: Parameters<typeof acts.set>[1]) => {
    for (let index = 0; index < count; index += 1) acts.set(String(index), act);
  };

  test("runs its node for each item and returns the artifacts in the order of the list", async () => {
    const process = await chains.open();
    actForAll(30, (_ctx, { value, at }) => ({ artifact: [at, value] }));
    const list = Array.from({ length: 30 }, (_, index) => `item ${index}`);
    const runId = await mapOver(process, list);
    const run = await ended(runId);
    expect(run.nodes["each"]).toMatchObject({
      status: "SUCCESS",
      artifact: { items: list.map((item, index) => [index, item]) },
    });
  });

  test("takes its list from a template", async () => {
    const process = await chains.open();
    actForAll(2, (_ctx, { value }) => ({ artifact: value }));
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of chains.
    const runId = await mapOver(process, "${params.list}");
    expect((await ended(runId)).nodes["each"]?.artifact).toMatchObject({ items: ["x", "y"] });
  });

  test("runs at most maxParallel items at a time", async () => {
    const process = await chains.open();
    const { act, begun: begin, release } = held();
    actForAll(12, act);
    const runId = await mapOver(
      process,
      Array.from({ length: 12 }, (_, index) => index),
      { maxParallel: 3 },
    );
    await begin(3);
    expect((await database.query("select from chains.live_node where state = 'leased'")).length).toBe(3);
    release();
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(process.mostAtOnce).toBe(3);
    expect(begun).toHaveLength(12);
  });

  test("is FAILED when one item fails, after the others have ended; a retry only runs that one", async () => {
    const process = await chains.open();
    actForAll(6, ({ nodeId }) => ({ artifact: nodeId }));
    acts.set("2", fails("item 2 is odd"));
    const runId = await mapOver(process, ["a", "b", "c", "d", "e", "f"], { maxParallel: 2 });
    const run = await ended(runId);
    expect(run.status).toBe("FAILED");
    expect(run.nodes["each"]?.error).toContain("node `2` failed: item 2 is odd");
    expect([...begunNodes()].sort()).toEqual(["0", "1", "2", "3", "4", "5"]);
    acts.set("2", () => ({ artifact: "now" }));
    begun.length = 0;
    await process.runs.retry(runId, again, ACTOR);
    expect((await ended(runId)).nodes["each"]).toMatchObject({
      status: "SUCCESS",
      attempt: 2,
      artifact: { items: ["0", "1", "now", "3", "4", "5"] },
    });
    expect(begunNodes()).toEqual(["2"]);
  });

  test("of an empty list succeeds with no items", async () => {
    const process = await chains.open();
    const runId = await mapOver(process, []);
    expect((await ended(runId)).nodes["each"]).toMatchObject({ status: "SUCCESS", artifact: { items: [] } });
    expect(await childrenOf(runId)).toEqual([]);
  });

  test("treats an item as data, even if it looks like a template", async () => {
    const process = await chains.open();
    actForAll(3, (_ctx, { value }) => ({ artifact: value }));
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: that is what it is about.
    const items = ["${params.secret}", "$${opTime} $$ $", { deep: ["${1 + 1}"] }];
    const chainId = await define(process, [
      { id: "list" },
      {
        id: "each",
        type: "map",
        dependsOn: ["list"],
        cfg: { over: "${nodes.list.artifact}", node: { type: "act", cfg: { value: "${item}" } } },
      },
    ]);
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: that is what it is about.
    acts.set("list", () => ({ artifact: items }));
    const { runId } = await process.runs.start(chainId, { ...BY, params: { secret: "leaked" } });
    expect((await ended(runId)).nodes["each"]).toMatchObject({ status: "SUCCESS", artifact: { items } });
  });

  test("applies the pool and retry policy of its node to each item", async () => {
    const process = await chains.open();
    await database.query("insert into chains.pool (name, size) values ('narrow', 1)");
    actForAll(4, ({ attempt }) => (attempt === 1 ? fails("first")() : {}));
    const runId = await mapOver(process, [1, 2, 3, 4], {
      node: { pool: "narrow", retry: { maxAttempts: 2, backoffMs: 1 } },
    });
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(process.mostAtOnce).toBe(1);
    expect(begun).toHaveLength(8);
  });
});
