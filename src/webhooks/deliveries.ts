/** The use cases of deliveries: list, show, and send again. */
import { type Actor, audit } from "../kernel/auth/audit.ts";
import type { Db } from "../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../kernel/data/dry-run.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { type WebhooksHints, webhooksError } from "./catalogue.ts";
import type { AttemptRow } from "./store/deliveries.ts";
import {
  countRecoverable,
  type DeliveryFilter,
  type DeliveryRow,
  databaseTime,
  listDeliveries,
  type Recovery,
  readAttempts,
  readDelivery,
  recover,
  redeliver,
} from "./store/delivery-reads.ts";
import { readSubscription, type SubscriptionView } from "./store/subscriptions.ts";
import { DELIVERIES_TOPIC } from "./topics.ts";

export interface Deliveries {
  /** Newest first. */
  list(filter: DeliveryFilter, limit: number): Promise<DeliveryRow[]>;
  /** With one of its subscriptions, which says what secret it is sent with. */
  get(id: string): Promise<DeliveryDetail>;
  /** Sends it again under the same id, with all its retries. */
  redeliver(id: string, actor: Actor, options?: DryRun): Promise<DeliveryRow>;
  /** Sends again all that have ended with a status since a time; answers the number. */
  recover(which: Recovery, actor: Actor, options?: DryRun): Promise<number>;
}

export interface DeliveryDetail extends DeliveryRow {
  payload: unknown;
  attempts: AttemptRow[];
  subscription: SubscriptionView | undefined;
}

const ATTEMPTS_SHOWN = 100;
const RECOVER_BATCH = 1_000;

export function createDeliveries({ db, wake, hints }: { db: Db; wake: Wake; hints: WebhooksHints }): Deliveries {
  return {
    list: (filter, limit) => listDeliveries(db, filter, limit),

    async get(id) {
      const [row, attempts] = await Promise.all([readDelivery(db, id), readAttempts(db, id, ATTEMPTS_SHOWN)]);
      if (!row) throw webhooksError("DELIVERY_NOT_FOUND", { id });
      const [first] = row.subscription_ids;
      const subscription = first === undefined ? undefined : await readSubscription(db, first);
      return { ...row, attempts: attempts.toReversed(), subscription };
    },

    redeliver: (id, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const again = await redeliver(tx, id);
        const present = await readDelivery(tx, id);
        if (!present) throw webhooksError("DELIVERY_NOT_FOUND", { id });
        if (!again)
          throw webhooksError("DELIVERY_WRONG_STATE", { id, status: present.status }, { because: whyNot(present) });
        await audit(tx, actor, "delivery.redeliver", id);
        tx.afterCommit(() => wake.hint(DELIVERIES_TOPIC));
        hints.changed(tx, "delivery", id);
        return present;
      }),

    async recover(which, actor, { dryRun } = FOR_REAL) {
      const before = await databaseTime(db);
      if (dryRun) return countRecoverable(db, which, before);
      await audit(db, actor, "delivery.recover", which.callbackUrl ?? "all", { ...which });
      let recovered = 0;
      for (;;) {
        const batch = await recover(db, which, before, RECOVER_BATCH);
        recovered += batch;
        if (batch > 0) {
          wake.hint(DELIVERIES_TOPIC);
          hints.changed(db, "delivery", "*");
        }
        if (batch < RECOVER_BATCH) return recovered;
      }
    },
  };
}

function whyNot({ status }: DeliveryRow): string {
  return status === "SENDING" ? "it is being sent now" : "none of its subscriptions is enabled";
}
