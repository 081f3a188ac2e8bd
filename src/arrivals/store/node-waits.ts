/** SQL for nodes of chains that are parked for runs of models. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { InstanceKey } from "./instances.ts";

export interface NodeWaitRow extends InstanceKey {
  wait_id: string;
  /** The idempotency key of the attempt that waits. */
  key: string;
  run_id: string;
  node_id: string;
  force: boolean;
  /** Of the run that it waits for; null if that is still to be requested. */
  generation: number | null;
}
const COLUMNS = "w.wait_id, w.key, w.run_id, w.node_id, w.model_id, w.op_time, w.force, w.generation";

const INSERT = statement(
  "arrivals.node_wait.insert",
  `insert into arrivals.node_wait (wait_id, key, run_id, node_id, model_id, op_time, force)
   values ($1, $2, $3, $4, $5, $6, $7) on conflict (key) do nothing`,
);
const BY_KEY = statement<NodeWaitRow>(
  "arrivals.node_wait.by_key",
  `select ${COLUMNS} from arrivals.node_wait w where w.key = $1`,
);

/** Inserts the wait, or returns the one that has the same key. */
export async function insertNodeWait(db: Queryable, wait: Omit<NodeWaitRow, "generation">): Promise<NodeWaitRow> {
  const { wait_id, key, run_id, node_id, model_id, op_time, force } = wait;
  await db.rows(INSERT, [wait_id, key, run_id, node_id, model_id, op_time, force]);
  return (await db.rows(BY_KEY, [key]))[0] ?? { ...wait, generation: null };
}

const SET_GENERATION = statement<{ wait_id: string }>(
  "arrivals.node_wait.set_generation",
  "update arrivals.node_wait set generation = $2 where wait_id = $1 and generation is null returning wait_id",
);

/** False if another process has requested the run. */
export async function setWaitGeneration(tx: Queryable, waitId: string, generation: number): Promise<boolean> {
  return (await tx.rows(SET_GENERATION, [waitId, generation])).length > 0;
}

const DELETE = statement("arrivals.node_wait.delete", "delete from arrivals.node_wait where wait_id = $1");

export async function deleteNodeWait(db: Queryable, waitId: string): Promise<void> {
  await db.rows(DELETE, [waitId]);
}

const FOR_RUN = statement<NodeWaitRow>(
  "arrivals.node_wait.for_run",
  `select ${COLUMNS} from arrivals.node_wait w where w.model_id = $1 and w.op_time = $2 and w.generation = $3`,
);

/** The waits for one run of a model. */
export function waitsForRun(db: Queryable, { model_id, op_time }: InstanceKey, generation: number) {
  return db.rows(FOR_RUN, [model_id, op_time, generation]);
}

const FOR_END = statement<NodeWaitRow>(
  "arrivals.node_wait.for_end",
  `select ${COLUMNS} from arrivals.node_wait w
   where w.model_id = $1 and w.op_time = $2 and (w.generation = $3 or w.generation is null)`,
);

/** The waits that go on at the end of this run: those for it, and those that can request theirs then. */
export function waitsForEnd(db: Queryable, { model_id, op_time }: InstanceKey, generation: number) {
  return db.rows(FOR_END, [model_id, op_time, generation]);
}

// Outside of `in_flight` the run of that generation has ended, or was withdrawn before it started.
const DUE = statement<NodeWaitRow>(
  "arrivals.node_wait.due",
  `select ${COLUMNS} from arrivals.node_wait w
   left join arrivals.model_instance i on i.model_id = w.model_id and i.op_time = w.op_time
   where ($2::uuid is null or w.wait_id = $2) and ($3::text is null or (w.model_id = $3 and ($4::text is null or w.op_time = $4)))
     and (i.model_id is null
       or (w.generation is null and i.state not in ('running', 'parked', 'returned'))
       or i.generation > w.generation
       or (i.generation = w.generation and i.state not in ('running', 'parked', 'returned', 'retrying'))
       or (i.generation < w.generation and i.state = 'idle'))
   order by w.created_at limit $1`,
);

export interface WhichWaits {
  waitId?: string;
  modelId?: string;
  instance?: InstanceKey;
}

/** The waits that are over, and those whose run can be requested now. */
export function dueWaits(db: Queryable, limit: number, { waitId, modelId, instance }: WhichWaits = {}) {
  return db.rows(DUE, [limit, waitId ?? null, modelId ?? instance?.model_id ?? null, instance?.op_time ?? null]);
}

const CALLER = statement<InstanceKey & { generation: number }>(
  "arrivals.node_wait.caller",
  "select model_id, op_time, generation from arrivals.model_instance where chain_run_id = $1",
);

/** The instance that is parked with this run of a chain. */
export async function instanceWithChainRun(db: Queryable, chainRunId: string) {
  return (await db.rows(CALLER, [chainRunId]))[0];
}
