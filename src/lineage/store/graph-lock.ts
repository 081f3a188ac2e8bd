/** The lock of a tenant's graph: shared by transactions that take events of settled assertions, exclusive for changes. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

/** Seeds the hash of a tenant's id, so that its lock differs from other locks by id. */
const SEED = 1_280_265_806;
/** Short, because a waiting transaction holds a connection. It holds for the other locks of the transaction too. */
const LOCK_TIMEOUT = "2s";

// A `case`, because it guarantees the order: the time-out is set before the lock is taken.
const lock = (take: string) =>
  `select case when set_config('lock_timeout', '${LOCK_TIMEOUT}', true) is not null
     then ${take}(hashint8extended($1::int8, ${SEED})) end`;
const LOCK_SHARED = statement("lineage.lock_shared", lock("pg_advisory_xact_lock_shared"));
const LOCK_EXCLUSIVE = statement("lineage.lock_exclusive", lock("pg_advisory_xact_lock"));

/** Held to the end of the transaction. Fails (`isTimedOut`) if others hold it for some seconds. */
export async function lockGraph(tx: Queryable, tenantId: string, how: "shared" | "exclusive"): Promise<void> {
  await tx.rows(how === "exclusive" ? LOCK_EXCLUSIVE : LOCK_SHARED, [tenantId]);
}
