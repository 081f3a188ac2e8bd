/** The pages of harvest. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { count, oneOf, type Search, text } from "../app/search-values.ts";

export const sourcesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/harvest",
  validateSearch: (search: Search): { q?: string | undefined; tab?: "new" | undefined } => ({
    q: text(search["q"]),
    tab: search["tab"] === "new" ? "new" : undefined,
  }),
  component: lazyRouteComponent(() => import("./SourcesPage.tsx"), "SourcesPage"),
});

export interface SourceSearch {
  tab?: string | undefined;
  /** How far back the activity goes. */
  hours?: number | undefined;
  /** Of plans. */
  status?: string | undefined;
  /** The watermark whose history is shown. */
  namespace?: string | undefined;
  operation?: string | undefined;
  /** The slice of the stretch that is open. */
  slice?: number | undefined;
  /** The group of quarantined records that is shown: the error, and the path that failed. */
  code?: string | undefined;
  path?: string | undefined;
  /** The quarantined record that is open. */
  record?: string | undefined;
  /** What a new plan would be; `endpoint` also that of the group. */
  endpoint?: string | undefined;
  /** Unset: a harvest. */
  plans?: "BACKFILL" | "UPDATE" | undefined;
  /** Of an update. Unset: those that are due. */
  which?: "quarantined" | "ids" | undefined;
  last?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}
export const sourceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/harvest/$source",
  validateSearch: (search: Search): SourceSearch => ({
    tab: oneOf(["plans", "cursors", "gates", "quarantine", "definition", "plan"], search["tab"]),
    hours: count(search["hours"]),
    status: text(search["status"]),
    namespace: text(search["namespace"]),
    operation: text(search["operation"]),
    slice: count(search["slice"]),
    code: text(search["code"]),
    path: text(search["path"]),
    record: text(search["record"]),
    endpoint: text(search["endpoint"]),
    plans: oneOf(["BACKFILL", "UPDATE"], search["plans"]),
    which: oneOf(["quarantined", "ids"], search["which"]),
    last: text(search["last"]),
    from: text(search["from"]),
    to: text(search["to"]),
  }),
  component: lazyRouteComponent(() => import("./SourcePage.tsx"), "SourcePage"),
});

export interface PlanSearch {
  status?: string | undefined;
  slice?: number | undefined;
  run?: number | undefined;
}
export const planRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/harvest/plans/$planId",
  validateSearch: (search: Search): PlanSearch => ({
    status: text(search["status"]),
    slice: count(search["slice"]),
    run: count(search["run"]),
  }),
  component: lazyRouteComponent(() => import("./plan/PlanPage.tsx"), "PlanPage"),
});

export const harvestRoutes = [sourcesRoute, planRoute, sourceRoute] as const;
