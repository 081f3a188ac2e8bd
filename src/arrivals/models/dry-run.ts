/** A transaction that may be for show: a dry run does everything, refusals included, and is then rolled back. */
import type { Db, Tx } from "../../kernel/data/db.ts";

export interface DryRun {
  /** Nothing is changed; the answer is what it would be. */
  dryRun: boolean;
}

export async function transact<Result>(db: Db, { dryRun }: DryRun, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  if (!dryRun) return db.tx(work);
  const seen: Result[] = [];
  const enough = new Error("A dry run is rolled back.");
  await db
    .tx(async (tx) => {
      seen.push(await work(tx));
      throw enough;
    })
    .catch((error: unknown) => {
      if (error !== enough) throw error;
    });
  return seen.at(-1) as Result;
}
