/**
 * The door of arrivals: tables that have come, the models that wait for them, and the values of indicators that they bring.
 */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export type { IndicatorFlow, ModelFlow } from "./runs/model-flow.ts";

export const arrivals = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
