/** SQL that keeps the partitions of batches and cursor events ahead of the calendar. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

const MISSING = statement<{ missing: boolean }>(
  "harvest.months.missing",
  `select bool_or(to_regclass('harvest.ing_task_run_batch' || to_char(month, '_YYYYMM')) is null) as missing
   from generate_series(date_trunc('month', $1::date), date_trunc('month', $1::date) + make_interval(months => $2 - 1), '1 month') month`,
);
const ADD = statement<{ added: number }>("harvest.months.add", "select harvest.add_months($1::date, $2) as added");

/** Adds the partitions of `months` months from this day on, where they are missing. Answers how many were. */
export async function addMonths(db: Queryable, day: string, months: number): Promise<number> {
  const [row] = await db.rows(MISSING, [day, months]);
  if (!row?.missing) return 0;
  return (await db.rows(ADD, [day, months]))[0]?.added ?? 0;
}
