/** The door of lineage: the sink of OpenLineage events of many tenants, and the graph of their assets. */
import type { GatewayDeps } from "./gateway.ts";

export { lineageChecks } from "./doctor.ts";
export { createLineage, type Lineage } from "./lineage.ts";
export { type OwnLineage, openOwnLineage } from "./own/own-lineage.ts";
export { lineageRoutes } from "./routes.ts";
export { LineageSettings } from "./settings.ts";

/** Imported where one is configured: what checks signatures takes several megabytes, and few have a gateway. */
export const openGateway = async (deps: GatewayDeps) => (await import("./gateway.ts")).createGateway(deps);
