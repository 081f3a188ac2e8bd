/** The pages of overview. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { oneOf } from "../app/search-values.ts";

export const RANGES = { hour: 1, day: 24, week: 168 } as const;
export type RangeName = keyof typeof RANGES;

export interface OverviewSearch {
  /** The day is meant if there is none. */
  range?: RangeName | undefined;
  /** A time range that was selected, instead of one up to now. */
  from?: string | undefined;
  to?: string | undefined;
  /** All entries are listed, not only the newest. */
  needs?: "all" | undefined;
}

const time = (value: unknown) =>
  typeof value === "string" && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : undefined;

export const overviewRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  validateSearch: (search: Record<string, unknown>): OverviewSearch => {
    const [from, to] = [time(search["from"]), time(search["to"])];
    const isSpan = from !== undefined && to !== undefined;
    // Each parameter is named, because one that is left out keeps the value of the address.
    return {
      range: oneOf(["hour", "week"], search["range"]),
      from: isSpan ? from : undefined,
      to: isSpan ? to : undefined,
      needs: oneOf(["all"], search["needs"]),
    };
  },
  component: lazyRouteComponent(() => import("./OverviewPage.tsx"), "OverviewPage"),
});

export const overviewRoutes = [overviewRoute] as const;
