/** The pages of lineage. What is shown is the address: tenant, filters, graph, selection. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { type Search, texts } from "../app/search-values.ts";

/** For pages whose parameters are all texts. */
const textsOf =
  <const Name extends string>(names: readonly Name[]) =>
  (search: Search) =>
    texts(search, names);

export const searchRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lineage",
  validateSearch: textsOf(["tenant", "q", "kind", "mode", "dropped"]),
  component: lazyRouteComponent(() => import("./SearchPage.tsx"), "SearchPage"),
});

export const assetRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lineage/assets/$assetId",
  validateSearch: textsOf([
    "tenant",
    "tab",
    // The graph: tables or columns, how far, what is opened further, and what the panel shows.
    "level",
    "direction",
    "depth",
    "expand",
    "columns",
    "node",
    "list",
    // The path to another asset.
    "to",
    "paths",
    "path",
    // What is looked for among the neighbours, on each side.
    "up",
    "down",
    // Lists: filters, and the event that is open.
    "q",
    "kind",
    "event",
  ]),
  component: lazyRouteComponent(() => import("./asset/AssetPage.tsx"), "AssetPage"),
});
export type AssetSearch = ReturnType<typeof assetRoute.useSearch>;

export const tenantsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lineage/tenants",
  validateSearch: textsOf(["q", "state", "id"]),
  component: lazyRouteComponent(() => import("./TenantsPage.tsx"), "TenantsPage"),
});

export const deadLettersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lineage/dead-letters",
  validateSearch: textsOf(["tenant", "id"]),
  component: lazyRouteComponent(() => import("./DeadLettersPage.tsx"), "DeadLettersPage"),
});

export const tasksRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/lineage/tasks",
  validateSearch: textsOf(["tenant", "tab", "status", "type", "id"]),
  component: lazyRouteComponent(() => import("./TasksPage.tsx"), "TasksPage"),
});

export const lineageRoutes = [searchRoute, assetRoute, tenantsRoute, deadLettersRoute, tasksRoute] as const;
