/** The pages of chains. */
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../app/root-route.ts";
import { count, oneOf, type Search, text, texts } from "../app/search-values.ts";

export const chainsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains",
  validateSearch: (search: Search): { q?: string | undefined } => ({ q: text(search["q"]) }),
  component: lazyRouteComponent(() => import("./ChainsPage.tsx"), "ChainsPage"),
});

export interface RunsSearch {
  status?: string | undefined;
  opTime?: string | undefined;
  trigger?: string | undefined;
  person?: string | undefined;
  q?: string | undefined;
  /** What a node of the run waits for: `table:ORDERS`, `pool:small`, `slot`, `retry`. */
  waitsFor?: string | undefined;
}
const RUNS_SEARCH = ["status", "opTime", "trigger", "person", "q", "waitsFor"] as const;
export const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains/runs",
  validateSearch: (search: Search): RunsSearch => texts(search, RUNS_SEARCH),
  component: lazyRouteComponent(() => import("./RunsPage.tsx"), "RunsPage"),
});

export interface RunSearch {
  tab?: string | undefined;
  node?: string | undefined;
  /** How many steps around the node are drawn of a graph that is too large. */
  depth?: string | undefined;
  panel?: "closed" | undefined;
  /** Of the node's log; the last one if it is not given. */
  attempt?: number | undefined;
  /** Of the log: `L120`, or `L120-140`. */
  line?: string | undefined;
  /** The search and the level of the log. */
  find?: string | undefined;
  regex?: true | undefined;
  logLevel?: "warn" | "error" | undefined;
  /** The run to compare with; the last successful one if it is not given. */
  with?: string | undefined;
  /** The newest run in the grid. */
  until?: string | undefined;
}
export const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains/runs/$runId",
  /** Without `node`, a failed run opens on its first failed node, unless the panel was closed. */
  validateSearch: (search: Search): RunSearch => ({
    tab: text(search["tab"]),
    node: text(search["node"]),
    depth: text(search["depth"]),
    panel: search["panel"] === "closed" ? "closed" : undefined,
    attempt: count(search["attempt"]),
    line: text(search["line"]),
    find: text(search["find"]),
    regex: search["regex"] === true ? true : undefined,
    logLevel: oneOf(["warn", "error"], search["logLevel"]),
    with: text(search["with"]),
    until: text(search["until"]),
  }),
  component: lazyRouteComponent(() => import("./run/RunPage.tsx"), "RunPage"),
});

/** With the filters of its runs. */
export interface ChainSearch extends RunsSearch {
  tab?: string | undefined;
  /** The versions that are compared, as text or as a graph. */
  version?: number | undefined;
  against?: number | undefined;
  view?: string | undefined;
  /** The node of the graph that is selected, and how many steps around it are drawn of a graph that is too large. */
  node?: string | undefined;
  depth?: string | undefined;
  /** The form that starts a run is open. */
  start?: true | undefined;
  /** The newest run in the grid. */
  until?: string | undefined;
}
export const chainRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains/$chainId",
  validateSearch: (search: Search): ChainSearch => ({
    ...texts(search, RUNS_SEARCH),
    tab: text(search["tab"]),
    version: count(search["version"]),
    against: count(search["against"]),
    view: text(search["view"]),
    node: text(search["node"]),
    depth: text(search["depth"]),
    start: search["start"] === true ? true : undefined,
    until: text(search["until"]),
  }),
  component: lazyRouteComponent(() => import("./ChainPage.tsx"), "ChainPage"),
});

const newChainRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chains/new",
  component: lazyRouteComponent(() => import("./editor/NewChainPage.tsx"), "NewChainPage"),
});

export const chainsRoutes = [chainsRoute, runsRoute, runRoute, newChainRoute, chainRoute] as const;
