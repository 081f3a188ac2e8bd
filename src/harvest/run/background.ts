/**
 * How BACKFILL and UPDATE make way for HARVEST, in three places:
 *
 * - A claim takes none of their tasks while a harvest of their source runs or is due (store/queue/tasks.ts).
 * - A task of theirs that runs goes back into the queue after the page that is under way, or the count, where it divides a slice.
 * - A quarter of the slots of a process is never theirs, so that a harvest of any source finds one free.
 *
 * So a harvest has the gates of its source for itself, except for at most one page of each task that ran before it. Sharing the rate
 * instead would cost a harvest that is bound by it the whole share.
 */
import { type ClaimedTask, doesHarvestWait, isBackground } from "../store/queue/tasks.ts";
import type { SliceEnd } from "./task.ts";
import type { Walk, WalkDeps } from "./walk.ts";

const HARVEST_SHARE = 0.25;
/** They are not claimed before the harvest is over, however short this is. */
const DELAY_MS = 1_000;

/** Ends the run after the present page or count if a harvest waits. */
export async function makeWay(
  { db }: Pick<WalkDeps, "db">,
  { task: { context } }: Walk,
): Promise<SliceEnd | undefined> {
  const { operation_code, provenance_code: source } = context;
  if (operation_code === "HARVEST" || !(await doesHarvestWait(db, source))) return undefined;
  return { kind: "later", isClean: true, delayMs: DELAY_MS, reason: `a harvest of ${source} goes first` };
}

type ClaimTasks = (limit: number, only?: (partitionKey: string) => boolean) => Promise<ClaimedTask[]>;

export interface Share {
  claim(limit: number, claim: ClaimTasks): Promise<ClaimedTask[]>;
  /** The task has ended, or was given back. */
  ended(fence: string): void;
}

/** Keeps slots free for HARVEST: at least one, unless there is only one. */
export function createShare(slots: number): Share {
  const max = Math.max(1, slots - Math.ceil(slots * HARVEST_SHARE));
  const running = new Set<string>();

  async function counted(claiming: Promise<ClaimedTask[]>): Promise<ClaimedTask[]> {
    const claimed = await claiming;
    for (const { partition_key, fence } of claimed) if (isBackground(partition_key)) running.add(fence);
    return claimed;
  }

  return {
    async claim(limit, claim) {
      const any = Math.min(limit, max - running.size);
      const first = any > 0 ? await counted(claim(any)) : [];
      // Fewer than there was room for: nothing else is due.
      if (first.length < any || first.length === limit) return first;
      return [...first, ...(await claim(limit - first.length, (key) => !isBackground(key)))];
    },
    ended: (fence) => void running.delete(fence),
  };
}
