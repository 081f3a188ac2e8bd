/** SQL for the timers of deadlines: each dependency has one, set to its next deadline. */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { DependencyRow, ModelFacts } from "./models.ts";

export interface DeadlineWrite {
  dependency_id: string;
  op_time: string;
  due_at: Date;
}
const DEADLINE = { dependency_id: "int8", op_time: "text", due_at: "timestamptz" };
const SET = statement(
  "arrivals.deadline.set",
  `insert into arrivals.model_deadline (dependency_id, op_time, due_at) select * from ${unnest(DEADLINE, "i")}
   on conflict (dependency_id) do update set op_time = excluded.op_time, due_at = excluded.due_at`,
);

export async function setDeadlines(tx: Queryable, deadlines: readonly DeadlineWrite[]): Promise<void> {
  if (deadlines.length > 0) await tx.rows(SET, toArrays(DEADLINE, deadlines));
}

const DROP = statement(
  "arrivals.deadline.drop",
  `delete from arrivals.model_deadline t using arrivals.metrics_model_dependency d
   where d.id = t.dependency_id and d.model_id = $1`,
);

export async function dropDeadlines(tx: Queryable, modelId: string): Promise<void> {
  await tx.rows(DROP, [modelId]);
}

export interface DueDeadline extends ModelFacts {
  dependency: DependencyRow;
  op_time: string;
  due_at: Date;
}
const DUE = statement<DueDeadline>(
  "arrivals.deadline.due",
  `select m.model_id, m.state, m.grain, m.time_zone, m.rerun, to_jsonb(d) as dependency, t.op_time, t.due_at
   from arrivals.model_deadline t
   join arrivals.metrics_model_dependency d on d.id = t.dependency_id
   join arrivals.metrics_model m on m.model_id = d.model_id
   where t.due_at <= now() order by t.due_at limit $1 for update of t skip locked`,
);

export function dueDeadlines(tx: Queryable, limit: number): Promise<DueDeadline[]> {
  return tx.rows(DUE, [limit]);
}

export interface Timers {
  ready: boolean;
  /** An instance is parked with a run of a chain, or a node with a run of a model. */
  waits: boolean;
  /** Of quiet periods, retries, deadlines of tables, and time-outs of parked models. */
  next_due_ms: number | null;
  next_retry_ms: number | null;
  next_deadline_ms: number | null;
  next_timeout_ms: number | null;
}
const TIMERS = statement<Timers>(
  "arrivals.timers.look",
  `select exists (select from arrivals.model_instance where state in ('ready', 'returned')) as ready,
          exists (select from arrivals.model_instance where state = 'parked') or exists (select from arrivals.node_wait) as waits,
          (select extract(epoch from min(due_at) - now()) * 1000 from arrivals.model_instance where state = 'parked')::float8
            as next_timeout_ms,
          (select extract(epoch from min(due_at) - now()) * 1000 from arrivals.model_instance where state = 'quiet')::float8
            as next_due_ms,
          (select extract(epoch from min(due_at) - now()) * 1000 from arrivals.model_instance where state = 'retrying')::float8
            as next_retry_ms,
          (select extract(epoch from min(due_at) - now()) * 1000 from arrivals.model_deadline)::float8 as next_deadline_ms`,
);

/** When the next timers are due, in one query, so that an idle system costs little. */
export async function readTimers(db: Queryable): Promise<Timers> {
  const [row] = await db.rows(TIMERS);
  if (!row) throw new Error("the query of the timers returned no row");
  return row;
}
