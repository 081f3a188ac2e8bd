/** Time-outs, grace periods and delays; and an idle process that sends one statement every 20 s. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, begun, define, ended, look } = chains;
const BY = { by: "test" };
const retryAll = { downstream: false, dryRun: false, reason: null };

describe("a run that exceeds runTimeoutMs", () => {
  test("is FAILED with the reason, its open nodes are STOPPED, and a retry finishes it", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("slow", act);
    const chainId = await define(
      process,
      [{ id: "done" }, { id: "slow", dependsOn: ["done"] }, { id: "after", dependsOn: ["slow"] }],
      { runTimeoutMs: 300 },
    );
    const { runId } = await process.runs.start(chainId, BY);
    const [context] = await begin();
    const began = performance.now();
    expect(await ended(runId)).toMatchObject({
      status: "FAILED",
      reason: "the run took longer than its 300 ms",
      nodes: { done: { status: "SUCCESS" }, slow: { status: "STOPPED" }, after: { status: "STOPPED", attempt: 0 } },
    });
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(context?.signal.reason).toEqual(new Error("the run was stopped"));
    acts.delete("slow");
    await process.runs.retry(runId, retryAll, ACTOR);
    expect(await ended(runId)).toMatchObject({
      status: "SUCCESS",
      reason: null,
      nodes: {
        done: { attempt: 1 },
        slow: { status: "SUCCESS", attempt: 2 },
        after: { status: "SUCCESS", attempt: 1 },
      },
    });
  });

  test("times out again after a retry", async () => {
    const process = await chains.open();
    acts.set("n0", held().act);
    const { runId } = await process.runs.start(await define(process, [{ id: "n0" }], { runTimeoutMs: 300 }), BY);
    await ended(runId);
    await sleep(200); // Until the timers sleep with nothing due.
    const began = performance.now();
    await process.runs.retry(runId, retryAll, ACTOR);
    expect((await ended(runId)).nodes).toMatchObject({ n0: { status: "STOPPED", attempt: 2 } });
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  test("has its full time again when it is retried", async () => {
    const process = await chains.open({ roles: ["worker"] });
    acts.set("n0", () => {
      throw new Error("no");
    });
    const chainId = await define(process, [{ id: "n0" }], { runTimeoutMs: 60_000 });
    const { runId } = await process.runs.start(chainId, BY);
    await process.timers.runOnce();
    await ended(runId);
    const { act, begun: begin } = held();
    acts.set("n0", act);
    await process.runs.retry(runId, retryAll, ACTOR);
    await begin();
    const [live] = await database.query<{ seconds: number }>(
      "select extract(epoch from deadline_at - now())::float8 as seconds from chains.live_run",
    );
    expect(live?.seconds).toBeGreaterThan(55);
  });

  test("times out while another one with an older deadline is still STOPPING, without a busy loop", async () => {
    const process = await chains.open();
    const stubborn = held({ ignoresAbort: true });
    acts.set("stubborn", stubborn.act);
    acts.set("slow", held().act);
    const older = await process.runs.start(await define(process, [{ id: "stubborn" }], { runTimeoutMs: 100 }), BY);
    await until(async () => (await look(older.runId)).status === "STOPPING", "the first to be stopping");
    const began = performance.now();
    const { runId } = await process.runs.start(await define(process, [{ id: "slow" }], { runTimeoutMs: 1_000 }), BY);
    expect((await ended(runId)).status).toBe("FAILED");
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(process.statements.filter((name) => name === "chains.timers.look").length).toBeLessThan(40);
    stubborn.release();
  });
});

describe("a stop", () => {
  test("stops waiting nodes at once, and aborts running ones", async () => {
    const process = await chains.open();
    const { act, begun: begin } = held();
    acts.set("runs", act);
    const chainId = await define(process, [{ id: "runs" }, { id: "waits", dependsOn: ["runs"] }]);
    const { runId } = await process.runs.start(chainId, BY);
    const [context] = await begin();
    expect(await process.runs.stop(runId, ACTOR, { reason: "enough" })).toMatchObject({ status: "STOPPING" });
    expect((await look(runId)).nodes["waits"]?.status).toBe("STOPPED");
    expect(await ended(runId)).toMatchObject({
      status: "STOPPED",
      reason: "enough",
      nodes: { runs: { status: "STOPPED", error: "the run was stopped" }, waits: { status: "STOPPED" } },
    });
    expect(context?.signal.aborted).toBe(true);
  });

  test("stops a node after the grace period, and its late result changes nothing", async () => {
    const process = await chains.open({ stopGraceSeconds: 1 });
    const { act, begun: begin, release } = held({ ignoresAbort: true });
    acts.set("n0", act);
    const { runId } = await process.runs.start(await define(process, [{ id: "n0" }]), BY);
    await begin();
    const asked = performance.now();
    await process.runs.stop(runId, ACTOR);
    expect((await look(runId)).nodes["n0"]?.status).toBe("RUNNING");
    const run = await ended(runId);
    expect(performance.now() - asked).toBeGreaterThan(900);
    expect(run).toMatchObject({
      status: "STOPPED",
      nodes: { n0: { status: "STOPPED", error: "did not stop within the grace period" } },
    });
    release();
    await process.worker.stop(); // Waits until the node has ended.
    expect(await look(runId)).toEqual(run);
    expect(begun).toHaveLength(1);
  });

  test("of a PENDING run makes it STOPPED at once", async () => {
    const process = await chains.open({ roles: [] });
    const [runId = ""] = await process.runs.startMany(await define(process, [{ id: "n0" }]), [BY]);
    expect(await process.runs.stop(runId, ACTOR)).toMatchObject({ status: "STOPPED" });
    expect(await process.timers.runOnce()).toMatchObject({ admitted: 0 });
    expect(await look(runId)).toMatchObject({ status: "STOPPED", nodes: { n0: { status: "STOPPED" } } });
  });

  test("whose process died is finished when the grace period is over", async () => {
    const process = await chains.open({ roles: [], stopGraceSeconds: 0 });
    const { runId } = await process.runs.start(await define(process, [{ id: "n0" }]), BY);
    await process.timers.runOnce();
    await database.query("update chains.live_run set status = 'STOPPING', grace_at = now() where run_id = $1", [runId]);
    await database.query("update chains.job_run set status = 'STOPPING' where run_id = $1", [runId]);
    expect(await process.timers.runOnce()).toMatchObject({ given_up: 1 });
    expect((await look(runId)).status).toBe("STOPPED");
  });
});

describe("delayed nodes", () => {
  test("become ready one after the other, each when it is due", async () => {
    const process = await chains.open();
    const began = new Map<string, number>();
    for (const id of ["soon", "later"]) {
      acts.set(id, ({ attempt }) => {
        if (attempt === 1) throw new Error("not yet");
        began.set(id, performance.now());
        return {};
      });
    }
    const hold = held();
    acts.set("hold", hold.act); // The run continues, so only due times wake the timers.
    const retry = (backoffMs: number) => ({ maxAttempts: 2, backoffMs, jitter: 0 });
    const chainId = await define(process, [
      { id: "soon", retry: retry(200) },
      { id: "later", retry: retry(700) },
      { id: "hold" },
    ]);
    const { runId } = await process.runs.start(chainId, BY);
    await until(() => began.size === 2, "both to run again");
    expect((began.get("later") ?? 0) - (began.get("soon") ?? 0)).toBeLessThan(3_000);
    hold.release();
    expect((await ended(runId)).status).toBe("SUCCESS");
  });

  test("do not run before they are due", async () => {
    const process = await chains.open({ roles: ["worker"] });
    const nodes = ["n0", "n1"].map((id) => ({ id, retry: { maxAttempts: 2, backoffMs: 60_000 } }));
    for (const { id } of nodes) acts.set(id, () => Promise.reject(new Error("no")));
    const { runId } = await process.runs.start(await define(process, nodes), BY);
    await process.timers.runOnce();
    await until(async () => {
      const { n0, n1 } = (await look(runId)).nodes;
      return n0?.status === "RETRYING" && n1?.status === "RETRYING";
    }, "the first attempts to fail");
    expect(await process.timers.runOnce()).toMatchObject({ released: 0 });
    await database.query("update chains.live_node set due_at = now() where node_id = 'n0'");
    expect(await process.timers.runOnce()).toMatchObject({ released: 1 });
    await until(async () => (await look(runId)).nodes["n0"]?.status === "FAILED", "the last attempt");
    expect((await look(runId)).nodes).toMatchObject({ n0: { attempt: 2 }, n1: { status: "RETRYING" } });
  });
});

describe("an idle process", () => {
  const WATCH_SECONDS = 21;

  test("sends one statement every twenty seconds", async () => {
    const process = await chains.open();
    const { runId } = await process.runs.start(await define(process, [{ id: "n0" }]), BY);
    await ended(runId);
    // The work that follows the end of the run must be done.
    await until(async () => {
      const sent = process.statements.length;
      await sleep(1_000);
      return process.statements.length === sent;
    }, "no statements for a second");
    const before = process.statements.length;
    await sleep(WATCH_SECONDS * 1000); // The test measures this pause.
    const sent = process.statements.slice(before);
    expect(sent).toContain("chains.timers.look");
    expect(sent.filter((name) => name !== "chains.timers.look")).toEqual([]);
    expect(sent.length).toBeLessThanOrEqual(2);
  });
});
