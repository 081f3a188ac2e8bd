/** The lock of a tenant's graph: many at a time may take events that tell it nothing new, one alone may change it. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

/** Seeds the hash of a tenant's id, so that its lock is no number that others who lock by an id would come upon. */
const SEED = 1_280_265_806;
/** Who waits holds a connection; it is better told to come again. Of the transaction's other locks this holds as well. */
const PATIENCE = "2s";

// A case, because only of its parts the order is certain: the patience comes first.
const lock = (take: string) =>
  `select case when set_config('lock_timeout', '${PATIENCE}', true) is not null
     then ${take}(hashint8extended($1::int8, ${SEED})) end`;
const LOCK_SHARED = statement("lineage.lock_shared", lock("pg_advisory_xact_lock_shared"));
const LOCK_ALONE = statement("lineage.lock_alone", lock("pg_advisory_xact_lock"));

/** Held to the end of the transaction. Fails (`isTimedOut`) if others do not let go of it within some seconds. */
export async function lockGraph(tx: Queryable, tenantId: string, how: "shared" | "alone"): Promise<void> {
  await tx.rows(how === "alone" ? LOCK_ALONE : LOCK_SHARED, [tenantId]);
}
