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
      return runsThatWait(`pool:${id}`);
    case "model":
      return opTime === undefined
        ? pathTo`/arrivals/models/${id}`
        : withQuery("/arrivals", { tab: "models", row: id, at: opTime });
    case "table":
      return withQuery("/arrivals", { q: id, row: opTime === undefined ? undefined : id, at: opTime });
    case "delivery":
      return withQuery("/arrivals/deliveries", { id });
    case "subscription":
      return withQuery("/arrivals/deliveries", { tab: "subscriptions", id });
    case "receiver":
      return withQuery("/arrivals/deliveries", { tab: "subscriptions" });
    case "source":
      return pathTo`/harvest/${id}`;
    case "cursor": {
      const [source = "", ...namespace] = id.split("/");
      return withQuery(pathTo`/harvest/${source}`, { tab: "cursors", namespace: namespace.join("/") });
    }
    case "plan":
      return pathTo`/harvest/plans/${id}`;
    case "stage":
      return withQuery("/tracking", { stage: id, status: "new" });
    case "failed-stage":
      return withQuery("/tracking", { tab: "stuck", stage: id, reason: "failed" });
    case "stuck-stage":
      return withQuery("/tracking", { tab: "stuck", stage: id });
    case "dead-letter":
      return withQuery("/lineage/dead-letters", { tenant: id });
    case "lineage-tasks": {
      const [tenant, status] = id.split("/");
      return withQuery("/lineage/tasks", { tenant, status });
    }
    case "tenant":
      return withQuery("/lineage/tenants", { id });
    default:
      return undefined;
  }
}

const runsThatWait = (waitsFor: string) => withQuery("/chains/runs", { waitsFor });

/** What is likely to be done about it, on its own page. `refused`: the sources that are paused because they denied access. */
export function actionOf({ about: { kind, id }, state }: Pick<Need, "about" | "state">, refused: ReadonlySet<string>) {
  if (kind === "model") return state === "late" ? "openWhy" : "runAgain";
  if (kind === "source") return refused.has(id) ? "resume" : "open";
  if (kind === "receiver" || kind === "subscription") return state === "disabled" ? "enable" : "open";
  return ACTIONS[kind] ?? "open";
}

const ACTIONS: Readonly<Record<string, "retry" | "redeliver" | "replay">> = {
  run: "retry",
  "failed-stage": "retry",
  delivery: "redeliver",
  "dead-letter": "replay",
};

/** A list of what waits for the cause, as far as its page can filter. */
export function waitingHref({
  cause,
  kind,
  subject,
  about,
}: Pick<Waiting, "cause" | "kind" | "subject" | "about">): string | undefined {
  const page = about ? hrefOf(about) : undefined;
  switch (kind) {
    case "node":
      if (cause === "table" || cause === "pool") return runsThatWait(`${cause}:${subject ?? ""}`);
      return runsThatWait(cause === "retry" ? "retry" : "slot");
    case "run":
      return page && withQuery(page, { status: "PENDING" });
    case "schedule":
      return about?.kind === "chain" ? page && withQuery(page, { tab: "schedules" }) : page;
    case "task":
      if (page === undefined) return "/harvest";
      if (cause === "gate") return withQuery(page, { tab: "gates" });
      return cause === "retry" ? withQuery(page, { tab: "plans", status: "READY" }) : page;
    case "delivery":
      return withQuery("/arrivals/deliveries", { status: "PENDING", subscriptionId: about?.id });
    default:
      return page;
  }
}

/** All of a kind, where not every lane is shown. */
export const LIST_PAGES: Readonly<Record<string, string>> = {
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
      return LIST_PAGES[kind];
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
