/** The entry point of arrivals: tables that have arrived, the models that wait for them, and values of KPIs. */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export type { IndicatorFlow, ModelFlow } from "./runs/model-flow.ts";

export const arrivals = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
