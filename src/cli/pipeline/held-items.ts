/**
 * Keeps the leases of claimed items with one heartbeat for all of them. An item's signal aborts when its lease is lost: because
 * the server said so, or because no heartbeat succeeded for the length of the lease.
 */
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, pathTo } from "../common/client.ts";
import { EXIT } from "../common/exit-codes.ts";

export interface Item {
  filename: string;
  shard: number;
  fence: string;
}

export interface HeldItem extends Item {
  /** Aborted when the lease is lost. */
  readonly lost: AbortSignal;
}

export interface HeldItems {
  readonly items: readonly HeldItem[];
  /** Stops keeping the lease of this item. */
  forget(item: HeldItem): void;
  /** Releases the remaining items and ends the heartbeat. An item that cannot be released expires. */
  release(): Promise<void>;
}

/** Two heartbeats may fail before the lease is lost. */
const HEARTBEATS_PER_LEASE = 3;

export function holdItems(
  claimed: readonly Item[],
  { client, stage, leaseSeconds }: { client: Client; stage: string; leaseSeconds: number },
): HeldItems {
  const leaseMs = leaseSeconds * 1000;
  const intervalMs = Math.floor(leaseMs / HEARTBEATS_PER_LEASE);
  const held = new Map<HeldItem, AbortController>();
  for (const { filename, shard, fence } of claimed) {
    const controller = new AbortController();
    held.set({ filename, shard, fence, lost: controller.signal }, controller);
  }
  const items = [...held.keys()];
  const remaining = () => [...held.keys()].map(({ filename, shard, fence }) => ({ filename, shard, fence }));

  function lose(item: HeldItem): void {
    held.get(item)?.abort();
    held.delete(item);
  }
  const loseAll = () => [...held.keys()].forEach(lose);

  let isOver = false;
  let expiry = setTimeout(loseAll, leaseMs);
  async function beat(): Promise<void> {
    const sentAt = performance.now();
    const lost = await heartbeat();
    if (!lost || isOver) return; // After a failed heartbeat, the expiry timer keeps running.
    clearTimeout(expiry);
    expiry = setTimeout(loseAll, leaseMs - (performance.now() - sentAt));
    for (const { filename, shard } of lost) {
      items.filter((item) => item.filename === filename && item.shard === shard).forEach(lose);
    }
  }

  async function heartbeat(): Promise<readonly Omit<Item, "fence">[] | undefined> {
    const sent = remaining();
    if (sent.length === 0) return [];
    try {
      const { lost } = await client.call<{ lost: Omit<Item, "fence">[] }>({
        method: "POST",
        path: pathTo`api/v1/pipeline/queues/${stage}/heartbeat`,
        body: { items: sent, lease_seconds: leaseSeconds },
        timeoutMs: intervalMs,
      });
      return lost;
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      return error.exitCode === EXIT.wrongState ? sent : undefined;
    }
  }

  let beating = false;
  const ticker = setInterval(() => {
    if (beating) return;
    beating = true;
    void beat().finally(() => {
      beating = false;
    });
  }, intervalMs);

  return {
    items,
    forget: (item) => void held.delete(item),
    async release() {
      isOver = true;
      clearInterval(ticker);
      clearTimeout(expiry);
      const left = remaining();
      if (left.length === 0) return;
      await client
        .call({ method: "POST", path: pathTo`api/v1/pipeline/queues/${stage}/release`, body: { items: left } })
        .catch((error: OperatorError) => void process.stderr.write(`${error.message}\n`));
    },
  };
}
