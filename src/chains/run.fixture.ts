/** Rows of runs without an engine, for tests of other readers and writers of these tables. */
import { randomUUID } from "node:crypto";
import type { TestDatabase } from "../../test/database.ts";
import { dagOf, type Nodes } from "./engine/book.fixture.ts";
import { insertChain } from "./store/definitions.ts";
import type { ClaimedNode } from "./store/live.ts";
import { insertChainRuns, insertDagRun, type NewRun } from "./store/runs.ts";

function newRun(fields: Partial<NewRun>): NewRun {
  return {
    run_id: randomUUID(),
    chain_id: null,
    job_id: null,
    params: {},
    op_time: null,
    priority: 0,
    trigger: "api",
    triggered_by: "a test",
    parent_run_id: null,
    parent_node_id: null,
    depth: 0,
    request: null,
    ...fields,
  };
}

/** A run of a DAG that belongs to no chain. Returns its id. */
export async function addRun({ db }: TestDatabase, nodes: Nodes, fields: Partial<NewRun> = {}): Promise<string> {
  const run = newRun(fields);
  await insertDagRun(db, run, dagOf(nodes), "bare");
  return run.run_id;
}

export async function addChain({ db }: TestDatabase, nodes: Nodes): Promise<string> {
  const chainId = randomUUID();
  const limits = { maxActiveRuns: null, runTimeoutMs: null };
  const chain = { chainId, name: chainId, description: null, dag: dagOf(nodes), by: "a test", enabled: true };
  await insertChain(db, { ...chain, ...limits });
  return chainId;
}

export async function addRunOf({ db }: TestDatabase, chainId: string): Promise<string> {
  const [run] = await insertChainRuns(db, [newRun({ chain_id: chainId })]);
  if (run === undefined) throw new Error("the run was not inserted");
  return run.run_id;
}

/** Leases the node to a worker. */
export async function hold({ query }: TestDatabase, runId: string, nodeId: string, attempt = 1): Promise<ClaimedNode> {
  const [row] = await query<{ fence: string }>(
    `insert into chains.live_node (run_id, node_id, state, waiting, attempt, priority, session_id, fence)
     values ($1, $2, 'leased', 0, $3, 0, 1, nextval('kernel.fence')) returning fence::text as fence`,
    [runId, nodeId, attempt],
  );
  return { run_id: runId, node_id: nodeId, attempt, returned: 0, fence: row?.fence ?? "" };
}
