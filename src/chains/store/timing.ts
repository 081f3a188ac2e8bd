/** SQL for the times of runs and nodes: earlier attempts, the runs before a run, and the states of nodes over several runs. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeStatus, RunStatus } from "../engine/states.ts";

export interface EarlierAttemptRow {
  node_id: string;
  attempt: number;
  status: string;
  /** Its beginning. */
  error: string | null;
  started_at: Date;
  ended_at: Date;
}
const ERROR_SHOWN_LENGTH = 200;
const EARLIER_ATTEMPTS = statement<EarlierAttemptRow>(
  "chains.timing.earlier_attempts",
  `select node_id, attempt, status, left(error, ${ERROR_SHOWN_LENGTH}) as error, started_at, ended_at
   from chains.job_run_attempt where run_id = $1 order by node_id, attempt limit $2`,
);

/** Attempts that another one followed, by node. */
export function readEarlierAttempts(db: Db, runId: string, limit: number): Promise<EarlierAttemptRow[]> {
  return db.read(EARLIER_ATTEMPTS, [runId, limit]);
}

export interface NodeTimesRow {
  node_id: string;
  status: NodeStatus;
  /** Of its first attempt. */
  started_at: Date | null;
  ended_at: Date | null;
  /** Of all its attempts. */
  ran_ms: number;
  attempts: number;
  /** By the database's clock. */
  read_at: Date;
}
// If the last attempt is stored as an attempt, the node was set to SUCCESS by hand, and its own end is not that of the work.
const NODE_TIMES = statement<NodeTimesRow>(
  "chains.timing.nodes",
  `select n.node_id, n.status, least(n.started_at, a.first_at) as started_at, n.ended_at, now() as read_at,
          coalesce(a.ran_ms, 0) + case when l.is_current
            then extract(epoch from coalesce(n.ended_at, now()) - n.started_at)::float8 * 1000 else 0 end as ran_ms,
          coalesce(a.attempts, 0) + case when l.is_current then 1 else 0 end as attempts
   from chains.job_run_node n
   left join (
     select node_id, count(*)::int as attempts, max(attempt) as last_attempt, min(started_at) as first_at,
            sum(extract(epoch from ended_at - started_at))::float8 * 1000 as ran_ms
     from chains.job_run_attempt where run_id = $1 group by node_id
   ) a on a.node_id = n.node_id
   cross join lateral (
     select n.started_at is not null and n.attempt is distinct from a.last_attempt as is_current
   ) l
   where n.run_id = $1`,
);

export function readNodeTimes(db: Db, runId: string): Promise<NodeTimesRow[]> {
  return db.read(NODE_TIMES, [runId]);
}

export interface TimedRunRow {
  run_id: string;
  chain_id: string | null;
  chain_version: number | null;
  op_time: string | null;
  status: RunStatus;
  created_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
}
const TIMED_RUN = `run_id, chain_id, chain_version::float8 as chain_version, op_time, status, created_at, started_at, ended_at`;
const TIMED = statement<TimedRunRow>("chains.timing.run", `select ${TIMED_RUN} from chains.job_run where run_id = $1`);

export async function readTimedRun(db: Db, runId: string): Promise<TimedRunRow | undefined> {
  return (await db.read(TIMED, [runId]))[0];
}

const LAST_RUNS = statement<TimedRunRow>(
  "chains.timing.last_runs",
  `select ${TIMED_RUN} from chains.job_run
   where chain_id = $1 order by created_at desc, run_id desc limit $2`,
);
const RUNS_UNTIL = statement<TimedRunRow>(
  "chains.timing.runs_until",
  `select ${TIMED_RUN} from chains.job_run
   where chain_id = $1 and created_at <= (select u.created_at from chains.job_run u where u.run_id = $3)
     and (created_at, run_id) <= (select u.created_at, u.run_id from chains.job_run u where u.run_id = $3)
   order by created_at desc, run_id desc limit $2`,
);

/** Runs of a chain, newest first: the last ones, or those up to the run `until`, which is the first of them. */
export function readLastRuns(
  db: Db,
  chainId: string,
  { until, limit }: { until: string | null; limit: number },
): Promise<TimedRunRow[]> {
  return until === null ? db.read(LAST_RUNS, [chainId, limit]) : db.read(RUNS_UNTIL, [chainId, limit, until]);
}

export interface NodeStateRow {
  run_id: string;
  node_id: string;
  status: NodeStatus;
}
// One lookup for each run and node: a join whose plan was cached for a few runs could read all nodes of large ones.
const NODE_STATES = statement<NodeStateRow>(
  "chains.timing.node_states",
  `select r.run_id, n.node_id, n.status
   from unnest($1::uuid[]) as r(run_id)
   cross join unnest($2::text[]) as i(node_id)
   cross join lateral (
     select node_id, status from chains.job_run_node n where n.run_id = r.run_id and n.node_id = i.node_id offset 0
   ) n`,
);

/** The states of these nodes in these runs. */
export function readNodeStates(db: Db, runIds: readonly string[], nodeIds: readonly string[]): Promise<NodeStateRow[]> {
  return db.read(NODE_STATES, [runIds, nodeIds]);
}
