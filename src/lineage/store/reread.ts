/** SQL for reading stored events again: which tenant, and how far it has come. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

const NEXT = statement<{ id: string }>(
  "lineage.reread.next",
  "select id::text from lineage.tenant where reread_after is not null order by id limit 1",
);
/** A tenant with events to be read again, if there is one. */
export const nextReread = async (db: Db): Promise<string | undefined> => (await db.rows(NEXT))[0]?.id;

const AFTER = statement<{ after: string | null }>(
  "lineage.reread.after",
  "select reread_after::text as after from lineage.tenant where id = $1",
);
/** Behind which telling it goes on; null once it is done. */
export const rereadAfter = async (tx: Queryable, tenantId: string): Promise<string | null> =>
  (await tx.rows(AFTER, [tenantId]))[0]?.after ?? null;

/** A telling, and when it was told for the last time. */
export interface StoredTime {
  telling: string;
  /** Microseconds. */
  last_at: string;
}
const PAGE = statement<StoredTime>(
  "lineage.reread.page",
  `select t.key as telling, t.last_at::text from lineage.telling t
   where t.tenant_id = $1 and t.key > $2 order by t.key limit $3`,
);
export const tellingsAfter = (tx: Queryable, tenantId: string, after: string, limit: number): Promise<StoredTime[]> =>
  tx.rows(PAGE, [tenantId, after, limit]);

// The same keys come with most tellings of a page.
const NAMED = statement<{ key: string }>(
  "lineage.reread.named",
  "select distinct m.key from lineage.mention m where m.tenant_id = $1 and m.telling = any($2::uuid[])",
);
/** The keys of what these tellings name, and of what that lies in. */
export const keysNamedBy = async (tx: Queryable, tenantId: string, tellings: readonly string[]): Promise<string[]> =>
  (await tx.rows(NAMED, [tenantId, tellings])).map(({ key }) => key);

const MOVE = statement("lineage.reread.move", "update lineage.tenant set reread_after = $2 where id = $1");
export async function moveReread(tx: Queryable, tenantId: string, after: string | null): Promise<void> {
  await tx.rows(MOVE, [tenantId, after]);
}
