/** SQL to start and admit runs, and to read what the engine needs of them. */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Dag } from "../definitions/dag.ts";
import type { NodeStatus, RunStatus } from "../engine/states.ts";

/** What never changes about a run. */
export interface RunFacts {
  run_id: string;
  /** The chain's name at the start. */
  name: string;
  chain_id: string | null;
  chain_version: string | null;
  params: Record<string, unknown>;
  op_time: string | null;
  priority: number;
  run_timeout_ms: number | null;
  trigger: string;
  parent_run_id: string | null;
  parent_node_id: string | null;
  depth: number;
}

const FACT_COLUMNS = `r.run_id, r.job_name as name, r.chain_id, r.chain_version, r.params, r.op_time, r.priority,
          r.run_timeout_ms::float8 as run_timeout_ms, r.trigger, r.parent_run_id, r.parent_node_id, r.depth`;

const FACTS = statement<RunFacts>(
  "chains.run.facts",
  `select ${FACT_COLUMNS} from chains.job_run r where r.run_id = any($1::uuid[])`,
);

export function readFacts(db: Queryable, runIds: readonly string[]): Promise<RunFacts[]> {
  return db.rows(FACTS, [runIds]);
}

const DAG_OF_RUN = statement<{ dag: Dag }>(
  "chains.run.dag",
  "select dag_json as dag from chains.job_run where run_id = $1",
);

export async function readDag(db: Queryable, runId: string): Promise<Dag | undefined> {
  return (await db.rows(DAG_OF_RUN, [runId]))[0]?.dag;
}

const NAMED = statement<{ chain_id: string; enabled: boolean; max_active_runs: number | null; waits: boolean }>(
  "chains.run.chain_named",
  `select chain_id, enabled, max_active_runs, jsonb_path_exists(dag_json, '$.nodes[*].waitsFor[*]') as waits
   from chains.job_chain_definition where name = $1`,
);

export async function findChainToRun(db: Queryable, name: string) {
  return (await db.rows(NAMED, [name]))[0];
}

const EXISTING = statement<{ name: string }>(
  "chains.run.chains_named",
  "select name from chains.job_chain_definition where name = any($1::text[])",
);
const NAMES_READ_MAX = 10_000;
const NAMES = statement<{ name: string }>(
  "chains.run.chain_names",
  `select name from chains.job_chain_definition order by name limit ${NAMES_READ_MAX}`,
);

/** The chains with these names that exist. */
export async function existingChains(db: Queryable, names: readonly string[]): Promise<string[]> {
  return (await db.rows(EXISTING, [names])).map(({ name }) => name);
}

/** The names of the chains, to find a similar one. */
export async function chainNames(db: Queryable): Promise<string[]> {
  return (await db.rows(NAMES)).map(({ name }) => name);
}

const IS_ANCESTOR = statement<{ above: boolean }>(
  "chains.run.is_above",
  `with recursive above(run_id, chain_id, parent_run_id) as (
     select run_id, chain_id, parent_run_id from chains.job_run where run_id = $1
     union all
     select p.run_id, p.chain_id, p.parent_run_id from above a join chains.job_run p on p.run_id = a.parent_run_id
   )
   select exists (select from above where chain_id = $2) as above`,
);

/** Whether this run or one of its ancestors is a run of the chain. */
export async function isAncestor(db: Queryable, runId: string, chainId: string): Promise<boolean> {
  return (await db.rows(IS_ANCESTOR, [runId, chainId]))[0]?.above ?? false;
}

const STATUS = statement<{ status: RunStatus }>(
  "chains.run.status",
  "select status from chains.job_run where run_id = $1",
);

export async function readStatus(db: Queryable, runId: string): Promise<RunStatus | undefined> {
  const [row] = await db.rows(STATUS, [runId]);
  return row?.status;
}

const UNDER_WAY = statement<{ run_id: string }>(
  "chains.run.under_way",
  `select run_id from chains.job_run
   where run_id = any($1::uuid[]) and status in ('PENDING', 'RUNNING', 'STOPPING')`,
);

/** Those of the runs that have not ended. */
export async function runsUnderWay(db: Queryable, runIds: readonly string[]): Promise<Set<string>> {
  return new Set((await db.rows(UNDER_WAY, [runIds])).map(({ run_id }) => run_id));
}

const NODES = statement<{ node_id: string; status: NodeStatus; attempt: number }>(
  "chains.run.nodes",
  "select node_id, status, attempt from chains.job_run_node where run_id = $1",
);

export function readNodeStatuses(db: Queryable, runId: string) {
  return db.rows(NODES, [runId]);
}

export interface NewRun {
  run_id: string;
  /** The chain to run; null for a run with its own DAG. */
  chain_id: string | null;
  job_id: string | null;
  params: Record<string, unknown>;
  op_time: string | null;
  priority: number;
  trigger: string;
  triggered_by: string;
  parent_run_id: string | null;
  parent_node_id: string | null;
  depth: number;
  /** Of a child run: a digest of what its parent node requested. */
  request: string | null;
}
const NEW_RUN = {
  run_id: "uuid",
  chain_id: "uuid",
  job_id: "text",
  params: "jsonb",
  op_time: "text",
  priority: "int4",
  trigger: "text",
  triggered_by: "text",
  parent_run_id: "uuid",
  parent_node_id: "text",
  depth: "int4",
  request: "text",
};
const COLUMNS = Object.keys(NEW_RUN).join(", ");
const OF_I = Object.keys(NEW_RUN)
  .map((name) => `i.${name}`)
  .join(", ");
const DAG_AT = Object.keys(NEW_RUN).length + 1;

// The definition is copied inside the database: it may be large, and it must match the version that the run names.
const INSERT_CHAIN_RUNS = statement<InsertedRun>(
  "chains.run.insert",
  `with runs as (
     insert into chains.job_run (${COLUMNS}, chain_version, job_name, dag_json, run_timeout_ms)
     select ${OF_I}, d.version, d.name, d.dag_json, d.run_timeout_ms
     from ${unnest(NEW_RUN, "i")} join chains.job_chain_definition d on d.chain_id = i.chain_id
     where (i.parent_run_id is not null or (
       d.enabled and (i.op_time is not null or not jsonb_path_exists(d.dag_json, '$.nodes[*].waitsFor[*]'))
     ))
     returning *
   ), nodes as (
     insert into chains.job_run_node (run_id, node_id, node_no)
     select r.run_id, n.node ->> 'id', n.no - 1
     from runs r, jsonb_array_elements(r.dag_json -> 'nodes') with ordinality as n(node, no)
   )
   select ${FACT_COLUMNS}, d.max_active_runs is not null as has_limit
   from runs r join chains.job_chain_definition d on d.chain_id = r.chain_id`,
);

export interface InsertedRun extends RunFacts {
  /** Its chain has `maxActiveRuns`. */
  has_limit: boolean;
}

/**
 * Returns the runs that were inserted. Runs of an unknown or disabled chain, or without an opTime that the chain needs, are
 * left out. Child runs are always inserted: their chain was checked before.
 */
export function insertChainRuns(tx: Queryable, runs: readonly NewRun[]): Promise<InsertedRun[]> {
  return tx.rows(INSERT_CHAIN_RUNS, toArrays(NEW_RUN, runs));
}

const INSERT_DAG_RUN = statement(
  "chains.run.insert_dag",
  `with runs as (
     insert into chains.job_run (${COLUMNS}, job_name, dag_json)
     select ${OF_I}, $${DAG_AT + 1}, $${DAG_AT}::jsonb from ${unnest(NEW_RUN, "i")}
     returning run_id, dag_json
   )
   insert into chains.job_run_node (run_id, node_id, node_no)
   select r.run_id, n.node ->> 'id', n.no - 1
   from runs r, jsonb_array_elements(r.dag_json -> 'nodes') with ordinality as n(node, no)`,
);

/** A run of a DAG that belongs to no chain. */
export async function insertDagRun(tx: Queryable, run: NewRun, dag: Dag, name: string): Promise<void> {
  await tx.rows(INSERT_DAG_RUN, [...toArrays(NEW_RUN, [run]), JSON.stringify(dag), name]);
}

const ADMISSION_LOCK = statement(
  "chains.admit.lock",
  "select pg_advisory_xact_lock(hashtextextended('chains.admit', 0))",
);
const CHAINS_AT_ONCE = 1_000;
// A loose index scan over the chains, so that ten thousand PENDING runs of one full chain cost one step.
const ADMISSIBLE = statement<{ run_id: string }>(
  "chains.admit.pick",
  `with recursive chain(chain_id, n) as (
     (select chain_id, 1 from chains.job_run where status = 'PENDING' and chain_id is not null order by 1 limit 1)
     union all
     select (select q.chain_id from chains.job_run q where q.status = 'PENDING' and q.chain_id > chain.chain_id
             order by 1 limit 1), n + 1
     from chain where chain_id is not null and n < ${CHAINS_AT_ONCE}
   ), room as (
     select chain_id,
            coalesce((select d.max_active_runs from chains.job_chain_definition d where d.chain_id = chain.chain_id) - (
              select count(*) from chains.job_run a where a.chain_id = chain.chain_id and a.status in ('RUNNING', 'STOPPING')
            ), $1) as free
     from chain where chain_id is not null
   ), candidates as (
     select q.* from room, lateral (
       select run_id, priority, created_at from chains.job_run
       where status = 'PENDING' and chain_id = room.chain_id
       order by priority, created_at, run_id limit greatest(least(room.free, $1), 0)
     ) q
     union all
     (select run_id, priority, created_at from chains.job_run
      where status = 'PENDING' and chain_id is null order by priority, created_at, run_id limit $1)
   )
   select run_id from candidates order by priority, created_at, run_id limit $1`,
);

/** PENDING runs whose chain has room. Only one process at a time picks and admits, so no limit is exceeded. */
export async function pickAdmissible(tx: Queryable, limit: number): Promise<string[]> {
  await tx.rows(ADMISSION_LOCK);
  return (await tx.rows(ADMISSIBLE, [limit])).map(({ run_id }) => run_id);
}

const FULL = statement<{ name: string; active: number; max: number }>(
  "chains.admit.full",
  `select d.name, a.active, d.max_active_runs as max
   from chains.job_chain_definition d, lateral (
     select count(*)::int as active from chains.job_run r where r.chain_id = d.chain_id and r.status in ('RUNNING', 'STOPPING')
   ) a
   where d.chain_id = $1 and a.active >= d.max_active_runs`,
);

/** Returns the chain's counts if it has no room for another run. Blocks other admissions until the transaction ends. */
export async function fullChain(tx: Queryable, chainId: string) {
  await tx.rows(ADMISSION_LOCK);
  return (await tx.rows(FULL, [chainId]))[0];
}

const STILL_PENDING = statement<{ run_id: string }>(
  "chains.admit.still_pending",
  "select run_id from chains.job_run where run_id = any($1::uuid[]) and status = 'PENDING' order by priority, created_at, run_id",
);

/** Call it under the runs' locks: some may have been stopped since they were picked. */
export async function stillPending(tx: Queryable, runIds: readonly string[]): Promise<string[]> {
  return (await tx.rows(STILL_PENDING, [runIds])).map(({ run_id }) => run_id);
}

const STOPPING = statement<{ run_id: string }>(
  "chains.run.stopping",
  "select run_id from chains.job_run where run_id = any($1::uuid[]) and status in ('STOPPING', 'STOPPED')",
);

/** Those of the runs that are stopping or have stopped. */
export async function stoppingRuns(tx: Queryable, runIds: readonly string[]): Promise<Set<string>> {
  return new Set((await tx.rows(STOPPING, [runIds])).map(({ run_id }) => run_id));
}

const OUTCOME = statement<{ status: RunStatus; reason: string | null }>(
  "chains.run.outcome",
  "select status, reason from chains.job_run where run_id = $1",
);

export async function readOutcome(db: Db, runId: string): Promise<{ status: RunStatus; reason: string | null }> {
  const [run] = await db.rows(OUTCOME, [runId]);
  if (!run) throw new Error(`run ${runId} does not exist`);
  return run;
}
