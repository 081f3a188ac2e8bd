/** SQL for the API's reads: runs, their nodes, attempts and events. */
import type { Db } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { statement } from "../../kernel/data/statement.ts";
import { COUNTED_MAX } from "../../kernel/overview/values.ts";
import { isServed } from "../../kernel/work/session.ts";
import type { Dag, NodeDef } from "../definitions/dag.ts";
import type { LiveState } from "../engine/book.ts";
import type { NodeStatus, RunStatus } from "../engine/states.ts";
import { IS_LOST, WAITS_FOR_SCHEDULER, WAITS_FOR_WORKER } from "./unserved.ts";

export interface RunRow {
  run_id: string;
  chain_id: string | null;
  chain_version: number | null;
  job_id: string | null;
  job_name: string;
  status: RunStatus;
  reason: string | null;
  /** In a list, null if they are large. */
  params: Record<string, unknown> | null;
  params_bytes: number;
  op_time: string | null;
  priority: number;
  trigger: string;
  triggered_by: string;
  parent_run_id: string | null;
  parent_node_id: string | null;
  created_at: Date;
  updated_at: Date;
  started_at: Date | null;
  ended_at: Date | null;
  /** Of a PENDING run: how many runs of its chain are active, and how many may be. */
  active: number;
  max_active_runs: number | null;
  unserved: UnservedRole | null;
}

/** A role that the run or node waits for, although no process with it is alive. */
export type UnservedRole = "scheduler" | "worker";

const PARAMS_LISTED_BYTES_MAX = 8 * 1024;
const ARTIFACT_LISTED_BYTES_MAX = 64 * 1024;

/** The size of a document as text. A document whose stored size exceeds `max` is not decompressed to be measured. */
const bytesOf = (document: string, max: number) =>
  `(case when pg_column_size(${document}) > ${max} then pg_column_size(${document}) else octet_length(${document}::text) end)`;
const upTo = (document: string, max: number) => `case when ${bytesOf(document, max)} <= ${max} then ${document} end`;

// The live nodes are read only if a role is missing.
const UNSERVED = `case
            when r.status = 'PENDING' and not ${isServed("scheduler")} then 'scheduler'
            when r.status = 'RUNNING' and not ${isServed("worker")} and exists (
              select from chains.live_node l where l.run_id = r.run_id and ${WAITS_FOR_WORKER}) then 'worker'
            when r.status = 'RUNNING' and not ${isServed("scheduler")} and exists (
              select from chains.live_node l where l.run_id = r.run_id and ${WAITS_FOR_SCHEDULER}) then 'scheduler'
          end as unserved`;

const columns = (params: string) => `r.run_id, r.chain_id, r.chain_version::float8 as chain_version, r.job_id,
          r.job_name, r.status, r.reason, ${params}, r.op_time, r.priority, r.trigger, r.triggered_by, r.parent_run_id,
          r.parent_node_id, r.created_at, r.updated_at, r.started_at, r.ended_at, d.max_active_runs, ${UNSERVED},
          (select count(*)::int from chains.job_run a
           where r.status = 'PENDING' and a.chain_id = r.chain_id and a.status in ('RUNNING', 'STOPPING')) as active`;
const WHOLE = columns("r.params, octet_length(r.params::text) as params_bytes");
const LISTED = columns(
  `${upTo("r.params", PARAMS_LISTED_BYTES_MAX)} as params, ${bytesOf("r.params", PARAMS_LISTED_BYTES_MAX)} as params_bytes`,
);

export type CountedRunRow = RunRow & { counts: Partial<Record<NodeStatus, number>> };
const countedRun = (selected: string) => `select ${selected},
          (select coalesce(json_object_agg(status, n), '{}') from (
             select status, count(*) as n from chains.job_run_node where run_id = r.run_id group by status) c) as counts
   from chains.job_run r left join chains.job_chain_definition d on d.chain_id = r.chain_id
   where r.run_id = $1`;
/** The run of its chain before it. */
const PREVIOUS = `(select json_build_object('runId', p.run_id, 'chainVersion', p.chain_version)
           from chains.job_run p
           where p.chain_id = r.chain_id and p.created_at <= r.created_at
             and (p.created_at, p.run_id) < (r.created_at, r.run_id)
           order by p.created_at desc, p.run_id desc limit 1) as previous`;
export type RunDetailRow = CountedRunRow & { previous: { runId: string; chainVersion: number | null } | null };
const RUN = statement<RunDetailRow>("chains.read.run", countedRun(`${WHOLE}, ${PREVIOUS}`));
const WATCHED_RUN = statement<CountedRunRow>("chains.read.watched_run", countedRun(LISTED));

export async function readRun(db: Db, runId: string): Promise<RunDetailRow | undefined> {
  return (await db.read(RUN, [runId]))[0];
}

/** For live views, which read it repeatedly: large `params` are null, as in a list. */
export async function readWatchedRun(db: Db, runId: string): Promise<CountedRunRow | undefined> {
  return (await db.read(WATCHED_RUN, [runId]))[0];
}

const DAG = statement<{ dag: Dag }>("chains.read.dag", "select dag_json as dag from chains.job_run where run_id = $1");

export async function readRunDag(db: Db, runId: string): Promise<Dag | undefined> {
  return (await db.read(DAG, [runId]))[0]?.dag;
}

export interface RunFilter {
  chainId: string | null;
  status: RunStatus | null;
  opTime: string | null;
  from: Date | null;
  to: Date | null;
  /** Part of the chain's name, or the start of a run's id. */
  q: string;
  /** The beginning of a run's id. */
  id: string | null;
  ids: readonly string[] | null;
  parentRunId: string | null;
  jobId: string | null;
  trigger: string | null;
  triggeredBy: string | null;
  /** A node of the run waits for this table, for room in this pool, for a worker or for its next attempt. */
  missingTable: string | null;
  fullPool: string | null;
  slot: true | null;
  retry: true | null;
  /** The last run of the previous page. */
  after: string | null;
}

/** Totals of a list are counted up to this limit, so that the cost does not follow history. */
const RUNS_COUNTED_MAX = 10_000;

/**
 * Runs of live nodes. As an array they are read first, and the runs by their key: a join could be planned as a walk through the runs
 * of all time.
 */
const hasNodeIn = (live: string) =>
  `r.run_id = any(array(select distinct l.run_id from (${live} limit ${COUNTED_MAX}) l))`;

const byFilter = {
  conditions: {
    chainId: (p: string) => `r.chain_id = ${p}::uuid`,
    status: (p: string) => `r.status = ${p}`,
    opTime: (p: string) => `r.op_time = ${p}`,
    from: (p: string) => `r.created_at >= ${p}`,
    to: (p: string) => `r.created_at < ${p}`,
    q: (p: string) => `(strpos(lower(r.job_name), lower(${p})) > 0 or starts_with(r.run_id::text, lower(${p})))`,
    // A range of the primary key: the digits that are not given are all 0, or all f.
    id: (p: string) => `r.run_id between rpad(replace(${p}, '-', ''), 32, '0')::uuid
       and rpad(replace(${p}, '-', ''), 32, 'f')::uuid`,
    ids: (p: string) => `r.run_id = any(${p}::uuid[])`,
    parentRunId: (p: string) => `r.parent_run_id = ${p}::uuid`,
    jobId: (p: string) => `r.job_id = ${p}`,
    trigger: (p: string) => `r.trigger = ${p}`,
    triggeredBy: (p: string) => `r.triggered_by = ${p}`,
    missingTable: (p: string) => hasNodeIn(`select run_id from chains.live_wait where table_name = ${p}`),
    fullPool: (p: string) => hasNodeIn(`select run_id from chains.live_node where state = 'ready' and pool = ${p}`),
    slot: (p: string) =>
      `${p}::boolean and ${hasNodeIn("select run_id from chains.live_node where state = 'ready' and pool is null")}`,
    retry: (p: string) =>
      `${p}::boolean and ${hasNodeIn("select run_id from chains.live_node where state = 'delayed' and due_at is not null")}`,
    // The first condition is for the index; the second decides between runs of the same moment.
    after: (p: string) => `r.created_at <= (select a.created_at from chains.job_run a where a.run_id = ${p}::uuid)
       and (r.created_at, r.run_id) < (select a.created_at, a.run_id from chains.job_run a where a.run_id = ${p}::uuid)`,
  },
  emptyIsNone: true,
} as const;
const RUNS = filtered<RunFilter, RunRow>({
  ...byFilter,
  name: "chains.read.runs",
  text: (where, parameter) => `select ${LISTED} from (
       select * from chains.job_run r where ${where}
       order by r.created_at desc, r.run_id desc limit ${parameter(0)} offset ${parameter(1)}
     ) r left join chains.job_chain_definition d on d.chain_id = r.chain_id
     order by r.created_at desc, r.run_id desc`,
});
const RUNS_TOTAL = filtered<RunFilter, { total: number }>({
  ...byFilter,
  name: "chains.read.runs_total",
  text: (where) =>
    `select count(*)::int as total from (select from chains.job_run r where ${where} limit ${RUNS_COUNTED_MAX}) counted`,
});

export async function listRuns(db: Db, filter: RunFilter, page: { size: number; offset: number }) {
  const { statement: list, values } = RUNS(filter);
  const [items, total] = await Promise.all([
    db.read(list, [...values, page.size, page.offset]),
    readTotal(db, { ...filter, after: null }),
  ]);
  return { items, total };
}

async function readTotal(db: Db, filter: RunFilter): Promise<number> {
  const { statement: total, values } = RUNS_TOTAL(filter);
  return (await db.read(total, values))[0]?.total ?? 0;
}

export interface NodeRow {
  node_id: string;
  status: NodeStatus;
  attempt: number;
  last_error: string | null;
  /** In the list of nodes, null if it is large. */
  artifact: unknown;
  artifact_bytes: number | null;
  started_at: Date | null;
  ended_at: Date | null;
  updated_at: Date;
  worker: string | null;
  progress: number | null;
  progress_note: string | null;
  /** From the live row of a node that has not ended. */
  state: LiveState | null;
  waiting: number | null;
  pool: string | null;
  due_at: Date | null;
  child_run_id: string | null;
  missing_tables: string[] | null;
  /** Its worker is lost, and it was not reclaimed yet. */
  is_lost: boolean;
  unserved: UnservedRole | null;
}

const nodeColumns = (artifact: string) => `n.node_id, n.status, n.attempt, n.last_error, ${artifact}, n.started_at,
          n.ended_at, n.updated_at, n.worker, n.progress, n.progress_note, l.state, l.waiting, l.pool, l.due_at,
          (select c.run_id from chains.job_run c where c.parent_run_id = n.run_id and c.parent_node_id = n.node_id
           order by c.created_at desc limit 1) as child_run_id,
          (select array_agg(w.table_name::text order by w.table_name) from chains.live_wait w
           where l.waiting > 0 and w.run_id = n.run_id and w.node_id = n.node_id) as missing_tables,
          coalesce(${IS_LOST}, false) as is_lost,
          case when ${WAITS_FOR_WORKER} and not ${isServed("worker")} then 'worker'
               when ${WAITS_FOR_SCHEDULER} and not ${isServed("scheduler")} then 'scheduler' end as unserved`;
const SMALL_ARTIFACT = `${upTo("n.artifact_json", ARTIFACT_LISTED_BYTES_MAX)} as artifact,
          ${bytesOf("n.artifact_json", ARTIFACT_LISTED_BYTES_MAX)} as artifact_bytes`;
const NO_ARTIFACT = "null::jsonb as artifact, null::int as artifact_bytes";
const nodes = (where: string, artifact = SMALL_ARTIFACT) => `select ${nodeColumns(artifact)}
   from chains.job_run_node n left join chains.live_node l on l.run_id = n.run_id and l.node_id = n.node_id
   where n.run_id = $1 ${where} order by n.node_no`;
const NODES = statement<NodeRow>("chains.read.nodes", nodes(""));
const CHANGED_NODES = statement<NodeRow>("chains.read.changed_nodes", nodes("and n.updated_at >= $2"));
const SOME_NODES = statement<NodeRow>("chains.read.some_nodes", nodes("and n.node_id = any($2::text[])"));

// A node that is in work can change what it waits for without an update of its own.
const BARE_NODES = statement<NodeRow>(
  "chains.read.bare_nodes",
  nodes("and ($2::timestamptz is null or n.updated_at >= $2 or l.state <> 'waiting')", NO_ARTIFACT),
);
const NODES_SINCE = statement<NodeRow>(
  "chains.read.nodes_since",
  nodes("and (n.updated_at >= $2 or l.state <> 'waiting')"),
);

export interface NodesAsked {
  artifacts: boolean;
  /** Only nodes that changed at that time or later, or that are in work. */
  since: Date | null;
}

/** In the order of the definition. */
export function readNodes(db: Db, runId: string, asked?: NodesAsked): Promise<NodeRow[]> {
  const { artifacts = true, since = null } = asked ?? {};
  if (!artifacts) return db.read(BARE_NODES, [runId, since]);
  return since === null ? db.read(NODES, [runId]) : db.read(NODES_SINCE, [runId, since]);
}

/** Nodes that were updated at that time or later. */
export function readChangedNodes(db: Db, runId: string, since: Date): Promise<NodeRow[]> {
  return db.read(CHANGED_NODES, [runId, since]);
}

export function readSomeNodes(db: Db, runId: string, nodeIds: readonly string[]): Promise<NodeRow[]> {
  return db.read(SOME_NODES, [runId, nodeIds]);
}

const NODE = statement<NodeRow & { def: NodeDef }>(
  "chains.read.node",
  `select ${nodeColumns("n.artifact_json as artifact, octet_length(n.artifact_json::text) as artifact_bytes")},
          r.dag_json -> 'nodes' -> n.node_no as def
   from chains.job_run_node n join chains.job_run r on r.run_id = n.run_id
   left join chains.live_node l on l.run_id = n.run_id and l.node_id = n.node_id
   where n.run_id = $1 and n.node_id = $2`,
);

/** One node with its whole artifact and its definition. */
export async function readNode(db: Db, runId: string, nodeId: string) {
  return (await db.read(NODE, [runId, nodeId]))[0];
}

const HAS_NODE = statement<{ found: boolean }>(
  "chains.read.has_node",
  "select exists (select from chains.job_run_node where run_id = $1 and node_id = $2) as found",
);

export async function hasNode(db: Db, runId: string, nodeId: string): Promise<boolean> {
  const [row] = await db.read(HAS_NODE, [runId, nodeId]);
  return row?.found ?? false;
}

const NODE_IDS = statement<{ node_id: string }>(
  "chains.read.node_ids",
  "select node_id from chains.job_run_node where run_id = $1 order by node_no",
);

export async function readNodeIds(db: Db, runId: string): Promise<string[]> {
  return (await db.read(NODE_IDS, [runId])).map(({ node_id }) => node_id);
}

export interface AttemptRow {
  attempt: number;
  status: string;
  error: string | null;
  worker: string | null;
  started_at: Date | null;
  ended_at: Date | null;
}
/** Then the end of the node's last attempt is stored as an attempt; the SUCCESS of the node was set by hand. */
const COMPLETED_BY_HAND = `exists (
     select from chains.job_run_attempt a where a.run_id = n.run_id and a.node_id = n.node_id and a.attempt = n.attempt)`;
const ATTEMPTS = statement<AttemptRow>(
  "chains.read.attempts",
  `select attempt, status, error, worker, started_at, ended_at from chains.job_run_attempt
   where run_id = $1 and node_id = $2
   union all
   select attempt, status, last_error, worker, started_at, ended_at from chains.job_run_node n
   where run_id = $1 and node_id = $2 and started_at is not null and not ${COMPLETED_BY_HAND}
   order by attempt`,
);

/** Oldest first; the last may still run. */
export function readAttempts(db: Db, runId: string, nodeId: string): Promise<AttemptRow[]> {
  return db.read(ATTEMPTS, [runId, nodeId]);
}

export interface EventRow {
  at: Date;
  kind: string;
  node_id: string | null;
  attempt: number | null;
  actor: string | null;
  detail: Record<string, unknown>;
}
// What people and timers did is stored as events; starts and ends are derived from the times of runs, nodes and attempts.
const EVENTS = statement<EventRow>(
  "chains.read.events",
  `select at, kind, node_id, attempt, actor, detail from (
     select at, id as tie, kind, node_id, (detail ->> 'attempt')::int as attempt, actor, detail
     from chains.job_run_event where run_id = $1
     union all
     select created_at, 0, 'run created', null, null, triggered_by, jsonb_build_object('trigger', trigger)
     from chains.job_run where run_id = $1
     union all
     select started_at, 1, 'run started', null, null, null, '{}' from chains.job_run
     where run_id = $1 and started_at is not null
     union all
     select ended_at, 9223372036854775807, 'run ended', null, null, null,
            jsonb_strip_nulls(jsonb_build_object('status', status, 'reason', reason))
     from chains.job_run where run_id = $1 and ended_at is not null
     union all
     select started_at, 3, 'node started', node_id, attempt, null, jsonb_strip_nulls(jsonb_build_object('worker', worker))
     from (select node_id, attempt, started_at, worker from chains.job_run_node where run_id = $1
           union select node_id, attempt, started_at, worker from chains.job_run_attempt where run_id = $1) s
     where started_at is not null
     union all
     select ended_at, 2, 'node ended', node_id, attempt, null,
            jsonb_strip_nulls(jsonb_build_object('status', status, 'error', error))
     from (select node_id, attempt, ended_at, status, last_error as error from chains.job_run_node n
           where run_id = $1 and not ${COMPLETED_BY_HAND}
           union all select node_id, attempt, ended_at, status, error from chains.job_run_attempt where run_id = $1) e
     where ended_at is not null
   ) all_events
   order by at, tie, node_id nulls first, attempt limit $2 offset $3`,
);

/** The events of a run in order. */
export function readEvents(db: Db, runId: string, page: { limit: number; offset: number }): Promise<EventRow[]> {
  return db.read(EVENTS, [runId, page.limit, page.offset]);
}
