/**
 * Writes the results of leased items: in batches, or each separately if `batchMax` is 1. A write that fails because the
 * database is unavailable is retried for as long as a session may live, one that was cancelled or timed out twice.
 */
import { isTimedOut, isUnavailable } from "../data/db.ts";
import { createGroupCommit } from "../data/group-commit.ts";
import { withRetry } from "./retry.ts";
import { OUTLAST_SESSION } from "./session.ts";

/** How often a write that timed out is repeated: each time may take as long as a statement may. */
const TIMEOUT_RETRIES = 2;

/** Answers a function that resolves when the result of the item with this fence is written. */
export function createSettle<Result>(write: (results: readonly Result[]) => Promise<void>, batchMax: number) {
  function writeWithRetry(results: readonly Result[]): Promise<void> {
    let timeouts = 0;
    return withRetry(() => write(results), {
      policy: OUTLAST_SESSION,
      retryOn(error) {
        if (isTimedOut(error)) timeouts += 1;
        return isUnavailable(error) || (isTimedOut(error) && timeouts <= TIMEOUT_RETRIES);
      },
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
