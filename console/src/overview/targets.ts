/** The page that shows what an entry of the overview is about. */
import { pathTo, withQuery } from "../api/client.ts";
import type { About, Ended, Need, Waiting } from "./api.ts";

export function hrefOf({ kind, id, opTime }: About): string | undefined {
  switch (kind) {
    case "run":
      return pathTo`/chains/runs/${id}`;
    case "chain":
      return pathTo`/chains/${id}`;
    case "pool":
      return "/chains";
    case "model":
      return opTime === undefined
        ? pathTo`/arrivals/models/${id}`
        : withQuery("/arrivals", { tab: "models", row: id, at: opTime });
    case "table":
      return withQuery("/arrivals", { q: id, row: opTime === undefined ? undefined : id, at: opTime });
    case "delivery":
      return withQuery("/arrivals/deliveries", { id });
    case "receiver":
      return withQuery("/arrivals/deliveries", { tab: "subscriptions" });
    case "source":
      return pathTo`/harvest/${id}`;
    case "plan":
      return pathTo`/harvest/plans/${id}`;
    case "stage":
      return withQuery("/tracking", { stage: id, status: "new" });
    case "failed-stage":
      return withQuery("/tracking", { tab: "stuck", stage: id, reason: "failed" });
    case "dead-letter":
      return withQuery("/lineage/dead-letters", { tenant: id });
    case "tenant":
      return withQuery("/lineage/tenants", { id });
    default:
      return undefined;
  }
}

/** What is likely to be done about it, on its own page. `refused`: the sources that are paused since they refuse access. */
export function actionOf({ about: { kind, id }, state }: Pick<Need, "about" | "state">, refused: ReadonlySet<string>) {
  if (kind === "model") return state === "late" ? "openWhy" : "runAgain";
  if (kind === "source") return refused.has(id) ? "resume" : "open";
  if (kind === "receiver") return state === "disabled" ? "enable" : "open";
  return ACTIONS[kind] ?? "open";
}

const ACTIONS: Readonly<Record<string, "retry" | "redeliver" | "replay">> = {
  run: "retry",
  "failed-stage": "retry",
  delivery: "redeliver",
  "dead-letter": "replay",
};

/** What waits, where its cause has no page of its own. */
const WAITING_ROOMS: Readonly<Record<string, string>> = {
  node: "/chains/runs?status=RUNNING",
  run: "/chains/runs?status=PENDING",
  model: "/arrivals?tab=models",
  delivery: "/arrivals/deliveries",
  task: "/harvest",
  schedule: "/chains",
  shard: "/tracking",
  event: "/lineage/tenants",
};

export function waitingHref({ kind, about }: Pick<Waiting, "kind" | "about">): string | undefined {
  return (about && hrefOf(about)) ?? WAITING_ROOMS[kind];
}

/** All of a kind, where not every lane is shown. */
export const ROOMS: Readonly<Record<string, string>> = {
  run: "/chains/runs",
  model: "/arrivals?tab=models",
  plan: "/harvest",
  delivery: "/arrivals/deliveries",
};

export function laneHref(kind: Ended["kind"], laneId: string): string | undefined {
  switch (kind) {
    case "run":
      return hrefOf({ kind: "chain", id: laneId });
    case "model":
      return hrefOf({ kind: "model", id: laneId });
    case "plan":
      return hrefOf({ kind: "source", id: laneId });
    default:
      return ROOMS[kind];
  }
}

/** The newest failure of a cell, or else its lane. */
export function cellHref(
  kind: Ended["kind"],
  laneId: string,
  { failedId }: { failedId: string | null },
): string | undefined {
  if (failedId === null) return laneHref(kind, laneId);
  // A failed run of a model is found by its opTime.
  return kind === "model" ? hrefOf({ kind, id: laneId, opTime: failedId }) : hrefOf({ kind, id: failedId });
}
