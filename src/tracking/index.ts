/** The door of tracking: files and shards on their way through the pipeline's stages (docs/architecture.md tells more). */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export const tracking = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
