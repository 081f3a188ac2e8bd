/** What lineage shows on the overview. A caller with a tenant sees that tenant only. */
import type { Need, OverviewPart, Waiting } from "../kernel/overview/part.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import { type DeadTasksRow, deadTasks, type UnappliedRow, unappliedByTenant, waitingTasks } from "./store/overview.ts";

export const lineageOverview: OverviewPart = {
  scope: "lineage:read",
  checkedKinds: ["dead-letter"],
  async now(db, { tenantId }) {
    const [events, dead, waiting] = await Promise.all([
      unappliedByTenant(db, tenantId),
      deadTasks(db, tenantId),
      waitingTasks(db, tenantId),
    ]);
    const inState = (state: UnappliedRow["apply_state"]) => events.filter(({ apply_state }) => apply_state === state);
    return {
      needs: [...inState("DEAD").map(deadLetters), ...dead.map(needOfTasks)],
      waiting: [...inState("BUFFERED").map(buffered), ...waitingOf(waiting)],
    };
  },
};

function deadLetters({ tenant_id, tenant_name, events, newest_at, apply_error }: UnappliedRow): Need {
  return {
    about: { kind: "dead-letter", id: tenant_id },
    state: "failed",
    title: tenant_name,
    reason: apply_error ?? "The event could not be applied.",
    count: events,
    at: newest_at,
  };
}

function needOfTasks({ tenant_id, tenant_name, tasks, newest_at, last_error }: DeadTasksRow): Need {
  return {
    about: { kind: "lineage-tasks", id: `${tenant_id}/DEAD` },
    state: "failed",
    title: `${tenant_name}, asynchronous tasks`,
    reason: last_error ?? "An asynchronous task has failed.",
    count: tasks,
    at: newest_at,
  };
}

function buffered({ tenant_id, tenant_name, events, oldest_at }: UnappliedRow): Waiting {
  return {
    cause: "tenant",
    kind: "event",
    subject: tenant_name,
    about: { kind: "tenant", id: tenant_id },
    count: events,
    oldestAt: oldest_at,
    nextAt: null,
  };
}
