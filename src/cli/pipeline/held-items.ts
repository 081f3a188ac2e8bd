/**
 * Claimed items for as long as they are ours: one heartbeat for all of them keeps the leases, and each item learns when
 * its own is lost, because the server said so or because nothing was heard from the server for the length of the lease.
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
  /** From now on it is the caller's business no more. */
  letGo(item: HeldItem): void;
  /** Gives back what is still held and ends the heartbeat. What cannot be given back expires by itself. */
  giveBack(): Promise<void>;
}

/** Two heartbeats may get lost before the lease does. */
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
  const wireForm = () => [...held.keys()].map(({ filename, shard, fence }) => ({ filename, shard, fence }));

  function lose(item: HeldItem): void {
    held.get(item)?.abort();
    held.delete(item);
  }
  const loseAll = () => [...held.keys()].forEach(lose);

  let over = false;
  let expiry = setTimeout(loseAll, leaseMs);
  async function beat(): Promise<void> {
    const sentAt = performance.now();
    const lost = await heartbeat();
    if (!lost || over) return; // Not heard, then the expiry goes on ticking; or no longer of interest.
    clearTimeout(expiry);
    expiry = setTimeout(loseAll, leaseMs - (performance.now() - sentAt));
    for (const { filename, shard } of lost) {
      items.filter((item) => item.filename === filename && item.shard === shard).forEach(lose);
    }
  }

  async function heartbeat(): Promise<readonly Omit<Item, "fence">[] | undefined> {
    const asked = wireForm();
    if (asked.length === 0) return [];
    try {
      const { lost } = await client.call<{ lost: Omit<Item, "fence">[] }>({
        method: "POST",
        path: pathTo`api/v1/pipeline/queues/${stage}/heartbeat`,
        body: { items: asked, lease_seconds: leaseSeconds },
        timeoutMs: intervalMs,
      });
      return lost;
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      return error.exitCode === EXIT.wrongState ? asked : undefined;
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
    letGo: (item) => void held.delete(item),
    async giveBack() {
      over = true;
      clearInterval(ticker);
      clearTimeout(expiry);
      const left = wireForm();
      if (left.length === 0) return;
      await client
        .call({ method: "POST", path: pathTo`api/v1/pipeline/queues/${stage}/release`, body: { items: left } })
        .catch((error: OperatorError) => void process.stderr.write(`${error.message}\n`));
    },
  };
}
