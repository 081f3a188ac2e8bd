/** SQL that finds inconsistent rows. Each statement returns their number and an example. */
import type { Db } from "../../kernel/data/db.ts";
import {
  type Invariant,
  invariant,
  leaseHealthOf,
  type Violation,
  violationsOf,
} from "../../kernel/data/invariants.ts";
import { statement } from "../../kernel/data/statement.ts";
import { isServed } from "../../kernel/work/session.ts";
import { WAITS_FOR_SCHEDULER, WAITS_FOR_WORKER } from "./unserved.ts";

// For live nodes only, so that the cost follows the work in flight. Each DAG is unfolded once, not once per node.
const PARENTS = `chains.live_node n
     left join (
       select e.run_id, e.node_id, count(*) filter (where p.status not in ('SUCCESS', 'FAILED', 'SKIPPED')) as unmet,
              count(*) filter (where p.status = 'FAILED') as failed,
              count(*) filter (where p.status = 'SKIPPED') as skipped
       from (
         select distinct r.run_id, def ->> 'id' as node_id, parent
         from chains.job_run r
         cross join lateral jsonb_array_elements(r.dag_json -> 'nodes') def
         cross join lateral jsonb_array_elements_text(coalesce(def -> 'dependsOn', '[]')) parent
         where r.run_id in (select run_id from chains.live_node)
       ) e
       join chains.job_run_node p on p.run_id = e.run_id and p.node_id = e.parent
       group by e.run_id, e.node_id
     ) parents on parents.run_id = n.run_id and parents.node_id = n.node_id
     left join (
       select run_id, node_id, count(*) as missing from chains.live_wait group by run_id, node_id
     ) tables on tables.run_id = n.run_id and tables.node_id = n.node_id`;
const EXAMPLE = "n.run_id || '/' || n.node_id as example";

const RULES: Invariant[] = [
  invariant(
    "chains.invariant.counters",
    "the counters of a node equal its unmet, failed and skipped parents",
    `select ${EXAMPLE} from ${PARENTS}
       where n.waiting <> coalesce(parents.unmet, 0) + coalesce(tables.missing, 0)
         or n.failed <> coalesce(parents.failed, 0) or n.skipped <> coalesce(parents.skipped, 0)`,
  ),
  invariant(
    "chains.invariant.running",
    "a node is RUNNING exactly while it is leased or parked",
    `select coalesce(n.run_id, l.run_id) || '/' || coalesce(n.node_id, l.node_id) as example
       from (select * from chains.live_node where state in ('leased', 'parked')) l
       full join (select n.* from chains.live_run r join chains.job_run_node n on n.run_id = r.run_id
                  where n.status = 'RUNNING') n
       on n.run_id = l.run_id and n.node_id = l.node_id
       where n.run_id is null or l.run_id is null`,
  ),
  invariant(
    "chains.invariant.waiting",
    "a node is waiting, delayed, blocked or ready exactly while it is PENDING or RETRYING",
    `select coalesce(n.run_id, l.run_id) || '/' || coalesce(n.node_id, l.node_id) as example
       from (select * from chains.live_node where state in ('waiting', 'delayed', 'blocked', 'ready')) l
       full join (select n.* from chains.live_run r join chains.job_run_node n on n.run_id = r.run_id
                  where n.status in ('PENDING', 'RETRYING')) n
       on n.run_id = l.run_id and n.node_id = l.node_id
       where n.run_id is null or l.run_id is null`,
  ),
  invariant(
    "chains.invariant.live_runs",
    "a run is live exactly while it is RUNNING or STOPPING",
    `select coalesce(r.run_id, l.run_id)::text as example
       from chains.live_run l full join (select * from chains.job_run where status in ('RUNNING', 'STOPPING')) r
       on r.run_id = l.run_id
       where l.run_id is null or r.run_id is null or l.status <> r.status`,
  ),
  invariant(
    "chains.invariant.run_counts",
    "the counters of a live run equal its open, failed and stopped nodes",
    `select l.run_id::text as example from chains.live_run l, lateral (
         select count(*) filter (where status not in ('SUCCESS', 'FAILED', 'SKIPPED', 'STOPPED')) as open,
                count(*) filter (where status = 'FAILED') as failed,
                count(*) filter (where status = 'STOPPED') as stopped
         from chains.job_run_node n where n.run_id = l.run_id
       ) c where l.open <> c.open or l.failed <> c.failed or l.stopped <> c.stopped`,
  ),
  invariant(
    "chains.invariant.nodes_without_run",
    "every live node has a live run",
    `select n.run_id || '/' || n.node_id as example from chains.live_node n
       where not exists (select from chains.live_run r where r.run_id = n.run_id)`,
  ),
  invariant(
    "chains.invariant.fences",
    "no two leased nodes share a fence",
    "select min(run_id || '/' || node_id) as example from chains.live_node where state = 'leased' group by fence having count(*) > 1",
  ),
  invariant(
    "chains.invariant.stuck",
    "a waiting node has an unmet parent or table",
    `select ${EXAMPLE} from chains.live_node n join chains.live_run r on r.run_id = n.run_id
       where n.state = 'waiting' and n.waiting = 0`,
  ),
];

/** The rules that are violated. */
export function findViolations(db: Db): Promise<Violation[]> {
  return violationsOf(db, RULES);
}

export const leaseHealth = leaseHealthOf("chains.invariant.leases", "chains.live_node", "t.state = 'leased'");

const UNSERVED = statement<{ for_worker: number; for_scheduler: number; example: string | null }>(
  "chains.invariant.unserved",
  `with for_worker as (
     select l.run_id from chains.live_node l where ${WAITS_FOR_WORKER} and not ${isServed("worker")}
   ), for_scheduler as (
     select l.run_id from chains.live_node l where ${WAITS_FOR_SCHEDULER} and not ${isServed("scheduler")}
     union all
     select r.run_id from chains.job_run r where r.status = 'PENDING' and not ${isServed("scheduler")}
   )
   select (select count(*)::int from for_worker) as for_worker, (select count(*)::int from for_scheduler) as for_scheduler,
          (select min(run_id::text) from (select * from for_worker union all select * from for_scheduler) w) as example`,
);

/** Work that waits because no process with the role `worker` or `scheduler` is alive, and a run of it. */
export async function unservedWork(db: Db) {
  const [row] = await db.read(UNSERVED);
  if (!row) throw new Error("the statement for unserved work returned no row");
  return row;
}

const WITHOUT_POOL = statement<{ nodes: number; pool: string | null }>(
  "chains.invariant.poolless",
  `select count(*)::int as nodes, min(n.pool) as pool from chains.live_node n
   where n.state = 'ready' and n.pool is not null and not exists (select from chains.pool p where p.name = n.pool)`,
);

/** Ready nodes whose pool does not exist. */
export async function nodesWithoutPool(db: Db) {
  const [row] = await db.read(WITHOUT_POOL);
  if (!row) throw new Error("the statement for nodes without a pool returned no row");
  return row;
}
