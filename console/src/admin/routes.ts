/** The pages of the administration. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { oneOf, type Search, texts } from "../app/search-values.ts";

export const TABS = ["keys", "tenants", "audit", "doctor", "settings"] as const;
export const SINCE = ["day", "week", "month"] as const;
export type AdminTab = (typeof TABS)[number];

export interface AdminSearch {
  tab?: AdminTab | undefined;
  /** The filters of the audit log: a person, or `me`; an action; the beginning of a target; a time. */
  who?: string | undefined;
  action?: string | undefined;
  what?: string | undefined;
  since?: (typeof SINCE)[number] | undefined;
  /** The row that is open. */
  row?: string | undefined;
  /** The filters of tenants or settings. */
  q?: string | undefined;
  state?: string | undefined;
  /** Only settings that somebody has set. */
  only?: "set" | undefined;
}

export const adminRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/admin",
    validateSearch: (search: Search): AdminSearch => ({
      tab: oneOf(TABS, search["tab"]),
      since: oneOf(SINCE, search["since"]),
      only: oneOf(["set"], search["only"]),
      ...texts(search, ["row", "q", "state", "who", "action", "what"]),
    }),
    component: lazyRouteComponent(() => import("./AdminPage.tsx"), "AdminPage"),
  }),
] as const;
