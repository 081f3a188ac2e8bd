/** What lineage shows on the overview. A caller with a tenant sees that tenant only. */
import type { OverviewPart } from "../kernel/overview/part.ts";
import { unappliedByTenant } from "./store/overview.ts";

export const lineageOverview: OverviewPart = {
  scope: "lineage:read",
  checkedKinds: ["dead-letter"],
  async now(db, { tenantId }) {
    const rows = await unappliedByTenant(db, tenantId);
    return {
      needs: rows
        .filter(({ apply_state }) => apply_state === "DEAD")
        .map(({ tenant_id, tenant_name, events, newest_at, apply_error }) => ({
          about: { kind: "dead-letter", id: tenant_id },
          state: "failed",
          title: tenant_name,
          reason: apply_error ?? "The event could not be applied.",
          count: events,
          at: newest_at,
        })),
      waiting: rows
        .filter(({ apply_state }) => apply_state === "BUFFERED")
        .map(({ tenant_id, tenant_name, events, oldest_at }) => ({
          cause: "tenant",
          kind: "event",
          subject: tenant_name,
          about: { kind: "tenant", id: tenant_id },
          count: events,
          oldestAt: oldest_at,
          nextAt: null,
        })),
    };
  },
};
