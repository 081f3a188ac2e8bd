/** SQL for nodes of chains that are parked for plans. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { PlanState } from "../../states.ts";
import type { Namespace } from "./plans.ts";

export interface NodeWaitRow {
  wait_id: string;
  /** The idempotency key of the attempt that waits. */
  key: string;
  run_id: string;
  node_id: string;
  plan_id: string;
}
const COLUMNS = "w.wait_id, w.key, w.run_id, w.node_id, w.plan_id";

const BY_KEY = statement<NodeWaitRow>(
  "harvest.node_wait.by_key",
  `select ${COLUMNS} from harvest.node_wait w where w.key = $1`,
);

export async function nodeWaitOf(db: Queryable, key: string): Promise<NodeWaitRow | undefined> {
  return (await db.rows(BY_KEY, [key]))[0];
}

const INSERT = statement(
  "harvest.node_wait.insert",
  "insert into harvest.node_wait (wait_id, key, run_id, node_id, plan_id) values ($1, $2, $3, $4, $5)",
);

export async function insertNodeWait(tx: Queryable, wait: NodeWaitRow): Promise<void> {
  await tx.rows(INSERT, [wait.wait_id, wait.key, wait.run_id, wait.node_id, wait.plan_id]);
}

const DELETE = statement("harvest.node_wait.delete", "delete from harvest.node_wait where wait_id = any($1::uuid[])");

export async function deleteNodeWaits(db: Queryable, waitIds: readonly string[]): Promise<void> {
  await db.rows(DELETE, [waitIds]);
}

export interface EndedWait extends NodeWaitRow {
  status_code: PlanState;
  reason: string | null;
  source: string;
  endpoint: string;
  /** A window of the plan that could not land, with the reason. */
  not_landed: string | null;
}

// The node after it reads the table, so a plan is over for a node when its windows have landed.
const ENDED = statement<EndedWait>(
  "harvest.node_wait.ended",
  `select ${COLUMNS}, p.status_code, p.record_remarks ->> 'reason' as reason, p.provenance_code as source,
          p.endpoint_name as endpoint,
          (select format('%s %s: %s', l.table_name, l.op_time, l.last_error) from harvest.landing l
           where l.plan_id = w.plan_id and l.status_code = 'FAILED' order by l.op_time limit 1) as not_landed
   from harvest.node_wait w join harvest.ing_plan p on p.plan_id = w.plan_id
   where p.ended_at is not null
     and (p.status_code <> 'COMPLETE' or not exists (
       select from harvest.landing l where l.plan_id = w.plan_id and l.status_code in ('PENDING', 'LANDING')))
   order by w.created_at limit $1`,
);

/** Waits for plans that have ended and whose windows have landed, if they are complete. */
export function endedWaits(db: Queryable, limit: number): Promise<EndedWait[]> {
  return db.rows(ENDED, [limit]);
}

const OPEN = statement<NodeWaitRow>(
  "harvest.node_wait.open",
  `select ${COLUMNS} from harvest.node_wait w join harvest.ing_plan p on p.plan_id = w.plan_id
   where p.ended_at is null order by w.created_at limit $1`,
);

/** Waits for plans that go on. */
export function openWaits(db: Queryable, limit: number): Promise<NodeWaitRow[]> {
  return db.rows(OPEN, [limit]);
}

const OF_PLAN = statement<NodeWaitRow>(
  "harvest.node_wait.of_plan",
  `select ${COLUMNS} from harvest.node_wait w where w.plan_id = $1`,
);

export function waitsOfPlan(tx: Queryable, planId: string): Promise<NodeWaitRow[]> {
  return tx.rows(OF_PLAN, [planId]);
}

const MADE_FOR_NODES = statement<{ partition_key: string }>(
  "harvest.node_wait.made_for",
  `select concat_ws('/', p.provenance_code, p.endpoint_name, p.operation_code) as partition_key
   from harvest.ing_plan p join harvest.ing_schedule_instance i using (schedule_instance_id)
   where p.plan_id = $1 and i.trigger_type_code = 'CHAIN'`,
);

/** The partition of a plan that a node has made; undefined for the plans of people and schedules. */
export async function partitionOfNodePlan(db: Queryable, planId: string): Promise<string | undefined> {
  return (await db.rows(MADE_FOR_NODES, [planId]))[0]?.partition_key;
}

const EQUAL_PLAN = statement<{ plan_id: string }>(
  "harvest.plan.open_equal",
  `select plan_id from harvest.ing_plan
   where endpoint_id = $1 and operation_code = $2 and namespace_scope_code = $3 and namespace_key = $4
     and spec_fingerprint = $5 and ($6::timestamptz is null or (window_from = $6 and window_to = $7)) and ended_at is null
   order by plan_id desc limit 1`,
);

/** An open plan of the same window with the same definition; without a window, the newest open plan of the namespace. */
export async function openEqualPlan(
  tx: Queryable,
  { endpointId, operation, scope, key }: Namespace,
  specFingerprint: string,
  window: { from: Date; to: Date } | undefined,
): Promise<string | undefined> {
  const values = [endpointId, operation, scope, key, specFingerprint, window?.from ?? null, window?.to ?? null];
  return (await tx.rows(EQUAL_PLAN, values))[0]?.plan_id;
}
