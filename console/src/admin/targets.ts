/** The page of what an entry of the audit log is about, where there is one. */
import { pathTo, withQuery } from "../api/client.ts";
import { hrefOf } from "../overview/targets.ts";
import type { AuditItem } from "./api.ts";

/** What details may say of the target. */
interface Details {
  chainId?: string;
  version?: number;
  source?: string;
  tenantId?: string | number;
  stage?: string | null;
  reason?: string | null;
  status?: string | null;
  subscriptionId?: number | null;
  modelId?: string | null;
  opTime?: string | null;
}

export function targetHref({
  action,
  target,
  details,
}: Pick<AuditItem, "action" | "target" | "details">): string | undefined {
  const [subject = "", verb] = action.split(".");
  if (verb === "delete") return undefined;
  const of = (details ?? {}) as Details;
  // Some targets are in something: `run/node`.
  const [whole = "", ...parts] = target.split("/");
  const part = parts.join("/");
  switch (subject) {
    case "source":
    case "harvest":
      return hrefOf({ kind: "source", id: target });
    case "harvest_schedule":
      return of.source === undefined ? undefined : hrefOf({ kind: "source", id: of.source });
    case "cursor":
      return withQuery(pathTo`/harvest/${whole}`, { tab: "cursors", namespace: part });
    case "slice":
      return withQuery(pathTo`/harvest/plans/${whole}`, { slice: part });
    case "gate":
      // Each source shows the gates that it passes.
      return "/harvest";
    case "delivery":
      if (verb === "redeliver") return hrefOf({ kind: "delivery", id: target });
      return withQuery("/arrivals/deliveries", {
        subscriptionId: of.subscriptionId ?? undefined,
        modelId: of.modelId ?? undefined,
        opTime: of.opTime ?? undefined,
      });
    case "chain":
      if (of.version === undefined) return hrefOf({ kind: "chain", id: target });
      return withQuery(pathTo`/chains/${target}`, { tab: "versions", version: of.version });
    case "plan":
    case "model":
    case "run":
    case "pool":
    case "tenant":
      return hrefOf({ kind: subject, id: target });
    case "node":
      return withQuery(pathTo`/chains/runs/${whole}`, { node: part });
    case "schedule":
      return of.chainId === undefined ? undefined : withQuery(pathTo`/chains/${of.chainId}`, { tab: "schedules" });
    case "indicator":
      return pathTo`/arrivals/kpis/${target}`;
    case "arrival":
      return hrefOf({ kind: "table", id: whole, opTime: part });
    case "subscription":
      return withQuery("/arrivals/deliveries", { tab: "subscriptions", id: target });
    case "lineage":
      if (verb === "replay")
        return withQuery("/lineage/dead-letters", { tenant: whole, id: part === "" ? undefined : part });
      return target === "all" ? "/lineage/tenants" : hrefOf({ kind: "tenant", id: target });
    case "task":
      if (of.tenantId === undefined)
        return withQuery("/lineage/tasks", { tenant: target, status: of.status ?? undefined });
      return withQuery("/lineage/tasks", { tenant: of.tenantId, id: target });
    case "pipeline":
      return withQuery("/tracking", {
        tab: "stuck",
        q: target === "all" ? undefined : target,
        stage: of.stage ?? undefined,
        reason: of.reason ?? undefined,
      });
    case "key":
    case "session":
      return withQuery("/admin", { tab: "keys" });
    default:
      return undefined;
  }
}
