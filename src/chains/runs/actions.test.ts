/** Stop, resume, retry and complete: from every state, with their effects and the audit log. */
import { beforeAll, describe, expect, test } from "vitest";
import { fails, holds, refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import type { NodeDef } from "../definitions/dag.ts";
import type { NodeStatus, RunStatus } from "../engine/states.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);
const post = <Body = Json>(path: string, body?: unknown) => chains.api.post<Body>(`/api/v1${path}`, body);
const statusOf = async (runId: string) => (await get(`/runs/${runId}`)).body["status"];

/** The audit log of a run or a node, oldest first. */
async function audited(target: string): Promise<{ action: string; details: Json }[]> {
  return database.query("select action, details from kernel.audit_log where target = $1 order by id", [target]);
}

/** A node that fails until the test calls `fix`. */
function fixable(id: string, fields: Partial<NodeDef> = {}) {
  const state = { fixed: false };
  const node = scripted(
    id,
    () => {
      if (!state.fixed) throw new Error("not fixed yet");
      return { artifact: "fixed" };
    },
    fields,
  );
  return { node, fix: () => Object.assign(state, { fixed: true }) };
}

/** Everything that the API shows of a run, to compare. */
async function snapshot(runId: string) {
  const [run, nodes, events] = await Promise.all([
    get(`/runs/${runId}`),
    get(`/runs/${runId}/nodes`),
    get(`/runs/${runId}/events`),
  ]);
  return [run.body, nodes.body, events.body, await audited(runId)];
}

describe("a run in any state", () => {
  /** Keeps the nodes of these runs from ending. */
  const gate = signal();
  const runs = {} as Record<RunStatus, string>;

  beforeAll(async () => {
    const ignoresAbort = scripted("work", async () => ({ artifact: await gate.promise }));
    const one = await chains.define([ignoresAbort], { maxActiveRuns: 1 });
    runs.RUNNING = await chains.start(one);
    await chains.nodeReaches(runs.RUNNING, "work", "RUNNING");
    runs.PENDING = await chains.start(one);
    runs.STOPPING = await chains.run([ignoresAbort]);
    await chains.nodeReaches(runs.STOPPING, "work", "RUNNING");
    await post(`/runs/${runs.STOPPING}:stop`);
    runs.STOPPED = await chains.run([scripted("work", holds)]);
    await chains.nodeReaches(runs.STOPPED, "work", "RUNNING");
    await post(`/runs/${runs.STOPPED}:stop`);
    runs.SUCCESS = await chains.run([{ id: "work", type: "noop" }]);
    runs.FAILED = await chains.run([scripted("work", fails)]);
    for (const [status, runId] of Object.entries(runs)) await chains.reaches(runId, status as RunStatus);
    return () => gate.resolve();
  });

  test.each([
    ["stop", ["SUCCESS", "FAILED"]],
    ["resume", ["PENDING", "RUNNING", "STOPPING", "SUCCESS", "FAILED"]],
    ["retry", ["PENDING", "RUNNING", "STOPPING", "SUCCESS"]],
    ["retry?dryRun=true", ["PENDING", "RUNNING", "STOPPING", "SUCCESS"]],
  ] as [string, RunStatus[]][])("refuses to %s in a wrong state", async (action, wrong) => {
    for (const status of wrong) {
      const before = await snapshot(runs[status]);
      const answer = await post(`/runs/${runs[status]}:${action}`);
      expect(refusal(answer), status).toEqual([409, "RUN_WRONG_STATE"]);
      expect(answer.body["details"]).toEqual({ runId: runs[status], status });
      expect(await snapshot(runs[status])).toEqual(before);
    }
  });

  test.each(["STOPPING", "STOPPED"] as const)(
    "that is %s may be stopped again, which changes nothing",
    async (status) => {
      const before = await snapshot(runs[status]);
      expect(await post(`/runs/${runs[status]}:stop`, { reason: "again" })).toMatchObject({
        status: 200,
        body: { runId: runs[status], status },
      });
      expect(await snapshot(runs[status])).toEqual(before);
    },
  );

  test("that is STOPPING refuses to retry a node, but can complete one", async () => {
    expect(refusal(await post(`/runs/${runs.STOPPING}/nodes/work:retry`))).toEqual([409, "NODE_WRONG_STATE"]);
    expect(await post(`/runs/${runs.STOPPING}/nodes/work:complete`)).toMatchObject({
      status: 200,
      body: { nodeId: "work", status: "SUCCESS" },
    });
    await chains.reaches(runs.STOPPING, "SUCCESS");
  });

  test("that is PENDING can be stopped at once", async () => {
    expect((await post(`/runs/${runs.PENDING}:stop`)).body["status"]).toBe("STOPPED");
    expect(await chains.node(runs.PENDING, "work")).toMatchObject({ status: "STOPPED", attempt: 0 });
  });

  test("that is STOPPED can be resumed only when its chain has room", async () => {
    await post(`/runs/${runs.PENDING}:stop`);
    for (const action of ["resume", "retry"]) {
      for (const query of ["", "?dryRun=true"]) {
        expect(refusal(await post(`/runs/${runs.PENDING}:${action}${query}`))).toEqual([409, "CHAIN_FULL"]);
      }
    }
    expect(await statusOf(runs.PENDING)).toBe("STOPPED");
    await post(`/runs/${runs.RUNNING}/nodes/work:complete`);
    await chains.reaches(runs.RUNNING, "SUCCESS");
    expect((await post(`/runs/${runs.PENDING}:resume`)).status).toBe(200);
    await chains.nodeReaches(runs.PENDING, "work", "RUNNING");
  });
});

describe("a node in any state", () => {
  const nodeIds: Record<Exclude<NodeStatus, "STOPPED">, string> = {
    SUCCESS: "good",
    FAILED: "bad",
    SKIPPED: "after-bad",
    RUNNING: "long",
    PENDING: "after-long",
    RETRYING: "later",
  };
  let runId = "";

  beforeAll(async () => {
    runId = await chains.run([
      { id: "good", type: "noop" },
      scripted("bad", fails),
      { id: "after-bad", type: "noop", dependsOn: ["bad"] },
      scripted("long", holds),
      { id: "after-long", type: "noop", dependsOn: ["long"] },
      scripted("later", fails, { retry: { maxAttempts: 2, backoffMs: 60_000 } }),
    ]);
    for (const [status, nodeId] of Object.entries(nodeIds))
      await chains.nodeReaches(runId, nodeId, status as NodeStatus);
    return () => post(`/runs/${runId}:stop`);
  });

  test.each([
    ["retry", ["SUCCESS", "SKIPPED", "RUNNING", "PENDING"]],
    ["retry?dryRun=true", ["SUCCESS", "SKIPPED", "RUNNING", "PENDING"]],
    ["complete", ["SKIPPED", "PENDING"]],
  ] as [string, (keyof typeof nodeIds)[]][])("refuses to %s in a wrong state", async (action, wrong) => {
    const before = await snapshot(runId);
    for (const status of wrong) {
      const answer = await post(`/runs/${runId}/nodes/${nodeIds[status]}:${action}`);
      expect(refusal(answer), status).toEqual([409, "NODE_WRONG_STATE"]);
      expect(answer.body["details"]).toMatchObject({ runId, nodeId: nodeIds[status], status });
      expect(answer.body["error"]).toContain(status);
    }
    expect(await snapshot(runId)).toEqual(before);
  });

  test("that is SUCCESS may be completed again, which changes nothing", async () => {
    const before = await snapshot(runId);
    expect(await post(`/runs/${runId}/nodes/good:complete`, { artifactJson: "1" })).toMatchObject({
      status: 200,
      body: { runId, nodeId: "good", status: "SUCCESS", attempt: 1 },
    });
    expect(await snapshot(runId)).toEqual(before);
  });

  test("is suggested for a misspelt name", async () => {
    const answer = await post(`/runs/${runId}/nodes/goood:retry`);
    expect(refusal(answer)).toEqual([400, "NODE_NOT_FOUND"]);
    expect(answer.body["error"]).toContain("`good`");
  });
});

describe("stopping and resuming", () => {
  test("stops running and waiting nodes, keeps the reason, and continues where it stopped", async () => {
    let holding = true;
    const done: string[] = [];
    const work = (id: string, dependsOn: string[] = []) =>
      scripted(
        id,
        (ctx, input) => {
          if (id === "long" && holding) return holds(ctx, input);
          done.push(id);
          return {};
        },
        { dependsOn },
      );
    const runId = await chains.run([work("first"), work("long", ["first"]), work("last", ["long"])]);
    await chains.nodeReaches(runId, "long", "RUNNING");
    expect((await post(`/runs/${runId}:stop`, { reason: "the disk is full" })).body).toEqual({
      runId,
      status: "STOPPING",
    });
    expect(await chains.reaches(runId, "STOPPED")).toMatchObject({
      reason: "the disk is full",
      counts: { SUCCESS: 1, STOPPED: 2 },
    });
    expect(await chains.nodes(runId)).toMatchObject([
      { nodeId: "first", status: "SUCCESS", attempt: 1 },
      { nodeId: "long", status: "STOPPED", attempt: 1, lastError: "the run was stopped" },
      { nodeId: "last", status: "STOPPED", attempt: 0 },
    ]);

    holding = false;
    expect((await post(`/runs/${runId}:resume`)).body).toEqual({ runId, status: "RUNNING" });
    expect(await chains.reaches(runId, "SUCCESS")).toMatchObject({ reason: null });
    expect((await chains.nodes(runId)).map(({ attempt }) => attempt)).toEqual([1, 2, 1]);
    expect(done).toEqual(["first", "long", "last"]);
    expect(await audited(runId)).toMatchObject([
      { action: "run.stop", details: { reason: "the disk is full" } },
      { action: "run.resume" },
    ]);
  });

  test("without a reason records who stopped it", async () => {
    const runId = await chains.run([scripted("work", holds)]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    await post(`/runs/${runId}:stop`);
    expect(await chains.reaches(runId, "STOPPED")).toMatchObject({ reason: "stopped by MILLRACE_ADMIN_KEY" });
  });
});

describe("retrying", () => {
  test("a node runs it and its skipped descendants, and no other nodes", async () => {
    const { node, fix } = fixable("load", { dependsOn: ["extract"] });
    const runId = await chains.run([
      { id: "extract", type: "noop" },
      node,
      { id: "publish", type: "noop", dependsOn: ["load"] },
      { id: "tidy", type: "noop", dependsOn: ["load"], runWhen: "all_done" },
    ]);
    await chains.reaches(runId, "FAILED");
    expect(await chains.node(runId, "publish")).toMatchObject({ status: "SKIPPED" });

    fix();
    const { status, body } = await post(`/runs/${runId}/nodes/load:retry`, { reason: "fixed", artifactJson: "{}" });
    expect([status, body]).toEqual([
      200,
      {
        runId,
        nodeId: "load",
        status: "RETRYING",
        attempt: 2,
        dryRun: false,
        nodes: [
          { nodeId: "load", from: "FAILED", to: "RETRYING" },
          { nodeId: "publish", from: "SKIPPED", to: "PENDING" },
        ],
      },
    ]);
    expect(await chains.reaches(runId, "SUCCESS")).toMatchObject({ reason: null });
    expect((await chains.nodes(runId)).map(({ status: is, attempt }) => [is, attempt])).toEqual([
      ["SUCCESS", 1],
      ["SUCCESS", 2],
      ["SUCCESS", 1],
      ["SUCCESS", 1],
    ]);
    expect(await audited(`${runId}/load`)).toEqual([
      { action: "node.retry", details: { downstream: false, reason: "fixed" } },
    ]);
  });

  test("a node with downstream also runs succeeded descendants again", async () => {
    const { node, fix } = fixable("load");
    const tidy: NodeDef = { id: "tidy", type: "noop", dependsOn: ["load"], runWhen: "all_done" };
    const runId = await chains.run([node, tidy, { id: "notify", type: "noop", dependsOn: ["tidy"] }]);
    await chains.reaches(runId, "FAILED");
    fix();
    const { body } = await post(`/runs/${runId}/nodes/load:retry?downstream=true`);
    expect(body["nodes"]).toEqual([
      { nodeId: "load", from: "FAILED", to: "RETRYING" },
      { nodeId: "tidy", from: "SUCCESS", to: "PENDING" },
      { nodeId: "notify", from: "SUCCESS", to: "PENDING" },
    ]);
    await chains.reaches(runId, "SUCCESS");
    expect((await chains.nodes(runId)).map(({ attempt }) => attempt)).toEqual([2, 2, 2]);
  });

  test.each(["true", "false"])("a node with dryRun and downstream=%s only lists the changes", async (downstream) => {
    const tidy: NodeDef = { id: "tidy", type: "noop", dependsOn: ["load"], runWhen: "all_done" };
    const runId = await chains.run([scripted("load", fails), tidy]);
    await chains.reaches(runId, "FAILED");
    const before = await snapshot(runId);
    const { status, body } = await post<{ nodes: Json[] }>(
      `/runs/${runId}/nodes/load:retry?dryRun=true&downstream=${downstream}`,
    );
    expect([status, body]).toMatchObject([200, { dryRun: true, status: "RETRYING", attempt: 2 }]);
    expect(body.nodes.map(({ nodeId }) => nodeId)).toEqual(downstream === "true" ? ["load", "tidy"] : ["load"]);
    expect(await snapshot(runId)).toEqual(before);
    expect(await audited(`${runId}/load`)).toEqual([]);
  });

  test("a node works while others run", async () => {
    const gate = signal();
    const { node, fix } = fixable("load");
    const runId = await chains.run([node, scripted("long", async () => ({ artifact: await gate.promise }))]);
    await chains.nodeReaches(runId, "load", "FAILED");
    fix();
    expect((await post(`/runs/${runId}/nodes/load:retry`)).status).toBe(200);
    await chains.nodeReaches(runId, "load", "SUCCESS");
    expect(await statusOf(runId)).toBe("RUNNING");
    gate.resolve();
    await chains.reaches(runId, "SUCCESS");
  });

  test("a run retries all failed nodes and their skipped descendants", async () => {
    const [one, two] = [fixable("one"), fixable("two")];
    const runId = await chains.run([
      one.node,
      two.node,
      { id: "join", type: "noop", dependsOn: ["one", "two"] },
      { id: "good", type: "noop" },
    ]);
    await chains.reaches(runId, "FAILED");
    const moves = [
      { nodeId: "one", from: "FAILED", to: "RETRYING" },
      { nodeId: "two", from: "FAILED", to: "RETRYING" },
      { nodeId: "join", from: "SKIPPED", to: "PENDING" },
    ];
    const before = await snapshot(runId);
    expect(await post(`/runs/${runId}:retry?dryRun=true`)).toMatchObject({
      status: 200,
      body: { runId, status: "RUNNING", dryRun: true, nodes: moves },
    });
    expect(await snapshot(runId)).toEqual(before);

    one.fix();
    two.fix();
    const { status, body } = await post(`/runs/${runId}:retry`, { reason: "all fixed" });
    expect([status, body]).toEqual([200, { runId, status: "RUNNING", dryRun: false, nodes: moves }]);
    await chains.reaches(runId, "SUCCESS");
    expect((await chains.nodes(runId)).map(({ attempt }) => attempt)).toEqual([2, 2, 1, 1]);
    expect(await audited(runId)).toEqual([
      { action: "run.retry", details: { downstream: false, reason: "all fixed" } },
    ]);
  });

  test("a stopped run retries its stopped nodes", async () => {
    let holding = true;
    const work = scripted("work", (ctx, input) => (holding ? holds(ctx, input) : {}));
    const runId = await chains.run([work]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    await post(`/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
    holding = false;
    expect((await post(`/runs/${runId}:retry`)).body["nodes"]).toEqual([
      { nodeId: "work", from: "STOPPED", to: "RETRYING" },
    ]);
    await chains.reaches(runId, "SUCCESS");
  });
});

describe("a node in a long back-off", () => {
  const LONG = { maxAttempts: 2, backoffMs: 3_600_000 };
  /** A run whose node has failed once and waits an hour. */
  async function waitingRun() {
    const load = fixable("load", { retry: LONG });
    const runId = await chains.run([load.node, { id: "next", type: "noop", dependsOn: ["load"] }]);
    await chains.nodeReaches(runId, "load", "RETRYING");
    return { runId, fix: load.fix };
  }

  test("is retried now, as the attempt that it waits for and with a fresh budget", async () => {
    const { runId, fix } = await waitingRun();
    expect((await post(`/runs/${runId}/nodes/load:retry?dryRun=true`)).status).toBe(200);
    expect(await chains.node(runId, "load")).toMatchObject({ status: "RETRYING", attempt: 2 });
    const again = await post(`/runs/${runId}/nodes/load:retry`, { reason: "it is up again" });
    expect(again).toMatchObject({ status: 200, body: { status: "RETRYING", attempt: 2 } });
    // The budget begins anew: it fails a second time and waits again, instead of being FAILED.
    await until(async () => (await chains.node(runId, "load")).attempt === 3, "the third attempt to be due");
    fix();
    await post(`/runs/${runId}/nodes/load:retry`);
    await chains.reaches(runId, "SUCCESS");
    expect(await chains.node(runId, "load")).toMatchObject({ status: "SUCCESS", attempt: 3 });
    expect(await audited(`${runId}/load`)).toMatchObject([
      { action: "node.retry", details: { reason: "it is up again" } },
      { action: "node.retry" },
    ]);
  });

  test("is completed, and its attempt that never began is not counted", async () => {
    const { runId } = await waitingRun();
    const { status, body } = await post(`/runs/${runId}/nodes/load:complete`, { artifactJson: { rows: 3 } });
    expect([status, body]).toEqual([200, { runId, nodeId: "load", status: "SUCCESS", attempt: 1 }]);
    await chains.reaches(runId, "SUCCESS");
    expect(await chains.node(runId, "load")).toMatchObject({ artifact: { rows: 3 }, attempt: 1, lastError: null });
    const attempts = (await get<{ items: Json[] }>(`/runs/${runId}/nodes/load/attempts`)).body;
    expect(JSON.stringify(attempts)).toContain("not fixed yet");
  });

  test.each(["FAILED", "RETRYING"] as const)(
    "and any other that is retried takes the given artifact: it shows it, and its attempt is given it (%s)",
    async (from) => {
      const gate = signal();
      const seen: unknown[] = [];
      const load = scripted(
        "load",
        async ({ checkpoint }) => {
          if (seen.push(checkpoint ?? null) === 1) throw new Error("no offset");
          await gate.promise;
          return { artifact: "done" };
        },
        from === "RETRYING" ? { retry: LONG } : {},
      );
      const runId = await chains.run([load]);
      await chains.nodeReaches(runId, "load", from);
      expect((await post(`/runs/${runId}/nodes/load:retry`, { artifactJson: '{"offset":500}' })).status).toBe(200);
      await chains.nodeReaches(runId, "load", "RUNNING");
      expect(await chains.node(runId, "load")).toMatchObject({ artifact: { offset: 500 } });
      gate.resolve();
      await chains.reaches(runId, "SUCCESS");
      expect(await chains.node(runId, "load")).toMatchObject({ artifact: "done" });
      expect(seen).toEqual([null, { offset: 500 }]);
    },
  );
});

describe("completing a node", () => {
  /** A run whose first node has failed, and whose second returns the artifact of the first. */
  async function failedRun() {
    const echo = scripted("echo", (_ctx, input) => ({ artifact: input }), {
      dependsOn: ["load"],
      cfg: { input: "${nodes.load.artifact}" },
    });
    const runId = await chains.run([scripted("load", fails), echo]);
    await chains.reaches(runId, "FAILED");
    return runId;
  }

  test.each([
    ["JSON text", '{"rows":[1,{"n":"é"}]}', { rows: [1, { n: "é" }] }],
    ["an object", { rows: 2 }, { rows: 2 }],
    ["a list", [1, "two", null], [1, "two", null]],
    ["a number", 7, 7],
    ["text inside of text", '"seven"', "seven"],
    ["false", false, false],
  ])("with %s passes it to the children, and the run continues", async (_, artifactJson, artifact) => {
    const runId = await failedRun();
    const { status, body } = await post(`/runs/${runId}/nodes/load:complete`, { artifactJson, reason: "by hand" });
    expect([status, body]).toEqual([200, { runId, nodeId: "load", status: "SUCCESS", attempt: 1 }]);
    expect(await chains.reaches(runId, "SUCCESS")).toMatchObject({ reason: null });
    const [load, echo] = await chains.nodes(runId);
    expect(load).toMatchObject({ artifact, lastError: null });
    expect(JSON.parse(load?.artifactJson ?? "")).toEqual(artifact);
    expect(echo).toMatchObject({ status: "SUCCESS", artifact });
    expect(await audited(`${runId}/load`)).toEqual([{ action: "node.complete", details: { reason: "by hand" } }]);
  });

  test.each([
    ["no body", undefined],
    ["null", null],
    ["an artifact that is null", { artifactJson: null }],
    ["an artifact that is null as text", { artifactJson: "null" }],
  ])("with %s leaves it without an artifact", async (_, body) => {
    const runId = await failedRun();
    expect((await post(`/runs/${runId}/nodes/load:complete`, body)).status).toBe(200);
    await chains.reaches(runId, "SUCCESS");
    expect(await chains.node(runId, "load")).toMatchObject({ artifact: null, artifactJson: null });
  });

  test.each([
    ["text that is not JSON", { artifactJson: "rows: 1" }],
    ["empty text", { artifactJson: "" }],
    ["a NUL inside of text", { artifactJson: '"a\\u0000b"' }],
    ["a reason that is not text", { reason: 7 }],
    ["an unknown field", { artifact: {} }],
  ])("with %s is refused and changes nothing", async (_, body) => {
    const runId = await failedRun();
    const before = await snapshot(runId);
    const answer = await post(`/runs/${runId}/nodes/load:complete`, body);
    expect(refusal(answer)[0]).toBe(400);
    expect(await snapshot(runId)).toEqual(before);
  });

  test("while it runs aborts the work, and its result is ignored", async () => {
    const aborted = signal<unknown>();
    const late = scripted("load", async ({ signal: stop }) => {
      await new Promise((resolve) => stop.addEventListener("abort", resolve));
      aborted.resolve(stop.reason);
      return { artifact: "too late" };
    });
    const runId = await chains.run([late, { id: "next", type: "noop", dependsOn: ["load"] }]);
    await chains.nodeReaches(runId, "load", "RUNNING");
    expect((await post(`/runs/${runId}/nodes/load:complete`, { artifactJson: '"by hand"' })).body["status"]).toBe(
      "SUCCESS",
    );
    expect(String(await aborted.promise)).toContain("its lease was lost");
    await chains.reaches(runId, "SUCCESS");
    expect(await chains.node(runId, "load")).toMatchObject({ artifact: "by hand", attempt: 1 });
  });
});

describe("a preview", () => {
  type Preview = { status: string; revision: string; nodes: { nodeId: string; from: string; to: string }[] };
  const preview = async (path: string) =>
    (await post<Preview>(`${path}${path.includes("?") ? "&" : "?"}dryRun=true`)).body;
  const moves = ({ nodes }: Preview) => nodes.map(({ nodeId, from, to }) => [nodeId, from, to]);

  test("lists what a stop, a resume and a completion would change", async () => {
    const runId = await chains.run([scripted("work", holds), { id: "after", type: "noop", dependsOn: ["work"] }]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    expect(moves(await preview(`/runs/${runId}:stop`))).toEqual([
      ["work", "RUNNING", "STOPPED"],
      ["after", "PENDING", "STOPPED"],
    ]);
    expect(moves(await preview(`/runs/${runId}/nodes/work:complete`))).toEqual([["work", "RUNNING", "SUCCESS"]]);
    await post(`/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
    expect(moves(await preview(`/runs/${runId}:resume`))).toEqual([
      ["work", "STOPPED", "RETRYING"],
      ["after", "STOPPED", "PENDING"],
    ]);
  });

  test("is what happens, or nothing does", async () => {
    const { node, fix } = fixable("load");
    const runId = await chains.run([node, { id: "publish", type: "noop", dependsOn: ["load"] }]);
    await chains.reaches(runId, "FAILED");
    const path = `/runs/${runId}/nodes/load:retry`;
    const seen = await preview(path);
    expect(moves(seen)).toEqual([
      ["load", "FAILED", "RETRYING"],
      ["publish", "SKIPPED", "PENDING"],
    ]);
    expect(await preview(path)).toEqual(seen);

    // Another person tries in vain: the moves are the same as before, but of another attempt.
    await post(path);
    await chains.reaches(runId, "FAILED");
    const before = await snapshot(runId);
    const late = await post(`${path}?revision=${seen.revision}`);
    expect(refusal(late)).toEqual([409, "RUN_CHANGED"]);
    expect(await snapshot(runId)).toEqual(before);

    const again = await preview(path);
    expect((late.body["details"] as Json)["revision"]).toBe(again.revision);
    fix();
    expect((await post(`${path}?revision=${again.revision}`)).status).toBe(200);
    await chains.reaches(runId, "SUCCESS");
  });

  test("of one node holds while others go on", async () => {
    const [gate, end] = [signal(), signal()];
    const { node, fix } = fixable("load");
    const waits = (id: string, { promise }: typeof gate) => scripted(id, async () => ({ artifact: await promise }));
    const runId = await chains.run([node, waits("long", gate), waits("longer", end)]);
    await chains.nodeReaches(runId, "load", "FAILED");
    await chains.nodeReaches(runId, "long", "RUNNING");
    const { revision } = await preview(`/runs/${runId}/nodes/load:retry`);
    gate.resolve();
    await chains.nodeReaches(runId, "long", "SUCCESS");
    fix();
    expect((await post(`/runs/${runId}/nodes/load:retry?revision=${revision}`)).status).toBe(200);
    end.resolve();
    await chains.reaches(runId, "SUCCESS");
  });
});

test("the time of a node that waits for a run is that of the whole wait", async () => {
  const gate = signal();
  const began = signal();
  const slow = scripted("slow", async () => {
    began.resolve();
    await gate.promise;
    return {};
  });
  const child = await chains.define([slow]);
  const { body: chain } = await get(`/chains/${child}`);
  const runId = await chains.run([{ id: "sub", type: "chain", cfg: { name: chain["name"] } }]);
  await began.promise;
  const fromMs = performance.now();
  await until(
    async () => (await database.query("select from chains.live_node where state = 'parked'")).length > 0,
    "the node to wait",
  );
  const waitedMs = performance.now() - fromMs;
  gate.resolve();
  await chains.reaches(runId, "SUCCESS");
  const metrics = await (await fetch(`${chains.url}/metrics`)).text();
  const sum = /^millrace_chains_node_seconds_sum\{type="chain",outcome="succeeded"\} (\S+)$/m.exec(metrics)?.[1];
  expect(Number(sum) * 1_000).toBeGreaterThanOrEqual(waitedMs);
  expect(metrics).not.toContain('outcome="sub-run"');
});
