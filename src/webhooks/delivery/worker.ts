/**
 * The worker that sends due deliveries. Claims fill the free slots, with a limit for each endpoint; each delivery is sent
 * independently, so that one that hangs delays no other.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import { createLeaseWorker, type LeaseWorker } from "../../kernel/work/lease-worker.ts";
import type { RunControl } from "../../kernel/work/run-control.ts";
import type { OnRun, ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type Alerts, alertNameOf } from "../alerts.ts";
import type { WebhooksHints, WebhooksMetrics } from "../catalogue.ts";
import type { SealedSecrets } from "../secrets/sealed-secrets.ts";
import type { WebhooksSettings } from "../settings.ts";
import { type Claimed, deliveryLease, nextDueMs } from "../store/deliveries.ts";
import { enabledTargets, type TargetRow } from "../store/subscriptions.ts";
import { DELIVERIES_TOPIC } from "../topics.ts";
import { type Outcomes, type Result, resultOf, unsent } from "./outcomes.ts";
import { type SendDeps, send, type Target } from "./send.ts";

export interface WorkerDeps extends SendDeps {
  db: Db;
  wake: Wake;
  hints: WebhooksHints;
  session: Session;
  metrics: WebhooksMetrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: WebhooksSettings;
  sealedSecrets: SealedSecrets;
  alerts: Alerts;
  outcomes: Outcomes;
}

/** A delivery with the subscriptions that are still enabled. */
type Prepared = Claimed & { targets: readonly TargetRow[] };

const CLAIM_MAX = 200;
/** A delivery that lost this many processes in a row is FAILED: it may be what kills them. */
const LOST_LIMIT = 10;

export function createWorker(deps: WorkerDeps): LeaseWorker<Claimed> {
  const { db, hints, settings, metrics, outcomes } = deps;

  async function prepare(claimed: readonly Claimed[]): Promise<Prepared[]> {
    const ids = new Set(claimed.flatMap(({ subscription_ids }) => subscription_ids));
    const rows = new Map((await enabledTargets(db, [...ids])).map((row) => [row.id, row]));
    return claimed.map((item) => ({ ...item, targets: item.subscription_ids.flatMap((id) => rows.get(id) ?? []) }));
  }

  async function deliver(item: Prepared, { signal }: RunControl): Promise<Result> {
    const { id, payload } = item;
    let target: Target | undefined;
    try {
      target = targetOf(item);
    } catch (error) {
      // The secret cannot be decrypted. It is retried, because the operator may restart the process with the right key.
      const none = { at: new Date(deps.clock.now()), durationMs: 0, statusCode: null, answer: null, retryAfterMs: 0 };
      return resultOf(item, item.callback_url, { ...none, error: (error as Error).message, refused: false });
    }
    if (!target)
      return unsent(item, "cancel", "None of its subscriptions is enabled, or its alert is no longer in the settings.");
    const attempt = await send(deps, target, { id, payload }, signal);
    return resultOf(item, alertNameOf(item.callback_url) === null ? target.url : item.callback_url, attempt);
  }

  function targetOf({ callback_url, targets }: Prepared): Target | undefined {
    if (alertNameOf(callback_url) !== null) return deps.alerts.target(callback_url);
    const [first, ...others] = targets;
    return (
      first && deps.sealedSecrets.target([first, ...others.filter((row) => row.callback_url === first.callback_url)])
    );
  }

  /** Hints of deliveries that a statement has moved. */
  async function hinted<Row extends { id: string }>(moved: Promise<Row[]>): Promise<Row[]> {
    const rows = await moved;
    hints.changed(
      db,
      "delivery",
      rows.map(({ id }) => id),
    );
    return rows;
  }

  /** Alerts of deliveries that have lost their last process. */
  function alerted<Row extends { id: string; state: string }>(move: (tx: Tx) => Promise<Row[]>): Promise<Row[]> {
    return db.tx(async (tx) => {
      const rows = await move(tx);
      await outcomes.alertFailed(
        tx,
        rows.filter(({ state }) => state === "FAILED").map(({ id }) => id),
      );
      return rows;
    });
  }

  const worker = createLeaseWorker<Claimed, Prepared, Result, { id: string; fence: string }>({
    name: "webhooks",
    session: deps.session,
    wake: deps.wake,
    log: deps.log,
    onRun: deps.onRun,
    slots: settings.slots,
    drainSeconds: settings.drainSeconds,
    queues: [
      {
        name: "webhooks.send",
        topics: [DELIVERIES_TOPIC],
        claimMax: CLAIM_MAX,
        claim: (limit, holder) => hinted(deliveryLease.claim(db, { limit, holder })),
        dueMs: () => nextDueMs(db),
        claimsAfterEnd: true, // Its endpoint has a free place again.
      },
    ],
    prepare,
    run: deliver,
    settle: outcomes.write,
    held: (holder) => deliveryLease.heldBy(db, holder),
    fields: ({ id }) => ({ deliveryId: id }),
    release: (items) => hinted(deliveryLease.release(db, items)),
    lose: (items) => hinted(alerted((tx) => deliveryLease.lose(tx, items, LOST_LIMIT))),
    reclaim: async (limit) =>
      (await hinted(alerted((tx) => deliveryLease.reclaim(tx, { limit, lostLimit: LOST_LIMIT })))).length,
  });
  metrics.gauge("millrace_webhooks_in_flight", () => [{ labels: {}, value: worker.inFlight() }]);
  return worker;
}
