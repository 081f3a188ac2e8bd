/** Opens lineage in a process. */
import type { ModelFlow } from "../arrivals/index.ts";
import type { RunsEndedListener } from "../chains/index.ts";
import type { Engines } from "../engines/index.ts";
import type { LandedWindow } from "../harvest/index.ts";
import type { Tx } from "../kernel/data/db.ts";
import type { Assertions } from "../kernel/http/authenticate.ts";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import type { Outbound } from "../kernel/net/outbound.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { lineageChecks, NO_OWN_TENANT, ownTenantCheck } from "./doctor.ts";
import { createLineage } from "./lineage.ts";
import { mirrorCheck } from "./neo4j/doctor.ts";
import { lineageOverview } from "./overview.ts";
import type { FileFlow } from "./own/file-events.ts";
import { type OwnLineage, openOwnLineage } from "./own/own-lineage.ts";
import { flowsOf, type RunHistory } from "./own/run-flows.ts";
import { lineageRoutes } from "./routes.ts";
import { LineageSettings } from "./settings.ts";

export { LineageSettings as section };

/** Own lineage is emitted in the transaction of the work that it describes. */
export interface LineageNeeds {
  engines: Engines;
  webhooks: { outbound: Outbound };
  chains: { history: RunHistory; onRunsEnded(listener: RunsEndedListener): void };
  arrivals: {
    tableName(given: string): string;
    onRunEnded(listener: (tx: Tx, flow: ModelFlow) => Promise<void>): void;
    onFilesArrived(listener: (tx: Tx, files: readonly FileFlow[]) => Promise<void>): void;
  };
  harvest: { onLanded(listener: (tx: Tx, landed: LandedWindow) => Promise<void>): void };
}

type Context = ModuleContext<typeof CATALOGUE, LineageSettings>;

export async function open(context: Context, modules: LineageNeeds): Promise<Opened> {
  const { section: settings, outbox, onClose, log } = context;
  const lineage = await createLineage({ ...context, outbound: modules.webhooks.outbound, settings });
  onClose("the graph's mirror", lineage.close);
  if (lineage.projection) outbox.consume(lineage.projection.consumer);
  const own =
    settings.own.enabled && (await openOwnLineage(settings.own, { ...context, lineage, engines: modules.engines }));
  if (own) {
    outbox.consume(own.consumer);
    listen(own, context, modules);
  }
  const isLost = own === undefined;
  if (isLost) log.warn(`${NO_OWN_TENANT.found} ${NO_OWN_TENANT.advice}`);
  await lineage.prepare();
  const assertions = await openGateway(context);
  return {
    api: {},
    checks: [
      ...lineageChecks,
      ...(lineage.projection ? [mirrorCheck(lineage.projection.health)] : []),
      ...(isLost ? [ownTenantCheck] : []),
    ],
    overview: lineageOverview,
    services: { worker: lineage.services },
    routes: (http) => lineageRoutes(http, { ...context, lineage, settings }),
    drain: lineage.ingest.drain,
    ...(assertions ? { assertions } : {}),
  };
}

function listen(own: OwnLineage, { outbox }: Context, { chains, arrivals, harvest }: LineageNeeds): void {
  const { tableName } = arrivals;
  chains.onRunsEnded({
    statuses: new Set(["SUCCESS", "FAILED", "STOPPED"]),
    async onRunsEnded(tx, ended) {
      const flows = await flowsOf(tx, ended, { history: chains.history, tableName });
      await outbox.emit(tx, own.ofRuns(flows));
    },
  });
  arrivals.onRunEnded((tx, flow) => outbox.emit(tx, own.ofModel(flow)));
  arrivals.onFilesArrived((tx, files) => outbox.emit(tx, own.ofFiles(tx, files)));
  harvest.onLanded((tx, landed) => outbox.emit(tx, own.ofLanded({ ...landed, table: tableName(landed.table) })));
}

/** Imported where one is configured: what checks signatures takes several megabytes, and few have a gateway. */
async function openGateway({ section, env, configDir, clock }: Context): Promise<Assertions | undefined> {
  if (!section.gateway) return undefined;
  const { createGateway } = await import("./tenants/gateway.ts");
  return createGateway({ settings: section.gateway, env, directory: configDir, clock });
}
