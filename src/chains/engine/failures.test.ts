/** The reason of a run that failed: the same in its row, for the alert and in the log, which has one line for each failure. */
import { describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import type { EndedRun } from "./notify.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, ended, look } = chains;
const BY = { by: "test" };
const again = { downstream: false, dryRun: false, reason: null };
const fails = (message: string) => () => {
  throw new Error(message);
};

interface Told {
  process: ChainProcess;
  /** The runs that listeners were told of, as the alert is. */
  told: EndedRun[];
}

async function open(options: Parameters<typeof chains.open>[0] = {}): Promise<Told> {
  const process = await chains.open(options);
  const told: EndedRun[] = [];
  process.onRunsEnded({
    statuses: new Set(["FAILED", "STOPPED"]),
    onRunsEnded: async (_tx, runs) => void told.push(...runs),
  });
  return { process, told };
}

async function start({ process }: Told, nodes: readonly object[], options: object = {}): Promise<string> {
  return (await process.runs.start(await define(process, nodes, options), BY)).runId;
}

const failureOf = async (runId: string, nodeId: string) =>
  until(async () => (await look(runId)).nodes[nodeId]?.status === "FAILED", `node ${nodeId} to fail`);

/** A run whose nodes a and b have failed, in this order, while c still runs. */
async function failedTwice(opened: Told, options: object = {}) {
  const [first, second, last] = [held(), held(), held()];
  acts.set("a", async (ctx, cfg) => (await first.act(ctx, cfg), fails("first")()));
  acts.set("b", async (ctx, cfg) => (await second.act(ctx, cfg), fails("second")()));
  acts.set("c", last.act);
  // In the definition the other way round, so that its order does not decide.
  const runId = await start(opened, [{ id: "c" }, { id: "b" }, { id: "a" }], options);
  await Promise.all([first.begun(), second.begun(), last.begun()]);
  first.release();
  await failureOf(runId, "a");
  second.release();
  await failureOf(runId, "b");
  return { runId, release: last.release };
}

describe("the reason of a run that ends badly is stored and told alike:", () => {
  test("of nodes that failed one after the other, the first, also if a later end is a success", async () => {
    const opened = await open();
    const { runId, release } = await failedTwice(opened);
    expect((await look(runId)).reason).toBe("node `a` failed: first");
    release();
    expect(await ended(runId)).toMatchObject({ status: "FAILED", reason: "node `a` failed: first" });
    expect(opened.told).toMatchObject([{ runId, status: "FAILED", reason: "node `a` failed: first" }]);
  });

  test("of nodes that failed, the first that is still failed, when the others were completed by hand", async () => {
    const opened = await open();
    const { runId, release } = await failedTwice(opened);
    release();
    await ended(runId);
    await opened.process.runs.complete(runId, { nodeId: "a", artifact: null, reason: null }, ACTOR);
    expect(await look(runId)).toMatchObject({ status: "FAILED", reason: "node `b` failed: second" });
    expect(opened.told, "it has not failed again").toHaveLength(1);
  });

  test("of nodes that failed, the first that is still failed, when the others ran again", async () => {
    const opened = await open();
    const { runId, release } = await failedTwice(opened);
    acts.delete("a");
    await opened.process.runs.retry(runId, { ...again, nodeId: "a" }, ACTOR);
    expect((await look(runId)).reason).toBe("node `b` failed: second");
    release();
    await ended(runId);
    expect(opened.told).toMatchObject([{ status: "FAILED", reason: "node `b` failed: second" }]);
  });

  test("the time-out, whatever failed before it", async () => {
    const opened = await open();
    const { runId } = await failedTwice(opened, { runTimeoutMs: 2_000 });
    const reason = "the run took longer than its 2000 ms";
    expect(await ended(runId)).toMatchObject({ status: "FAILED", reason });
    expect(opened.told).toMatchObject([{ status: "FAILED", reason }]);
  });

  test("the failed node, when a stop came too late to stop anything", async () => {
    const opened = await open();
    acts.set("bad", fails("no"));
    const { act, begun, release } = held({ ignoresAbort: true });
    acts.set("c", act);
    const runId = await start(opened, [{ id: "bad" }, { id: "c" }]);
    await begun();
    await failureOf(runId, "bad");
    await opened.process.runs.stop(runId, ACTOR);
    release();
    expect(await ended(runId)).toMatchObject({ status: "FAILED", reason: "node `bad` failed: no" });
    expect(opened.told).toMatchObject([{ status: "FAILED", reason: "node `bad` failed: no" }]);
  });

  test("the failed node with its error, when the run was stopped and resumed", async () => {
    const opened = await open();
    acts.set("bad", fails("no"));
    const { act, begun } = held();
    acts.set("c", act);
    const runId = await start(opened, [{ id: "bad" }, { id: "c" }]);
    await begun();
    await failureOf(runId, "bad");
    await opened.process.runs.stop(runId, ACTOR);
    await ended(runId);
    acts.delete("c");
    await opened.process.runs.resume(runId, ACTOR);
    expect(await ended(runId)).toMatchObject({ status: "FAILED", reason: "node `bad` failed: no" });
    expect(opened.told.map(({ reason }) => reason)).toEqual(["stopped by test", "node `bad` failed: no"]);
  });

  test("the nodes that stayed STOPPED", async () => {
    const opened = await open();
    const { act, begun } = held();
    for (const id of ["a", "b"]) acts.set(id, act);
    const runId = await start(opened, [{ id: "a" }, { id: "b" }]);
    await begun(2);
    await opened.process.runs.stop(runId, ACTOR);
    await ended(runId);
    acts.clear();
    await opened.process.runs.retry(runId, { ...again, nodeId: "a" }, ACTOR);
    const reason = "nodes that are still STOPPED: 1";
    expect(await ended(runId)).toMatchObject({ status: "STOPPED", reason });
    expect(opened.told.at(-1)).toMatchObject({ status: "STOPPED", reason });
  });

  test("the lost workers", async () => {
    const opened = await open({ roles: ["scheduler"], lostLimit: 1 });
    const lost = await open({ roles: ["worker"] });
    acts.set("a", held({ ignoresAbort: true }).act);
    const runId = await start(lost, [{ id: "a" }]);
    await until(async () => (await look(runId)).nodes["a"]?.status === "RUNNING", "the node to run");
    await lost.process.expireSession();
    await opened.process.timers.runOnce();
    expect(await ended(runId)).toMatchObject({ status: "FAILED", reason: "node `a` failed: its worker was lost" });
    expect(opened.told).toMatchObject([{ reason: "node `a` failed: its worker was lost" }]);
  });
});

describe("the log", () => {
  const warnings = ({ process }: Told) => process.logged.filter(({ level }) => level !== "info");

  test("has one line for each node and each run that failed, and none for attempts that are retried", async () => {
    const opened = await open();
    acts.set("a", fails("no luck"));
    acts.set("b", ({ attempt }) => (attempt === 1 ? fails("not yet")() : {}));
    const runId = await start(opened, [
      { id: "a", retry: { maxAttempts: 3, backoffMs: 0 } },
      { id: "b", retry: { maxAttempts: 2, backoffMs: 0 } },
      { id: "skipped", dependsOn: ["a"] },
    ]);
    await ended(runId);
    const run = { runId, chain: expect.stringContaining("chain"), opTime: null, parentRunId: null };
    expect(warnings(opened)).toMatchObject([
      { level: "warn", message: "a node failed", fields: { ...run, nodeId: "a", attempt: 3, reason: "no luck" } },
      { level: "warn", message: "a run failed", fields: { ...run, reason: "node `a` failed: no luck" } },
    ]);
  });

  test("has a line for the failures of a child run and for those of its parent run", async () => {
    const opened = await open();
    acts.set("a", fails("no"));
    await define(opened.process, [{ id: "a" }], { name: "child" });
    const runId = await start(opened, [{ id: "sub", type: "chain", cfg: { name: "child" } }]);
    await ended(runId);
    const lines = warnings(opened).map(({ message, fields }) => [message, fields["nodeId"], fields["parentRunId"]]);
    expect(lines).toEqual([
      ["a node failed", "a", runId],
      ["a run failed", undefined, runId],
      ["a node failed", "sub", null],
      ["a run failed", undefined, null],
    ]);
  });

  test("has no line for a run that stays FAILED, and another one if it fails again", async () => {
    const opened = await open();
    acts.set("a", fails("no"));
    acts.set("b", fails("no"));
    const runId = await start(opened, [{ id: "a" }, { id: "b" }]);
    await ended(runId);
    expect(warnings(opened)).toHaveLength(3);
    await opened.process.runs.complete(runId, { nodeId: "a", artifact: null, reason: null }, ACTOR);
    expect(warnings(opened)).toHaveLength(3);
    await opened.process.runs.retry(runId, again, ACTOR);
    await until(() => warnings(opened).length === 5, "two more lines");
  });

  test("has the start of a long error", async () => {
    const opened = await open();
    acts.set("a", fails("x".repeat(5_000)));
    await ended(await start(opened, [{ id: "a" }]));
    const lengths = warnings(opened).map(({ fields }) => String(fields["reason"]).length);
    expect(lengths).toEqual([1_000, 1_000]);
  });
});
