/** Opens engines in a process. */
import { join, resolve } from "node:path";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { engineChecks } from "./doctor.ts";
import type { Engines } from "./engine.ts";
import type { EngineTables } from "./engine-tables.ts";
import { createEngines } from "./engines.ts";
import { type Lake, openLake } from "./lake/lake.ts";
import { EnginesSettings } from "./settings.ts";

export { EnginesSettings as section };

export interface EnginesApi extends Engines {
  /** Nothing where there is neither a data directory nor a folder in the settings. */
  lake: Lake | undefined;
  /** Engines in which tables can be written. */
  tables: Pick<EngineTables, "of" | "names">;
}

export async function open(context: ModuleContext<typeof CATALOGUE, EnginesSettings>): Promise<Opened<EnginesApi>> {
  const { section, settings, dataDir, env, onClose } = context;
  const lakeDir = settings.lakeDir === undefined ? dataDir && join(dataDir, "lake") : resolve(settings.lakeDir);
  const databaseDir = dataDir && join(dataDir, "duckdb");
  const engines = createEngines(section, { lakeDir, databaseDir, env });
  onClose("engines", engines.close);
  const lake = lakeDir === undefined ? undefined : openLake(lakeDir);
  return { api: { ...engines, lake }, checks: engineChecks(engines) };
}
