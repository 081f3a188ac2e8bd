/** Opens arrivals in a process: its routes, services and checks, and the ports that connect it to chains. */

import type { NodeType } from "../chains/index.ts";
import type { Engines } from "../engines/index.ts";
import type { Queryable } from "../kernel/data/db.ts";
import { under } from "../kernel/http/server.ts";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import { createRetention } from "../kernel/work/retention.ts";
import type { ServiceLog } from "../kernel/work/service.ts";
import { type Arrivals, createArrivals } from "./arrivals.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { arrivalsChecks } from "./doctor.ts";
import { createFiles, type Files } from "./files.ts";
import { kpiRoutes } from "./kpis/routes.ts";
import { affectedOpTimes } from "./models/mapping.ts";
import { modelRoutes } from "./models/routes.ts";
import { arriveType, modelType } from "./node-types.ts";
import { openRoutes } from "./open-routes.ts";
import { createOverview } from "./overview.ts";
import type { ChainPort, Names } from "./runs/chain-port.ts";
import { ArrivalsSettings } from "./settings.ts";
import { deletesArrivals, deletesRuns } from "./store/retention.ts";

export { ArrivalsSettings as section };

export interface ArrivalsNeeds {
  engines: Engines;
  chains: {
    /** Runs that models start and wait for. */
    called: ChainPort;
    addTypes(types: readonly NodeType[]): void;
    connectTables(tables: Tables): void;
    /** Continues the nodes that wait for these tables. */
    arrived(tables: readonly ArrivedTable[]): Promise<unknown>;
  };
  webhooks: {
    /** Connects the indicators that subscriptions can name. */
    connectKpis(kpis: Names): void;
  };
}
interface Tables {
  hasArrived(db: Queryable, tables: readonly string[], opTime: string): Promise<Set<string>>;
  tableName(given: string): string;
}
interface ArrivedTable {
  table: string;
  opTime: string;
}

export type ArrivalsApi = Pick<Arrivals, "announceIn" | "onRunEnded" | "tableName"> & Files;

export async function open(
  context: ModuleContext<typeof CATALOGUE, ArrivalsSettings>,
  { engines, chains, webhooks }: ArrivalsNeeds,
): Promise<Opened<ArrivalsApi>> {
  const { db, section: settings, log } = context;
  const arrivals = createArrivals({
    ...context,
    settings,
    engines,
    chains: chains.called,
    onArrived: (tables) => notifyChains(chains, tables, log),
  });
  chains.connectTables(arrivals);
  webhooks.connectKpis(arrivals.kpiNames);
  chains.addTypes([arriveType(arrivals), modelType(arrivals)]);
  const { runWaiters, worker, timers, announceIn, onRunEnded, tableName } = arrivals;
  return {
    api: { announceIn, onRunEnded, tableName, ...createFiles({ settings, arrivals }) },
    checks: arrivalsChecks,
    overview: createOverview(context),
    services: {
      scheduler: [
        timers,
        createRetention({
          ...context,
          name: "arrivals.retention",
          deleteBatch: deletesArrivals(settings.keepDays, affectedOpTimes),
        }),
        createRetention({
          ...context,
          name: "arrivals.runs_retention",
          deleteBatch: deletesRuns(settings.runsKeepDays),
        }),
      ],
      worker: [worker],
    },
    async routes(http) {
      await under(http, "/api/open/kpi", (api) => openRoutes(api, { db, arrivals, settings }));
      await under(http, "/api/v1/kpi", (api) => {
        modelRoutes(api, { db, arrivals, settings });
        kpiRoutes(api, { db, arrivals });
      });
    },
    endWaits: runWaiters.stop,
    drain: arrivals.drain,
  };
}

/** Not awaited: if it fails, the timers of chains find what has arrived. */
function notifyChains(chains: ArrivalsNeeds["chains"], tables: readonly ArrivedTable[], log: ServiceLog): void {
  if (tables.length === 0) return;
  chains
    .arrived(tables)
    .catch((err: unknown) => log.warn({ err }, "could not notify chains of arrivals; their timers will find them"));
}
