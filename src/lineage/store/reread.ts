/** SQL for reading stored events again: the next tenant, and the position in its assertions. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

const NEXT = statement<{ id: string }>(
  "lineage.reread.next",
  "select id::text from lineage.tenant t where reread_after is not null order by t.id limit 1",
);
/** A tenant with events to be read again, if there is one. */
export const nextReread = async (db: Db): Promise<string | undefined> => (await db.rows(NEXT))[0]?.id;

const AFTER = statement<{ after: string | null }>(
  "lineage.reread.after",
  "select reread_after::text as after from lineage.tenant where id = $1",
);
/** The assertion after which it continues; null once it is done. */
export const rereadAfter = async (tx: Queryable, tenantId: string): Promise<string | null> =>
  (await tx.rows(AFTER, [tenantId]))[0]?.after ?? null;

/** An assertion and its last time. */
export interface StoredTime {
  assertion: string;
  /** Microseconds. */
  last_at: string;
}
const PAGE = statement<StoredTime>(
  "lineage.reread.page",
  `select t.key as assertion, t.last_at::text from lineage.assertion t
   where t.tenant_id = $1 and t.key > $2 order by t.key limit $3`,
);
export const assertionsAfter = (tx: Queryable, tenantId: string, after: string, limit: number): Promise<StoredTime[]> =>
  tx.rows(PAGE, [tenantId, after, limit]);

// Distinct, since most assertions of a page have the same keys.
const NAMED = statement<{ key: string }>(
  "lineage.reread.named",
  "select distinct m.key from lineage.mention m where m.tenant_id = $1 and m.assertion = any($2::uuid[])",
);
/** The keys of what these assertions name, and of its parents. */
export const keysNamedBy = async (tx: Queryable, tenantId: string, assertions: readonly string[]): Promise<string[]> =>
  (await tx.rows(NAMED, [tenantId, assertions])).map(({ key }) => key);

const MOVE = statement("lineage.reread.move", "update lineage.tenant set reread_after = $2 where id = $1");
export async function moveReread(tx: Queryable, tenantId: string, after: string | null): Promise<void> {
  await tx.rows(MOVE, [tenantId, after]);
}
