/** The entry point of tracking: files and shards in the stages of the pipeline (see docs/tracking.md). */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export const tracking = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
