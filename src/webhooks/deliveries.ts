/** The use cases of deliveries: list, show, and send again. */
import { type Actor, audit } from "../kernel/auth/audit.ts";
import type { Db } from "../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../kernel/data/dry-run.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { webhooksError } from "./catalogue.ts";
import type { AttemptRow } from "./store/deliveries.ts";
import {
  countRecoverable,
  type DeliveryFilter,
  type DeliveryRow,
  databaseTime,
  listDeliveries,
  readAttempts,
  readDelivery,
  recover,
  redeliver,
} from "./store/delivery-reads.ts";
import { DELIVERIES_TOPIC } from "./topics.ts";

export interface Deliveries {
  /** Newest first. */
  list(filter: DeliveryFilter, limit: number): Promise<DeliveryRow[]>;
  get(id: string): Promise<DeliveryRow & { payload: unknown; attempts: AttemptRow[] }>;
  /** Sends it again under the same id, with all its retries. */
  redeliver(id: string, actor: Actor, options?: DryRun): Promise<DeliveryRow>;
  /** Sends again what failed since a time; answers the number. */
  recover(request: { since: string; callbackUrl: string | null }, actor: Actor, options?: DryRun): Promise<number>;
}

const ATTEMPTS_SHOWN = 100;
const RECOVER_BATCH = 1_000;

export function createDeliveries({ db, wake }: { db: Db; wake: Wake }): Deliveries {
  return {
    list: (filter, limit) => listDeliveries(db, filter, limit),

    async get(id) {
      const [row, attempts] = await Promise.all([readDelivery(db, id), readAttempts(db, id, ATTEMPTS_SHOWN)]);
      if (!row) throw webhooksError("DELIVERY_NOT_FOUND", { id });
      return { ...row, attempts: attempts.toReversed() };
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
        return present;
      }),

    async recover({ since, callbackUrl }, actor, { dryRun } = FOR_REAL) {
      const before = await databaseTime(db);
      if (dryRun) return countRecoverable(db, { since, before, callbackUrl });
      await audit(db, actor, "delivery.recover", callbackUrl ?? "all", { since });
      let recovered = 0;
      for (;;) {
        const batch = await recover(db, { since, before, callbackUrl, limit: RECOVER_BATCH });
        recovered += batch;
        if (batch > 0) wake.hint(DELIVERIES_TOPIC);
        if (batch < RECOVER_BATCH) return recovered;
      }
    },
  };
}

function whyNot({ status }: DeliveryRow): string {
  return status === "SENDING" ? "it is being sent now" : "none of its subscriptions is enabled";
}
