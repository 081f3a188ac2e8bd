/** Opens harvest in a process: its routes, services and checks. */
import type { NodeType, RunsEndedListener } from "../chains/index.ts";
import type { Lake } from "../engines/index.ts";
import { under } from "../kernel/http/server.ts";
import type { Opened } from "../kernel/module.ts";
import { createOutbound } from "../kernel/net/outbound.ts";
import { CATALOGUE } from "./catalogue.ts";
import { controlRoutes } from "./control/control-routes.ts";
import { pausesCheck } from "./control/doctor.ts";
import { allowedHosts, createHarvest, type HarvestContext } from "./harvest.ts";
import { harvestCheck, measureHealth } from "./health.ts";
import type { Landing, LandingDeps } from "./landing/landing.ts";
import { harvestType } from "./nodes/node-type.ts";
import type { NodePort } from "./nodes/node-waits.ts";
import { createOverview } from "./overview.ts";
import { planRoutes } from "./plan/plan-routes.ts";
import { recordCheck } from "./record-check.ts";
import { recordRoutes } from "./record-routes.ts";
import { registryRoutes } from "./registry-routes.ts";
import { HarvestSettings } from "./settings.ts";
import { sourceRoutes } from "./sources/source-routes.ts";
import { NODES_TOPIC } from "./topics.ts";

export { HarvestSettings as section };

export interface HarvestNeeds {
  engines: { lake: Lake | undefined; tables: LandingDeps["tables"] };
  arrivals: LandingDeps["arrivals"];
  chains: {
    /** Nodes that wait for plans. */
    called: NodePort;
    addTypes(types: readonly NodeType[]): void;
    onRunsEnded(listener: RunsEndedListener): void;
  };
}

export type HarvestApi = Pick<Landing, "onLanded">;

export async function open(
  context: HarvestContext,
  { engines, arrivals, chains }: HarvestNeeds,
): Promise<Opened<HarvestApi>> {
  const { db, wake, onClose } = context;
  const outbound = createOutbound({
    allowPrivate: allowedHosts(context),
    httpsOnly: true,
    setting: CATALOGUE.settings.allowPrivate.env,
  });
  onClose("requests to sources", outbound.close);
  const harvest = createHarvest({
    ...context,
    outbound,
    lake: engines.lake,
    tables: engines.tables,
    arrivals,
    chains: chains.called,
  });
  const { landing, services } = harvest;
  chains.addTypes([harvestType({ nodeWaits: harvest.nodeWaits, sourceNames: harvest.registry.names })]);
  chains.onRunsEnded(cancelsPlans(wake));
  measureHealth(context);
  await harvest.bodies.removeLeftovers();
  return {
    api: { onLanded: landing.onLanded },
    checks: [harvestCheck, pausesCheck, landing.check, recordCheck],
    overview: createOverview(context),
    services,
    routes: (http) =>
      under(http, "/api/v1/harvest", (api) => {
        registryRoutes(api, harvest);
        sourceRoutes(api, { ...context, registry: harvest.registry });
        planRoutes(api, harvest);
        controlRoutes(api, { db, ...harvest });
        recordRoutes(api, { db, endpointId: harvest.endpointId, known: harvest.registry.get });
      }),
  };
}

/** The plans of a run that was stopped, or failed beside them, are cancelled at once. Those of other runs are found later. */
function cancelsPlans(wake: HarvestContext["wake"]): RunsEndedListener {
  return {
    statuses: new Set(["STOPPED", "FAILED"]),
    onRunsEnded: async (tx) => tx.afterCommit(() => wake.hint(NODES_TOPIC)),
  };
}
