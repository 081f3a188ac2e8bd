/** The page of what an entry of the audit log is about, where there is one. */
import { pathTo, withQuery } from "../api/client.ts";
import { hrefOf } from "../overview/targets.ts";
import type { AuditItem } from "./api.ts";

export function targetHref({ action, target, details }: AuditItem): string | undefined {
  const [subject = "", verb] = action.split(".");
  if (verb === "delete") return undefined;
  // Some targets are in something: `run/node`.
  const [whole = "", ...parts] = target.split("/");
  const part = parts.join("/");
  switch (subject) {
    case "source":
    case "harvest":
      return hrefOf({ kind: "source", id: target });
    case "cursor":
      return withQuery(pathTo`/harvest/${whole}`, { tab: "cursors", namespace: part });
    case "slice":
      return withQuery(pathTo`/harvest/plans/${whole}`, { slice: part });
    case "plan":
    case "model":
    case "chain":
    case "run":
    case "tenant":
    case "delivery":
      return target === "all" ? undefined : hrefOf({ kind: subject, id: target });
    case "node":
      return withQuery(pathTo`/chains/runs/${whole}`, { node: part });
    case "schedule": {
      const { chainId } = details as { chainId?: string };
      return chainId === undefined ? undefined : withQuery(pathTo`/chains/${chainId}`, { tab: "schedules" });
    }
    case "indicator":
      return pathTo`/arrivals/kpis/${target}`;
    case "arrival":
      return hrefOf({ kind: "table", id: whole, opTime: part });
    case "subscription":
      return hrefOf({ kind: "receiver", id: target });
    default:
      return undefined;
  }
}
