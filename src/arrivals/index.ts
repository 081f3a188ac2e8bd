/**
 * The door of arrivals: tables that have come, the models that wait for them, and the values of indicators that they bring.
 */
export { type Arrivals, createArrivals, tableNaming } from "./arrivals.ts";
export { arrivalsChecks } from "./doctor.ts";
export { fileArrivals } from "./file-arrivals.ts";
export { kpiRoutes } from "./kpi-routes.ts";
export type { IndicatorFlow, ModelFlow } from "./model-flow.ts";
export { modelRoutes } from "./model-routes.ts";
export { arriveType, modelType } from "./node-types.ts";
export { openRoutes } from "./open-routes.ts";
export { ArrivalsSettings } from "./settings.ts";
