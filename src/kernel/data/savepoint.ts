/** A part of a transaction that may fail without the rest of it. */
import type { Queryable } from "./db.ts";
import { statement } from "./statement.ts";

const SAVEPOINT = statement("kernel.savepoint", "savepoint guarded");
const RELEASE = statement("kernel.savepoint_release", "release savepoint guarded");
const ROLL_BACK = statement("kernel.savepoint_roll_back", "rollback to savepoint guarded");

/**
 * Runs `work` so that its failure undoes its own changes only. Call it with nothing else under way in the transaction. The work
 * is given a `tx` of its own, which takes nothing once the work has failed: it would not be undone.
 */
export async function guarded<T>(tx: Queryable, work: (tx: Queryable) => Promise<T>): Promise<T> {
  let hasFailed = false;
  const own: Queryable = {
    async rows(sent, values) {
      if (hasFailed) throw new Error(`${sent.name} came after the work that it belongs to had failed`);
      return tx.rows(sent, values);
    },
  };
  // Not waited for: it fails only where the first statement of the work does too.
  tx.rows(SAVEPOINT).catch(() => {});
  try {
    const result = await work(own);
    await tx.rows(RELEASE);
    return result;
  } catch (error) {
    hasFailed = true;
    await tx.rows(ROLL_BACK);
    await tx.rows(RELEASE); // It outlives the return to it, and would hide the one around it, which has the same name.
    throw error;
  }
}
