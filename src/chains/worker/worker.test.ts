/** The worker on a real Postgres: what it claims and in which order, the input of its nodes, and how they end. */
import { describe, expect, test } from "vitest";
import { held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { FinalFailure } from "../types/node-type.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, define, ended, look } = chains;
const BY = { by: "test" };
const ids = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `n${index}` }));

describe("a worker", () => {
  test("never runs more nodes than it has slots, and fills each free slot", async () => {
    const process = await chains.open({ slots: 3 });
    const { act, begun: begin, release } = held();
    for (const { id } of ids(20)) acts.set(id, act);
    const chainId = await define(process, ids(20));
    const { runId } = await process.runs.start(chainId, BY);
    await begin(3);
    const other = await process.runs.start(chainId, BY);
    await until(async () => (await look(other.runId)).status === "RUNNING", "more work to be ready");
    for (let round = 0; round < 3; round += 1) await process.timers.runOnce(); // Each hints that nodes are ready.
    const [counted] = await database.query("select count(*)::int as n from chains.live_node where state = 'leased'");
    expect(counted).toEqual({ n: 3 });
    const released = performance.now();
    release();
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect((await ended(other.runId)).status).toBe("SUCCESS");
    expect(performance.now() - released).toBeLessThan(5_000);
    expect(process.mostAtOnce).toBe(3);
    expect(begun).toHaveLength(40);
  });

  test("runs nodes with smaller priority first", async () => {
    const process = await chains.open({ slots: 1, roles: ["scheduler"] });
    const chainId = await define(process, [{ id: "only" }]);
    const runIds: string[] = [];
    for (const priority of [5, -1, 0, 5, -10]) {
      const { runId } = await process.runs.start(chainId, { ...BY, priority });
      runIds.push(runId);
    }
    await until(
      async () => (await database.query("select from chains.live_node where state = 'ready'")).length === 5,
      "all five to be ready",
    );
    process.worker.start();
    await Promise.all(runIds.map(ended));
    const order = begun.map((key) => runIds.indexOf(key.split("/")[0] ?? ""));
    expect(order.slice(0, 3)).toEqual([4, 1, 2]);
    expect(new Set(order.slice(3))).toEqual(new Set([0, 3]));
  });

  test("prefers a run with a smaller priority over the next node of its current run", async () => {
    const process = await chains.open({ slots: 1 });
    const { act, begun: begin, release } = held();
    acts.set("a0", act);
    const long = Array.from({ length: 5 }, (_, index) => ({
      id: `a${index}`,
      dependsOn: index === 0 ? [] : [`a${index - 1}`],
    }));
    const { runId } = await process.runs.start(await define(process, long), BY);
    await begin();
    const urgent = await process.runs.start(await define(process, [{ id: "urgent" }]), { ...BY, priority: -1 });
    await until(async () => (await look(urgent.runId)).status === "RUNNING", "the urgent one to be admitted");
    release();
    await ended(runId);
    expect(chains.begunNodes()).toEqual(["a0", "urgent", "a1", "a2", "a3", "a4"]);
  });

  test("shares the nodes with another process, and no node runs in both", async () => {
    const processes = [await chains.open({ slots: 7 }), await chains.open({ slots: 7 })] as const;
    const [process] = processes;
    const layers = Array.from({ length: 120 }, (_, index) => ({
      id: `n${index}`,
      dependsOn: index < 20 ? [] : [`n${index - 20}`, `n${index - 1 - (index % 20)}`],
    }));
    const chainId = await define(process, layers);
    const runIds = await process.runs.startMany(chainId, [BY, BY, BY]);
    for (const runId of runIds) expect((await ended(runId)).status).toBe("SUCCESS");
    expect(begun).toHaveLength(360);
    expect(new Set(begun).size).toBe(360);
    expect(begun.every((key) => key.endsWith("/1"))).toBe(true);
    for (const { mostAtOnce } of processes) expect(mostAtOnce).toBeGreaterThan(0);
  });

  test("releases its nodes when it is stopped, and another process runs them", async () => {
    const first = await chains.open({ roles: ["scheduler", "worker"] });
    const { act, begun: begin } = held();
    acts.set("n0", act);
    const { runId } = await first.runs.start(await define(first, ids(1)), BY);
    await begin();
    acts.delete("n0");
    const second = await chains.open({ roles: ["worker"] });
    await first.worker.stop();
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { n0: { attempt: 2 } } });
    expect(second.mostAtOnce).toBe(1);
    const [kept] = await database.query("select attempt, status, error from chains.job_run_attempt");
    expect(kept).toEqual({ attempt: 1, status: "STOPPED", error: "its worker was shut down" });
  });
});

describe("a node", () => {
  test("can use params, opTime and its parents' artifacts in templates and its condition", async () => {
    const process = await chains.open();
    const seen: unknown[] = [];
    acts.set("extract", () => ({ artifact: { rows: 7, files: ["a", "b"] } }));
    acts.set("load", ({ parents, params, opTime }, cfg) => {
      seen.push(cfg, parents, params, opTime);
      return {};
    });
    const chainId = await define(process, [
      { id: "extract" },
      {
        id: "load",
        dependsOn: ["extract"],
        if: "nodes.extract.artifact.rows > 5",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: templates of chains.
        cfg: { rows: "${nodes.extract.artifact.rows}", text: "${params.table} of ${opTime}: ${node.attempt}" },
      },
      { id: "never", dependsOn: ["extract"], if: "nodes.extract.artifact.rows > 100" },
    ]);
    const { runId } = await process.runs.start(chainId, { ...BY, params: { table: "orders" }, opTime: "20250101" });
    const run = await ended(runId);
    expect(run).toMatchObject({ status: "SUCCESS", nodes: { never: { status: "SKIPPED", attempt: 0 } } });
    expect(run.nodes["never"]?.error).toContain("nodes.extract.artifact.rows > 100");
    expect(seen).toEqual([
      { rows: 7, text: "orders of 20250101: 1" },
      { extract: { status: "SUCCESS", artifact: { rows: 7, files: ["a", "b"] } } },
      { table: "orders" },
      "20250101",
    ]);
  });

  test("gets the checkpoint of its last attempt, whatever its result", async () => {
    const process = await chains.open();
    const found: unknown[] = [];
    acts.set("n0", async (ctx) => {
      found.push(ctx.checkpoint);
      await ctx.saveCheckpoint({ page: ctx.attempt * 10 });
      if (ctx.attempt < 3) throw new Error("not yet");
      return { checkpoint: { page: "the end" } };
    });
    const retry = { maxAttempts: 3, backoffMs: 0 };
    const { runId } = await process.runs.start(await define(process, [{ id: "n0", retry }]), BY);
    expect((await ended(runId)).status).toBe("SUCCESS");
    expect(found).toEqual([null, { page: 10 }, { page: 20 }]);
    const [kept] = await database.query("select checkpoint_json from chains.job_run_checkpoint where run_id = $1", [
      runId,
    ]);
    expect(kept).toEqual({ checkpoint_json: { page: "the end" } });
  });

  test("cannot save a checkpoint after another worker has claimed it", async () => {
    const first = await chains.open({ roles: ["worker"], slots: 1 });
    const { act, begun: begin, release } = held({ ignoresAbort: true });
    acts.set("n0", act);
    const scheduler = await chains.open({ roles: ["scheduler"] });
    await scheduler.runs.start(await define(scheduler, ids(1)), BY);
    await begin(1);
    await chains.open({ roles: ["worker"], slots: 1 });
    await first.expireSession();
    await scheduler.timers.runOnce();
    const [late, current] = await begin(2);
    await current?.saveCheckpoint({ page: 2 });
    await expect(late?.saveCheckpoint({ page: 1 })).rejects.toThrow("no longer held");
    expect(await database.query("select checkpoint_json from chains.job_run_checkpoint")).toEqual([
      { checkpoint_json: { page: 2 } },
    ]);
    release();
  });

  test("that fails is retried after its backoff, and every attempt is kept with error and times", async () => {
    const process = await chains.open();
    acts.set("n0", ({ attempt }) => {
      if (attempt < 3) throw new Error(`failure ${attempt}`);
      return { artifact: "done" };
    });
    const retry = { maxAttempts: 3, backoffMs: 150, factor: 2, jitter: 0 };
    const { runId } = await process.runs.start(await define(process, [{ id: "n0", retry }]), BY);
    expect(await ended(runId)).toMatchObject({
      status: "SUCCESS",
      reason: null,
      nodes: { n0: { status: "SUCCESS", attempt: 3, error: null, artifact: "done" } },
    });
    const attempts = await database.query<{ ended: Date; started: Date }>(
      `select attempt, status, error, started_at as started, ended_at as ended, worker is not null as worker
       from chains.job_run_attempt where run_id = $1
       union all select attempt, status, last_error, started_at, ended_at, worker is not null
       from chains.job_run_node where run_id = $1 order by attempt`,
      [runId],
    );
    const times = { started: expect.any(Date), ended: expect.any(Date), worker: true };
    expect(attempts).toEqual([
      { attempt: 1, status: "FAILED", error: "failure 1", ...times },
      { attempt: 2, status: "FAILED", error: "failure 2", ...times },
      { attempt: 3, status: "SUCCESS", error: null, ...times },
    ]);
    const [first, second, third] = attempts as [(typeof attempts)[0], (typeof attempts)[0], (typeof attempts)[0]];
    expect(second.started.getTime() - first.ended.getTime()).toBeGreaterThanOrEqual(150);
    expect(third.started.getTime() - second.ended.getTime()).toBeGreaterThanOrEqual(300);
  });

  test("is RETRYING while it waits for its next attempt, and holds no slot", async () => {
    const process = await chains.open({ slots: 1 });
    acts.set("n0", () => {
      throw new Error("not now");
    });
    const chainId = await define(process, [{ id: "n0", retry: { maxAttempts: 2, backoffMs: 60_000 } }]);
    const { runId } = await process.runs.start(chainId, BY);
    await until(async () => (await look(runId)).nodes["n0"]?.status === "RETRYING", "the node to wait");
    expect((await look(runId)).nodes["n0"]).toMatchObject({ attempt: 2, error: "not now" });
    const other = await process.runs.start(await define(process, [{ id: "n1" }]), BY);
    expect((await ended(other.runId)).status).toBe("SUCCESS");
  });

  test.each([
    ["a final failure", new FinalFailure("it was refused")],
    ["an error with `retry = false`", Object.assign(new Error("it was refused"), { retry: false })],
  ])("is not retried after %s", async (_what, error) => {
    const process = await chains.open();
    acts.set("n0", () => {
      throw error;
    });
    const chainId = await define(process, [{ id: "n0", retry: { maxAttempts: 5, backoffMs: 0 } }]);
    const { runId } = await process.runs.start(chainId, BY);
    expect(await ended(runId)).toMatchObject({
      status: "FAILED",
      reason: expect.stringContaining("node `n0` failed: it was refused"),
      nodes: { n0: { status: "FAILED", attempt: 1, error: expect.stringContaining("it was refused") } },
    });
    expect(begun).toHaveLength(1);
  });

  test("whose condition cannot be evaluated fails at once with the reason", async () => {
    const process = await chains.open();
    const retry = { maxAttempts: 5, backoffMs: 0 };
    const chainId = await define(process, [{ id: "n0", retry, if: "params.missing.deeper == 1" }]);
    const { runId } = await process.runs.start(chainId, BY);
    const run = await ended(runId);
    expect(run).toMatchObject({ status: "FAILED", nodes: { n0: { status: "FAILED", attempt: 1 } } });
    expect(run.nodes["n0"]?.error).toContain("missing");
  });

  test("that times out is aborted, and its attempt fails", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("n0", act);
    const chainId = await define(process, [{ id: "n0", timeoutMs: 50, retry: { maxAttempts: 2, backoffMs: 0 } }]);
    const { runId } = await process.runs.start(chainId, BY);
    const error = "it took longer than its 50 ms";
    expect(await ended(runId)).toMatchObject({ status: "FAILED", nodes: { n0: { attempt: 2, error } } });
    const contexts = await begin(2);
    expect(contexts.map(({ signal }) => (signal.reason as Error).message)).toEqual([error, error]);
  });

  test("whose worker was lost runs on another, and its late result is dropped", async () => {
    const first = await chains.open({ roles: ["worker"], slots: 1 });
    const gates = [held({ ignoresAbort: true }), held()] as const;
    acts.set("n0", async (ctx, cfg) => {
      await gates[ctx.attempt === 1 ? 0 : 1].act(ctx, cfg);
      return { artifact: ctx.attempt === 1 ? "late" : "in time" };
    });
    const scheduler = await chains.open({ roles: ["scheduler"] });
    const { runId } = await scheduler.runs.start(await define(scheduler, ids(1)), BY);
    await gates[0].begun();
    await chains.open({ roles: ["worker"], slots: 1 });
    await first.expireSession();
    await scheduler.timers.runOnce();
    await gates[1].begun();
    gates[0].release();
    await until(
      () => first.logged.some(({ message }) => message.includes("came too late")),
      "the late result to be dropped",
    );
    expect((await look(runId)).nodes["n0"]).toMatchObject({ status: "RUNNING", attempt: 2 });
    gates[1].release();
    expect(await ended(runId)).toMatchObject({ status: "SUCCESS", nodes: { n0: { attempt: 2, artifact: "in time" } } });
    const [kept] = await database.query("select attempt, status, error from chains.job_run_attempt");
    expect(kept).toEqual({ attempt: 1, status: "LOST", error: "its worker was lost" });
  });

  test("is FAILED after lostLimit lost workers in a row", async () => {
    const scheduler = await chains.open({ roles: ["scheduler"], lostLimit: 3 });
    acts.set("n0", held({ ignoresAbort: true }).act);
    const { runId } = await scheduler.runs.start(
      await define(scheduler, [{ id: "n0" }, { id: "n1", dependsOn: ["n0"] }]),
      BY,
    );
    for (const attempt of [1, 2, 3]) {
      const victim = await chains.open({ roles: ["worker"], slots: 1 });
      await until(() => begun.length === attempt, `attempt ${attempt}`);
      await victim.expireSession();
      await scheduler.timers.runOnce();
    }
    expect(await ended(runId)).toMatchObject({
      status: "FAILED",
      nodes: {
        n0: { status: "FAILED", attempt: 3, error: "3 workers in a row were lost" },
        n1: { status: "SKIPPED" },
      },
    });
  });
});
