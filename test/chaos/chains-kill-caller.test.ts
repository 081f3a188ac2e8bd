/**
 * The only process is killed after a child run has ended and before the end is reported to the node that waits for it. The
 * next process reports it: nothing of the child run runs again, and its artifacts, too large for the caller, are still read.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";
import { done, endSessionOf, openSetup } from "./chains-setup.ts";

const database = useDatabase();
const ROLES = "api,scheduler,worker";
const LOCKS_WAITED_FOR = `select from pg_locks l join pg_database d on d.oid = l.database
   where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`;

test("a process that is killed between the end of a child run and that of its caller", async () => {
  const setup = await openSetup(database, {});
  const server = await setup.start(ROLES);
  const large = ["a", "b", "c"].map((id) => ({ id, type: "sql", cfg: { sql: "select repeat('x', 400000) as text" } }));
  const child = { nodes: [...large, { id: "last", type: "gated", dependsOn: ["a", "b", "c"] }] };
  done(await server.api.post("/api/v1/chains", { name: "child", dagJson: child }));
  const dagJson = {
    nodes: [
      { id: "sub", type: "chain", cfg: { name: "child" }, retry: { maxAttempts: 3, backoffMs: 0 } },
      {
        id: "after",
        type: "noop",
        dependsOn: ["sub"],
        if: "size(nodes.sub.artifact.artifacts.b.rows[0].text) == 400000",
      },
    ],
  };
  const { chainId } = done(await server.api.post("/api/v1/chains", { name: "caller", dagJson }));
  const { runId } = done(await server.api.post(`/api/v1/chains/${String(chainId)}:start`, {}));
  const { run_id: childId } = await until(
    async () => (await database.query<{ run_id: string }>("select run_id from chains.job_run where depth = 1"))[0],
    "the child run",
  );
  const last = { runId: childId, nodeId: "last", attempt: 1 };
  await setup.began(last);

  await database.db.exclusive(async (client) => {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock(hashtextextended('chains.run ' || $1, 0))", [runId]);
    await setup.openGate(last);
    await until(async () => (await database.query(LOCKS_WAITED_FOR)).length > 0, "the report to the caller to wait");
    server.kill("SIGKILL");
    expect(await server.exited).toBe("SIGKILL");
    await client.query("rollback");
  });
  expect(await statusesOf()).toEqual([
    ["caller", "RUNNING"],
    ["child", "SUCCESS"],
  ]);

  await endSessionOf(database, server.pid);
  const next = await setup.start(ROLES);
  await until(async () => (await statusesOf())[0]?.[1] === "SUCCESS", "the caller to succeed");
  expect(await statusesOf()).toEqual([
    ["caller", "SUCCESS"],
    ["child", "SUCCESS"],
  ]);
  const nodes = await database.query(
    "select node_id, status, attempt, artifact_json as artifact from chains.job_run_node where run_id = $1 order by node_no",
    [runId],
  );
  expect(nodes).toMatchObject([
    { node_id: "sub", status: "SUCCESS", attempt: 1, artifact: { runId: childId, byReference: "artifacts" } },
    { node_id: "after", status: "SUCCESS" },
  ]);
  expect(setup.marks().map(({ what, nodeId }) => [what, nodeId])).toEqual([
    ["began", "last"],
    ["did", "last"],
  ]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await next.stop()).toBe(0);
});

const statusesOf = async () => {
  const rows = await database.query<{ name: string; status: string }>(
    "select job_name as name, status from chains.job_run order by depth, created_at",
  );
  return rows.map(({ name, status }) => [name, status]);
};
