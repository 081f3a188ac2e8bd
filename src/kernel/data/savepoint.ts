/** A part of a transaction that may fail without the rest of it. */
import type { Tx } from "./db.ts";
import { statement } from "./statement.ts";

const SAVEPOINT = statement("kernel.savepoint", "savepoint guarded");
const RELEASE = statement("kernel.savepoint_release", "release savepoint guarded");
const ROLL_BACK = statement("kernel.savepoint_roll_back", "rollback to savepoint guarded");

/**
 * Runs `work` so that its failure undoes its own changes only, and drops what it wanted done after the commit. Call it with
 * nothing else under way in the transaction. The work is given a `tx` of its own, which takes nothing once the work has
 * ended: if it has failed, that would not be undone.
 */
export async function guarded<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> {
  const afterwards = new Set<() => void>();
  let hasEnded = false;
  const own: Tx = {
    async rows(sent, values) {
      if (hasEnded) throw new Error(`${sent.name} came after the work that it belongs to had ended`);
      return tx.rows(sent, values);
    },
    afterCommit(fn) {
      if (hasEnded) throw new Error("afterCommit was called after the work that it belongs to had ended");
      afterwards.add(fn);
    },
  };
  // Not waited for: it fails only where the first statement of the work does too.
  tx.rows(SAVEPOINT).catch(() => {});
  try {
    const result = await work(own);
    hasEnded = true;
    await tx.rows(RELEASE);
    for (const fn of afterwards) tx.afterCommit(fn);
    return result;
  } catch (error) {
    hasEnded = true;
    await tx.rows(ROLL_BACK);
    await tx.rows(RELEASE); // It outlives the return to it, and would hide the one around it, which has the same name.
    throw error;
  }
}
