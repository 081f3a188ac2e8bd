/**
 * Sends what is due. Claims fill the free slots, a few for each endpoint; each delivery goes its own way from there, so
 * that one that hangs delays nobody, and its slot is free again once its outcome is written.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { Db } from "../kernel/data/db.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/work/service.ts";
import type { Session } from "../kernel/work/session.ts";
import { LOST_HINT_MS, type Wake } from "../kernel/work/wake.ts";
import { type Alerts, alertNameOf } from "./alerts.ts";
import type { Keeper } from "./keeper.ts";
import { type Outcomes, type Settled, settle, unsent } from "./outcomes.ts";
import { type SendDeps, send, type Target } from "./send.ts";
import type { WebhooksSettings } from "./settings.ts";
import { type Claimed, deliveryLease, heldDeliveries, nextDueMs, reclaimDeliveries } from "./store/deliveries.ts";
import { enabledTargets, type TargetRow } from "./store/subscriptions.ts";
import { DELIVERIES_TOPIC } from "./topics.ts";

export interface WorkerDeps extends SendDeps {
  db: Db;
  wake: Wake;
  session: Session;
  metrics: Metrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: WebhooksSettings;
  keeper: Keeper;
  alerts: Alerts;
  outcomes: Outcomes;
}

const CLAIM_MAX = 200;
/** The pause between two looks at what may be ours without our knowing. */
const LOOK_AGAIN_MS = 10_000;
const RECLAIM_MAX = 500;
/** After this many silent processes in a row a delivery is FAILED: it may be what kills them. */
const LOST_LIMIT = 10;

/** The loop that sends, and the one that takes back what was lost. */
export function createWorker(deps: WorkerDeps): Service[] {
  const { db, wake, session, settings, metrics, outcomes, log, onRun } = deps;
  /** By fence, which no two items share. */
  const inFlight = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal); // Every request under way listens; Node would take that for a leak.
  let dueAtMs = Number.POSITIVE_INFINITY; // By performance.now().
  /** After a claim whose answer was lost: rows that are ours without our knowing. Nobody else takes them back. */
  let unsure = false;
  let strays = new Set<string | null>();

  const claimer = createService({
    name: "webhooks.send",
    intervalMs: LOST_HINT_MS,
    log,
    onRun,
    async runOnce() {
      const limit = Math.min(CLAIM_MAX, settings.slots - inFlight.size);
      dueAtMs = Number.POSITIVE_INFINITY;
      if (limit <= 0) return { claimed: 0 }; // The next slot that is free asks again.
      // Asked before the claim: what becomes due meanwhile is in one or the other.
      dueAtMs = performance.now() + (await nextDueMs(db));
      const claimed = await orUnsure(() => deliveryLease.claim(db, { limit, holder: session.id() }));
      if (claimed.length > 0) await begin(claimed);
      return { claimed: claimed.length };
    },
    nextDueMs: () => dueAtMs - performance.now(),
  });

  const reclaimer = createService({
    name: "webhooks.reclaim",
    intervalMs: LOST_HINT_MS,
    log,
    onRun,
    async runOnce() {
      const reclaimed = await reclaimDeliveries(db, { limit: RECLAIM_MAX, lostLimit: LOST_LIMIT });
      const returned = unsure ? await giveBackStrays() : 0;
      if (reclaimed + returned > 0) wake.hint(DELIVERIES_TOPIC);
      return { reclaimed, returned };
    },
    more: ({ reclaimed = 0 }) => reclaimed === RECLAIM_MAX,
    nextDueMs: () => (unsure ? LOOK_AGAIN_MS : undefined),
  });
  session.onSilence(reclaimer.wake);

  function beUnsure(): void {
    unsure = true;
    reclaimer.wake();
  }

  async function orUnsure<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      beUnsure();
      throw error;
    }
  }

  /** What is ours at two looks in a row and not under way never will be. */
  async function giveBackStrays(): Promise<number> {
    const held = (await heldDeliveries(db, session.id())).filter(({ fence }) => !inFlight.has(fence ?? ""));
    const returned = await deliveryLease.release(
      db,
      held.filter(({ fence }) => strays.has(fence)),
    );
    strays = new Set(held.map(({ fence }) => fence));
    unsure = held.length > 0;
    return returned.length;
  }

  async function begin(claimed: readonly Claimed[]): Promise<void> {
    const ids = new Set(claimed.flatMap(({ subscription_ids }) => subscription_ids));
    const rows = await orUnsure(() => enabledTargets(db, [...ids]));
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const item of claimed) {
      const work = handle(item, byId).finally(() => {
        inFlight.delete(item.fence);
        claimer.wake();
      });
      inFlight.set(item.fence, work);
    }
  }

  async function handle(item: Claimed, rows: ReadonlyMap<number, TargetRow>): Promise<void> {
    try {
      await outcomes.write(await attempt(item, rows));
    } catch (err) {
      beUnsure();
      log.error({ err, deliveryId: item.id }, "the outcome of a delivery could not be written; it will be sent again");
    }
  }

  async function attempt(item: Claimed, rows: ReadonlyMap<number, TargetRow>): Promise<Settled> {
    const { id, payload } = item;
    let target: Target | undefined;
    try {
      target = targetOf(item, rows);
    } catch (error) {
      // A secret that cannot be opened: the operator may still start us with the right key.
      const told = { at: new Date(deps.clock.now()), durationMs: 0, statusCode: null, answer: null, retryAfterMs: 0 };
      return settle(item, item.callback_url, { ...told, error: (error as Error).message, refused: false });
    }
    if (!target) return unsent(item, "cancel", "None of its subscriptions is enabled any more, or its alert is gone.");
    try {
      const made = await send(deps, target, { id, payload }, stopping.signal);
      return settle(item, alertNameOf(item.callback_url) === null ? target.url : item.callback_url, made);
    } catch (error) {
      if (stopping.signal.aborted) return unsent(item, "release", null);
      throw error;
    }
  }

  function targetOf({ callback_url, subscription_ids }: Claimed, rows: ReadonlyMap<number, TargetRow>) {
    if (alertNameOf(callback_url) !== null) return deps.alerts.target(callback_url);
    const enabled = subscription_ids.flatMap((id) => rows.get(id) ?? []);
    const [first, ...others] = enabled;
    return first && deps.keeper.target([first, ...others.filter((row) => row.callback_url === first.callback_url)]);
  }

  /** Waits for what is under way; what has not ended in time is given back. */
  async function drain(): Promise<void> {
    const enough = new AbortController();
    const time = sleepFor(settings.drainSeconds * 1_000, undefined, { signal: enough.signal }).catch(() => undefined);
    const all = Promise.all(inFlight.values());
    await Promise.race([all, time]);
    enough.abort();
    stopping.abort(new Error("this process is shutting down"));
    await all;
  }

  metrics.gauge("millrace_webhooks_in_flight", () => [{ labels: {}, value: inFlight.size }]);
  const unlisten = wake.on(DELIVERIES_TOPIC, claimer.wake);
  return [
    {
      ...claimer,
      async stop() {
        unlisten();
        await claimer.stop();
        await drain();
      },
    },
    reclaimer,
  ];
}
