/** The pages of all modules. */
import { createRouter } from "@tanstack/react-router";
import { adminRoutes } from "./admin/routes.ts";
import { PageFailed } from "./app/PageProblems.tsx";
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
  // Parameters that no page knows, and values that it has dropped, leave the address: otherwise they would reach the page and the API.
  search: { strict: true },
  // The menu and the banner stay, so that the user can go elsewhere.
  defaultErrorComponent: PageFailed,
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
