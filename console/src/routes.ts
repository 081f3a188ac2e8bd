/** The pages of all modules. */
import { createRouter } from "@tanstack/react-router";
import { adminRoutes } from "./admin/routes.ts";
import { rootRoute } from "./app/root-route.ts";
import { parseSearch, stringifySearch } from "./app/search-values.ts";
import { arrivalsRoutes } from "./arrivals/routes.ts";
import { chainsRoutes } from "./chains/routes.ts";
import { harvestRoutes } from "./harvest/routes.ts";
import { lineageRoutes } from "./lineage/routes.ts";
import { overviewRoutes } from "./overview/routes.ts";
import { trackingRoutes } from "./tracking/routes.ts";

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    ...overviewRoutes,
    ...harvestRoutes,
    ...trackingRoutes,
    ...chainsRoutes,
    ...arrivalsRoutes,
    ...lineageRoutes,
    ...adminRoutes,
  ]),
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
