import { describe, expect, test } from "vitest";
import { dagOf } from "../engine/book.fixture.ts";
import type { NodeRow, RunRow } from "../store/reads.ts";
import { nodeReplies, runReply } from "./view.ts";

const AT = new Date("2026-03-01T12:00:00.000Z");
const run: RunRow = {
  run_id: "run-1",
  chain_id: "chain-1",
  chain_version: 3,
  job_id: null,
  job_name: "daily",
  status: "RUNNING",
  reason: null,
  params: { day: 7 },
  params_bytes: 10,
  op_time: "2026030100",
  priority: 5,
  trigger: "api",
  triggered_by: "anna",
  parent_run_id: null,
  parent_node_id: null,
  created_at: AT,
  updated_at: AT,
  started_at: AT,
  ended_at: null,
  active: 0,
  max_active_runs: null,
  unserved: null,
};
const row: NodeRow = {
  node_id: "load",
  status: "PENDING",
  attempt: 0,
  last_error: null,
  artifact: null,
  artifact_bytes: null,
  started_at: null,
  ended_at: null,
  updated_at: AT,
  worker: null,
  progress: null,
  progress_note: null,
  state: null,
  waiting: null,
  pool: null,
  due_at: null,
  child_run_id: null,
  missing_tables: null,
  is_lost: false,
  unserved: null,
};
const reply = nodeReplies(
  dagOf({ extract: [], load: { type: "sql", dependsOn: ["extract"], retry: { maxAttempts: 4 } } }),
);

describe("a run", () => {
  test("has the fields of the API", () => {
    expect(runReply(run)).toEqual({
      runId: "run-1",
      chainId: "chain-1",
      chainVersion: 3,
      jobId: null,
      jobName: "daily",
      status: "RUNNING",
      reason: null,
      params: { day: 7 },
      paramsBytes: 10,
      opTime: "2026030100",
      priority: 5,
      trigger: "api",
      triggeredBy: "anna",
      parentRunId: null,
      parentNodeId: null,
      createdAt: AT,
      updatedAt: AT,
      startedAt: AT,
      endedAt: null,
    });
  });

  test("that is PENDING because of maxActiveRuns has a reason", () => {
    const pending: RunRow = { ...run, status: "PENDING" };
    expect(runReply({ ...pending, active: 2, max_active_runs: 2 }).reason).toBe(
      "waits for its turn: 2 of at most 2 runs of this chain are active",
    );
    expect(runReply({ ...pending, active: 1, max_active_runs: 2 }).reason).toBeNull();
    expect(runReply({ ...pending, active: 9, max_active_runs: null }).reason).toBeNull();
    expect(runReply({ ...run, active: 2, max_active_runs: 2 }).reason).toBeNull();
  });

  test("keeps a stored reason", () => {
    expect(runReply({ ...run, status: "FAILED", reason: "node `a` failed: no" }).reason).toBe("node `a` failed: no");
  });
});

describe("a node", () => {
  test("has the fields of its definition", () => {
    expect(reply({ ...row, status: "SUCCESS", attempt: 1, artifact: { rows: [1] } })).toMatchObject({
      nodeId: "load",
      type: "sql",
      dependsOn: ["extract"],
      status: "SUCCESS",
      attempt: 1,
      maxAttempts: 4,
      artifact: { rows: [1] },
      artifactJson: '{"rows":[1]}',
      waitingFor: null,
    });
  });

  test("has one attempt and no parents by default", () => {
    expect(reply({ ...row, node_id: "extract" })).toMatchObject({ type: "noop", dependsOn: [], maxAttempts: 1 });
  });

  test("without an artifact has no artifactJson", () => {
    expect(reply(row)).toMatchObject({ artifact: null, artifactJson: null });
  });

  test.each<[string | null, Partial<NodeRow>]>([
    ["1 parent to end", { state: "waiting", waiting: 1 }],
    ["2 parents to end", { state: "waiting", waiting: 2 }],
    ["the table DW_A", { state: "waiting", waiting: 1, missing_tables: ["DW_A"] }],
    ["1 parent to end and the tables DW_A, DW_B", { state: "waiting", waiting: 3, missing_tables: ["DW_A", "DW_B"] }],
    ["a free worker", { state: "ready" }],
    ["room in the pool `heavy` and a free worker", { state: "ready", pool: "heavy" }],
    ["its next attempt, due at 2026-03-01T12:00:00.000Z", { state: "delayed", due_at: AT }],
    ["a process with the role `worker`: none is alive", { state: "ready", unserved: "worker" }],
    [
      "room in the pool `heavy` and a process with the role `worker`: none is alive",
      { state: "ready", pool: "heavy", unserved: "worker" },
    ],
    [
      "its next attempt, due at 2026-03-01T12:00:00.000Z, and a process with the role `scheduler`: none is alive",
      { state: "delayed", due_at: AT, unserved: "scheduler" },
    ],
    ["another worker, since its own is lost", { state: "leased", status: "RUNNING", is_lost: true }],
    [
      "another worker, since its own is lost, and a process with the role `scheduler`: none is alive",
      { state: "leased", status: "RUNNING", is_lost: true, unserved: "scheduler" },
    ],
    ["run child-1, which an earlier attempt started, to stop", { state: "blocked", child_run_id: "child-1" }],
    ["run child-1", { state: "parked", child_run_id: "child-1" }],
    [null, { state: "leased", status: "RUNNING" }],
    [null, { state: null, status: "SUCCESS" }],
  ])("waits for %s", (waitingFor, fields) => {
    expect(reply({ ...row, ...fields }).waitingFor).toBe(waitingFor);
  });

  test("says in parts what it waits for", () => {
    const waits = (fields: Partial<NodeRow>) => reply({ ...row, ...fields }).waits;
    const nothing = { parents: 0, tables: [], pool: null, unservedRole: null };
    const tables = ["DW_A", "DW_B"];
    expect(waits({ state: "waiting", waiting: 3, missing_tables: tables })).toEqual({
      ...nothing,
      cause: "inputs",
      parents: 1,
      tables,
    });
    const inPool = { ...nothing, cause: "slot", pool: "heavy", unservedRole: "worker" };
    expect(waits({ state: "ready", pool: "heavy", unserved: "worker" })).toEqual(inPool);
    expect(waits({ state: "parked", child_run_id: "child-1" })).toEqual({ ...nothing, cause: "started" });
    expect(waits({ state: "leased", status: "RUNNING" })).toBeNull();
  });
});
