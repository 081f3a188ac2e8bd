/** The entry point of harvest: sources, plans and the records that they bring (see docs/harvest.md). */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export type { LandedWindow } from "./landing/settle.ts";

export const harvest = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
