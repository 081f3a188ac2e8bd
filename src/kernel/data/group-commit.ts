/**
 * Combines single writes into batches and acknowledges each after its batch is committed. A write is sent at once when no
 * batch is in flight; writes that are added during a batch form the next one. So a single caller does not wait, and a
 * thousand concurrent callers share one commit.
 */

import { kernelError } from "../errors.ts";
import { isTimedOut, isUnavailable } from "./db.ts";

export interface GroupCommitOptions<Item, Result> {
  /** Writes the items in one transaction and returns their results in the same order. */
  write(items: readonly Item[]): Promise<readonly Result[]>;
  /** Two items with the same identity never share a batch: the second waits for the first. */
  identity(item: Item): string;
  itemsMax?: number;
  /**
   * Yields to the event loop between batches, so that items which follow directly from a batch join the next one. Without it
   * two groups of callers alternate: one is written while the other waits.
   */
  yieldsBetweenBatches?: boolean;
  /** Beyond this many waiting items, new ones are refused with 503. */
  waitingMax?: number;
}

export interface GroupCommit<Item, Result> {
  /** Resolves after COMMIT. */
  add(item: Item): Promise<Result>;
  waiting(): number;
  /** Resolves when everything added so far has been written. */
  drain(): Promise<void>;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

const ITEMS_MAX = 100;
const WAITING_MAX = 10_000;
const RETRY_AFTER_SECONDS = 1;

export function createGroupCommit<Item, Result>(options: GroupCommitOptions<Item, Result>): GroupCommit<Item, Result> {
  const itemsMax = options.itemsMax ?? ITEMS_MAX;
  const waitingMax = options.waitingMax ?? WAITING_MAX;
  let queue: Waiting<Item, Result>[] = [];
  let flushing: Promise<void> | undefined;

  function takeBatch(): Waiting<Item, Result>[] {
    const batch: Waiting<Item, Result>[] = [];
    const later: Waiting<Item, Result>[] = [];
    const identities = new Set<string>();
    for (const [index, waiting] of queue.entries()) {
      if (batch.length === itemsMax) {
        later.push(...queue.slice(index));
        break;
      }
      const identity = options.identity(waiting.item);
      (identities.has(identity) ? later : batch).push(waiting);
      identities.add(identity);
    }
    queue = later;
    return batch;
  }

  async function flush(): Promise<void> {
    await new Promise(setImmediate); // Lets the requests that are already parsed join the first batch.
    while (queue.length > 0) {
      await write(takeBatch());
      if (options.yieldsBetweenBatches) await new Promise(setImmediate);
    }
    flushing = undefined;
  }

  async function write(batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.write(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      // After a time-out or a lost connection, single writes would take as long again each while others wait.
      if (batch.length > 1 && !isUnavailable(error) && !isTimedOut(error)) {
        for (const waiting of batch) await write([waiting]); // One bad item must not fail the others.
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  return {
    add(item) {
      if (queue.length >= waitingMax) {
        return Promise.reject(kernelError("OVERLOADED", { waiting: queue.length, seconds: RETRY_AFTER_SECONDS }));
      }
      return new Promise((resolve, reject) => {
        queue.push({ item, resolve, reject });
        flushing ??= flush();
      });
    },
    waiting: () => queue.length,
    async drain() {
      await flushing; // Runs until the queue is empty.
    },
  };
}
