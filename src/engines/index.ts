/**
 * The door of engines: where the SQL of models and of chain nodes runs. Which engines there are is configuration; whoever
 * uses one knows its name and nothing of its kind.
 */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export { ENGINE_DEFAULT, EngineRefusal, type Engines } from "./engine.ts";

export const engines = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
