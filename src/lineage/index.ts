/**
 * The entry point of lineage: a sink of OpenLineage events of many tenants, and the graph of their assets (see
 * docs/lineage.md).
 */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export const lineage = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
