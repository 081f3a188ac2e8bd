/** The pages of tracking. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { count, oneOf, type Search, text } from "../app/search-values.ts";
import { REASONS, type Reason, STAGES, STATUSES, type Stage, type Status } from "./api.ts";

const TABS = ["files", "stuck"] as const;

export interface TrackingSearch {
  tab?: (typeof TABS)[number] | undefined;
  stage?: Stage | undefined;
  status?: Status | undefined;
  reason?: Reason | undefined;
  q?: string | undefined;
  /** The first shard of the window. */
  firstShard?: number | undefined;
  /** The shard that is open. */
  file?: string | undefined;
  shard?: number | undefined;
}
export interface FileSearch {
  status?: Status | undefined;
  shard?: number | undefined;
}

export const trackingRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/tracking",
  validateSearch: (search: Search): TrackingSearch => ({
    tab: oneOf(TABS, search["tab"]),
    stage: oneOf(STAGES, search["stage"]),
    status: oneOf(STATUSES, search["status"]),
    reason: oneOf(REASONS, search["reason"]),
    q: text(search["q"]),
    firstShard: count(search["firstShard"]),
    file: text(search["file"]),
    shard: count(search["shard"]),
  }),
  component: lazyRouteComponent(() => import("./TrackingPage.tsx"), "TrackingPage"),
});

export const fileRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/tracking/files/$filename",
  validateSearch: (search: Search): FileSearch => ({
    status: oneOf(STATUSES, search["status"]),
    shard: count(search["shard"]),
  }),
  component: lazyRouteComponent(() => import("./FilePage.tsx"), "FilePage"),
});

export const trackingRoutes = [trackingRoute, fileRoute] as const;
