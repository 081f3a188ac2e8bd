/** The entry point of webhooks: subscriptions to KPIs and their deliveries (see docs/webhooks.md). */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export const webhooks = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
