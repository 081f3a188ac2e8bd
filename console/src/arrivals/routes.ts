/** The pages of arrivals. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { count, oneOf, type Search, texts } from "../app/search-values.ts";

export interface ArrivalsSearch {
  tab?: "models" | undefined;
  grain?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  /** How many opTimes: up to the newest, or with `from` or `to` alone from there or up to there. */
  last?: number | undefined;
  q?: string | undefined;
  /** The cell that is open. */
  row?: string | undefined;
  at?: string | undefined;
  /** With `at`, the selected range of the row. */
  until?: string | undefined;
}
export interface DeliveriesSearch {
  tab?: "subscriptions" | undefined;
  status?: string | undefined;
  since?: string | undefined;
  modelId?: string | undefined;
  opTime?: string | undefined;
  subscriptionId?: number | undefined;
  id?: string | undefined;
}

/** As the server allows. */
const COLUMNS_MAX = 2_400;

export const arrivalsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/arrivals",
    component: lazyRouteComponent(() => import("./ArrivalsPage.tsx"), "ArrivalsPage"),
    validateSearch: (search: Search): ArrivalsSearch => ({
      tab: oneOf(["models"], search["tab"]),
      last: Math.min(count(search["last"]) ?? 0, COLUMNS_MAX) || undefined,
      ...texts(search, ["grain", "from", "to", "q", "row", "at", "until"]),
    }),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/arrivals/deliveries",
    component: lazyRouteComponent(() => import("./DeliveriesPage.tsx"), "DeliveriesPage"),
    validateSearch: (search: Search): DeliveriesSearch => ({
      tab: oneOf(["subscriptions"], search["tab"]),
      subscriptionId: count(search["subscriptionId"]),
      ...texts(search, ["status", "since", "modelId", "opTime", "id"]),
    }),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/arrivals/models/$modelId",
    component: lazyRouteComponent(() => import("./ModelPage.tsx"), "ModelPage"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/arrivals/kpis/$kpiId",
    component: lazyRouteComponent(() => import("./KpiPage.tsx"), "KpiPage"),
  }),
] as const;
