/**
 * The door of arrivals: tables that have come, the models that wait for them, and the values of indicators that they bring.
 */
export { type Arrivals, createArrivals, tableNaming } from "./arrivals.ts";
export { arrivalsChecks } from "./doctor.ts";
export { fileArrivals } from "./file-arrivals.ts";
export { kpiRoutes } from "./kpis/routes.ts";
export { modelRoutes } from "./models/routes.ts";
export { arriveType, modelType } from "./node-types.ts";
export { openRoutes } from "./open-routes.ts";
export type { IndicatorFlow, ModelFlow } from "./runs/model-flow.ts";
export { ArrivalsSettings } from "./settings.ts";
