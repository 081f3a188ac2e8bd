/** Deletes old rows every hour, in batches, in one process at a time. */
import type { Db, Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { HOUR_MS } from "../time/units.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "./service.ts";

const BATCH_MAX = 1_000;

export interface Batch {
  /** Rows that were looked at. Fewer than the limit: there is nothing more to do for now. */
  looked: number;
  deleted: number;
}

export interface RetentionDeps {
  db: Db;
  log: ServiceLog;
  onRun: OnRun;
}

export interface RetentionOptions extends RetentionDeps {
  name: string;
  /** Deletes at most `limit` of the oldest rows. */
  deleteBatch(tx: Tx, limit: number): Promise<Batch>;
  batchMax?: number;
}

// Held for one batch: a process that dies gives it back.
const LOCK = statement<{ mine: boolean }>(
  "kernel.retention.lock",
  "select pg_try_advisory_xact_lock(hashtextextended('retention ' || $1, 0)) as mine",
);

export function createRetention({
  name,
  db,
  log,
  onRun,
  deleteBatch,
  batchMax = BATCH_MAX,
}: RetentionOptions): Service {
  return createService({
    name,
    intervalMs: HOUR_MS,
    log,
    onRun,
    runOnce: () =>
      db.tx(async (tx) => {
        const [lock] = await tx.rows(LOCK, [name]);
        const { looked, deleted } = lock?.mine ? await deleteBatch(tx, batchMax) : { looked: 0, deleted: 0 };
        return { looked, deleted };
      }),
    more: ({ looked = 0 }) => looked === batchMax,
  });
}
