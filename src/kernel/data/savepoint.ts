/** A part of a transaction, behind a savepoint, that may fail without failing the transaction. */
import type { Tx } from "./db.ts";
import { statement } from "./statement.ts";

const SAVEPOINT = statement("kernel.savepoint", "savepoint guarded");
const RELEASE = statement("kernel.savepoint_release", "release savepoint guarded");
const ROLL_BACK = statement("kernel.savepoint_roll_back", "rollback to savepoint guarded");

/**
 * Runs `work` so that its failure undoes only its own changes, and drops its `afterCommit` functions. No other statement of
 * the transaction may be in flight. The work gets its own `tx`, which refuses statements after the work has ended, because
 * they would not be undone.
 */
export async function guarded<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> {
  const afterwards = new Set<() => void>();
  let hasEnded = false;
  const own: Tx = {
    async rows(sent, values) {
      if (hasEnded) throw new Error(`${sent.name} was sent after the work that it belongs to had ended`);
      return tx.rows(sent, values);
    },
    afterCommit(fn) {
      if (hasEnded) throw new Error("afterCommit was called after the work that it belongs to had ended");
      afterwards.add(fn);
    },
  };
  // Not awaited: it fails only if the first statement of the work fails too.
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
    await tx.rows(RELEASE); // A rollback keeps the savepoint, which would hide an outer one of the same name.
    throw error;
  }
}
