/** Ends the plans whose last slice has ended, in the transaction of that slice. Counts them, and logs those that failed. */
import type { Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox } from "../../kernel/work/outbox.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { HarvestMetrics } from "../catalogue.ts";
import { type SettledPlan, settlePlans } from "../store/plans/plan-ends.ts";
import { NODES_TOPIC } from "../topics.ts";
import { planFailed } from "./events.ts";
import { type PartedDeps, settleParted } from "./parted.ts";

/** Answers those that have ended. One that has gaps is FAILED, and an alert goes out. */
export type Settle = (tx: Tx, planIds: readonly string[]) => Promise<SettledPlan[]>;

export interface SettleDeps extends PartedDeps {
  wake: Wake;
  outbox: Outbox;
  ids: Ids;
  clock: Clock;
}

export function createSettle(deps: SettleDeps): Settle {
  const { wake, outbox, ids, clock, hints, metrics, log } = deps;
  return async (tx, planIds) => {
    await settleParted(deps, tx, planIds);
    const settled = await settlePlans(tx, planIds);
    hints.changed(tx, "plan", planIds); // Called where a slice has ended, whether its plan has or not.
    const failed = settled.filter(({ status_code }) => status_code === "FAILED");
    if (failed.length > 0) {
      const at = clock.now();
      await outbox.emit(
        tx,
        failed.map((plan) => planFailed(ids.uuid(), fieldsOf(plan), at)),
      );
    }
    tx.afterCommit(() => settled.forEach(tell));
    if (settled.length > 0) tx.afterCommit(() => wake.hint(NODES_TOPIC));
    return settled;
  };

  function tell(plan: SettledPlan): void {
    countEnded(metrics, plan);
    if (plan.status_code === "FAILED") log.warn(fieldsOf(plan), "a plan has failed");
  }
}

type PlanName = Pick<SettledPlan, "provenance_code" | "endpoint_name" | "operation_code">;

export function countEnded(metrics: HarvestMetrics, plan: PlanName & { status_code: string }): void {
  const { provenance_code: source, endpoint_name: endpoint, operation_code: op, status_code: status } = plan;
  metrics.count("patra_ingest_plans_ended_total", { source, endpoint, op, status });
}

function fieldsOf({ plan_id, provenance_code, endpoint_name, operation_code, reason }: SettledPlan) {
  return {
    planId: plan_id,
    source: provenance_code,
    endpoint: endpoint_name,
    operation: operation_code,
    reason: reason ?? "",
  };
}
