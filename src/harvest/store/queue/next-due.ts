/** When the next item of a queue is due, by an index that starts with a level of the queue, such as its partition or priority. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

interface Queue {
  table: string;
  /** The condition of the partial index. */
  isQueued: string;
  level: string;
  dueAt: string;
}

/** Milliseconds until an item that is not due yet is due; Infinity if there is none. The earliest item of each level is one step. */
export function nextDueOf(name: string, { table, isQueued, level, dueAt }: Queue): (db: Queryable) => Promise<number> {
  const next = (after: string) => `select t.${level} from ${table} t where ${isQueued}${after} order by 1 limit 1`;
  const NEXT = statement<{ ms: number | null }>(
    name,
    `with recursive queue(level) as (
       (${next("")})
       union all
       select (${next(` and t.${level} > queue.level`)}) from queue where level is not null
     )
     select extract(epoch from min(due.at) - now())::float8 * 1000 as ms
     from queue cross join lateral (
       select min(t.${dueAt}) as at from ${table} t where ${isQueued} and t.${level} = queue.level and t.${dueAt} > now()
     ) due where level is not null`,
  );
  return async (db) => (await db.rows(NEXT))[0]?.ms ?? Number.POSITIVE_INFINITY;
}
