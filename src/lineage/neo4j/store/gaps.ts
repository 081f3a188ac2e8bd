/** SQL for gaps of the Neo4j projection: tenants of whose graph it has refused a change. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface Gap {
  tenant_id: string;
  first_at: Date;
  /** How many were refused. */
  changes: number;
  /** The last reason. */
  error: string;
}

const NOTE = statement<{ inserted: boolean }>(
  "lineage.mirror.note_gap",
  `insert into lineage.mirror_gap as g (tenant_id, error) select id, $2 from lineage.tenant where id = $1
   on conflict (tenant_id) do update set last_at = clock_timestamp(), changes = g.changes + 1, error = excluded.error
   returning g.xmax = 0 as inserted`,
);
/** Answers whether it is the tenant's first. */
export const noteGap = async (db: Db, tenantId: string, error: string): Promise<boolean> =>
  (await db.rows(NOTE, [tenantId, error]))[0]?.inserted ?? false;

const LIST = statement<Gap>(
  "lineage.mirror.gaps",
  "select tenant_id::text, first_at, changes::float8 as changes, error from lineage.mirror_gap g order by g.tenant_id limit 100",
);
/** The first hundred. */
export const listGaps = (db: Db): Promise<Gap[]> => db.read(LIST);

const TIME = statement<{ at: string }>("lineage.mirror.time", "select clock_timestamp()::text as at");
/** With all its digits. */
export async function databaseTime(db: Db): Promise<string> {
  const [row] = await db.rows(TIME);
  if (!row) throw new Error("the database returned no time");
  return row.at;
}

const DELETE = statement(
  "lineage.mirror.delete_gap",
  "delete from lineage.mirror_gap where tenant_id = $1 and last_at < $2",
);
/** If nothing was refused since that time. */
export async function deleteGap(db: Db, tenantId: string, before: string): Promise<void> {
  await db.rows(DELETE, [tenantId, before]);
}
