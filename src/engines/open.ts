/** Opens engines in a process. */
import { join } from "node:path";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { engineChecks } from "./doctor.ts";
import type { Engines } from "./engine.ts";
import { createEngines } from "./engines.ts";
import { EnginesSettings } from "./settings.ts";

export { EnginesSettings as section };

export async function open(context: ModuleContext<typeof CATALOGUE, EnginesSettings>): Promise<Opened<Engines>> {
  const { section, dataDir, env, onClose } = context;
  const directories = dataDir && { lakeDir: join(dataDir, "lake"), databaseDir: join(dataDir, "duckdb") };
  const engines = createEngines(section, { lakeDir: undefined, ...directories, env });
  onClose("engines", engines.close);
  return { api: engines, checks: engineChecks(engines) };
}
