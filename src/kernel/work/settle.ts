/**
 * Writes the results of leased items: in batches, or each separately if `batchMax` is 1. A write that fails because the
 * database is unavailable, or that timed out, is retried for as long as a session may live.
 */
import { isTimedOut, isUnavailable } from "../data/db.ts";
import { createGroupCommit } from "../data/group-commit.ts";
import { withRetry } from "./retry.ts";
import { OUTLAST_SESSION } from "./session.ts";

/** How long timed-out writes are repeated. */
const TIMED_OUT_MS = 60_000;

/** Answers a function that resolves when the result of the item with this fence is written. */
export function createSettle<Result>(write: (results: readonly Result[]) => Promise<void>, batchMax: number) {
  function writeWithRetry(results: readonly Result[]): Promise<void> {
    const retryUntilMs = performance.now() + TIMED_OUT_MS; // One statement may take that long before it times out.
    return withRetry(() => write(results), {
      policy: OUTLAST_SESSION,
      retryOn: (error) => isUnavailable(error) || (isTimedOut(error) && performance.now() < retryUntilMs),
    });
  }
  if (batchMax === 1) return (_fence: string, result: Result) => writeWithRetry([result]);
  const batches = createGroupCommit<{ fence: string; result: Result }, void>({
    identity: ({ fence }) => fence,
    itemsMax: batchMax,
    waitingMax: Number.POSITIVE_INFINITY, // The worker limits what is in flight.
    async write(items) {
      await writeWithRetry(items.map(({ result }) => result));
      return items.map(() => undefined);
    },
  });
  return (fence: string, result: Result) => batches.add({ fence, result });
}
