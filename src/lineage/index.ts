/** The door of lineage: the sink of OpenLineage events of many tenants, and the graph of their assets. */
export { lineageChecks } from "./doctor.ts";
export { createGateway } from "./gateway.ts";
export { createLineage, type Lineage } from "./lineage.ts";
export { type OwnLineage, openOwnLineage } from "./own/own-lineage.ts";
export { lineageRoutes } from "./routes.ts";
export { LineageSettings } from "./settings.ts";
