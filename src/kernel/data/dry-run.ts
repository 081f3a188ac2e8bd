/** A transaction that may be a dry run: it makes every check and change, and is then rolled back. */
import type { Db, Tx } from "./db.ts";

export interface DryRun {
  /** Answers the result without changing anything. */
  dryRun: boolean;
}

/** The default: the transaction is committed. */
export const FOR_REAL: DryRun = { dryRun: false };

export async function transact<Result>(db: Db, { dryRun }: DryRun, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  if (!dryRun) return db.tx(work);
  const results: Result[] = [];
  const rollback = new Error("A dry run is rolled back.");
  await db
    .tx(async (tx) => {
      results.push(await work(tx));
      throw rollback;
    })
    .catch((error: unknown) => {
      if (error !== rollback) throw error;
    });
  return results.at(-1) as Result;
}
