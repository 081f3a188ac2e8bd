/**
 * After a tenant has chosen a model, queues its assets whose embedding or summary is missing or another model's, step by step. The
 * progress is stored with the tenant, so any process can continue. There are two rounds: processes cache tenants for some
 * seconds, and one that did not know of the model yet may have added an asset behind the first round.
 */
import type { Db } from "../../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { enqueue } from "./enqueue.ts";
import { WANTED_BY_EVENT, WANTED_BY_MODEL } from "./states.ts";
import { type Advance, advanceRequeueing, type Requeueing, requeueing } from "./store/models.ts";
import { assetsAfter } from "./store/results.ts";
import { EMBEDDED_KINDS } from "./text.ts";
import { MODELS_TOPIC } from "./topics.ts";

export interface RequeueDeps {
  db: Db;
  wake: Wake;
  log: ServiceLog;
  onRun: OnRun;
  push(): void;
}

/** For a hint that was lost, and what a lost process left off. */
const POLL_INTERVAL_MS = 300_000;
const STEP_ASSETS = 500;
/** How many tenants go forward by one step in a run. */
const TENANTS_MAX = 100;
/** Longer than a process remembers a tenant, and than the transaction of an event lasts. */
const NEXT_ROUND_SECONDS = 30;

export function createRequeue({ db, wake, log, onRun, push }: RequeueDeps): Service {
  let dueAtMs = Number.POSITIVE_INFINITY;
  const service = createService({
    name: "lineage.tasks.requeue",
    intervalMs: POLL_INTERVAL_MS,
    log,
    onRun,
    async runOnce() {
      const tenants = await requeueing(db, TENANTS_MAX);
      const due = tenants.filter(({ due_in_ms }) => due_in_ms <= 0);
      const waits = tenants.map(({ due_in_ms }) => due_in_ms).filter((ms) => ms > 0);
      dueAtMs = performance.now() + Math.min(...waits);
      let queued = 0;
      for (const tenant of due) queued += await requeueStale(db, tenant, push);
      return { tenants: due.length, queued };
    },
    more: ({ tenants = 0 }) => tenants > 0,
    nextDueMs: () => dueAtMs - performance.now(),
  });
  const unlisten = wake.on(MODELS_TOPIC, service.wake);
  return {
    ...service,
    async stop() {
      unlisten();
      await service.stop();
    },
  };
}

/** One step; answers how many tasks it queued. */
function requeueStale(db: Db, tenant: Requeueing, push: () => void): Promise<number> {
  return db.tx(async (tx) => {
    const { id, after } = tenant;
    const assets = await assetsAfter(tx, id, { after, kinds: EMBEDDED_KINDS, limit: STEP_ASSETS });
    const changed = assets.map(({ kind, path, ...asset }) => ({ ...asset, name: { kind, path } }));
    // What was tried and failed since the choice is not stale: the second round leaves it to its retries.
    const queued = await enqueue(tx, tenant, changed, tenant.isLast ? WANTED_BY_EVENT : WANTED_BY_MODEL);
    if (queued > 0) tx.afterCommit(push);
    // Last, because it locks the tenant, which an event may want to.
    return (await advanceRequeueing(tx, tenant, advance(tenant, assets.length === STEP_ASSETS, assets.at(-1)?.id)))
      ? queued
      : 0;
  });
}

function advance({ isLast }: Requeueing, isMore: boolean, last: string | undefined): Advance {
  if (isMore && last !== undefined) return { after: last };
  return isLast ? "done" : { nextRoundInSeconds: NEXT_ROUND_SECONDS };
}
