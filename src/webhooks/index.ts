/** The door of webhooks: who wants to hear of KPIs, and the deliveries that tell them (docs/webhooks.md tells more). */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export const webhooks = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
