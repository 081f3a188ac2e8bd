/**
 * The public interface of engines, which run the SQL of models and chain nodes. The engines are configured in `millrace.yaml`;
 * callers know an engine by its name only, not by its kind.
 */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export { ENGINE_DEFAULT, EngineRefusal, type Engines } from "./engine.ts";
export type { Lake, LakeColumn, LakeRow, Partition, TableStore } from "./lake/lake.ts";

export const engines = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
