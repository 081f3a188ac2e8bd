/**
 * The door of engines: where the SQL of models and of chain nodes runs. Which engines there are is configuration; whoever
 * uses one knows its name and nothing of its kind.
 */
export { engineChecks } from "./doctor.ts";
export { EngineRefusal, type Engines } from "./engine.ts";
export { createEngines } from "./engines.ts";
export { EnginesSettings } from "./settings.ts";
