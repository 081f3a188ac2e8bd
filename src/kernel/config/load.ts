/**
 * The configuration of a process: settings from flags and environment, sections from the file. All errors are reported
 * together.
 */
import { resolve } from "node:path";
import type { Static } from "typebox";
import { type Catalogue, mergeCatalogues } from "../catalogue.ts";
import { readConfigFile } from "./file.ts";
import { type SettingInForce, sectionsInForce, tableInForce } from "./in-force.ts";
import { type Environment, type Flags, readSettings, refusal, unknownNames } from "./read-settings.ts";
import { checkSections, type SectionSchema } from "./sections.ts";
import { type ServerSettings, type SettingTable, type SettingValues, serverSettings } from "./settings.ts";

/** The configuration of a module: the settings of its catalogue, and its section of the file. */
export type Configurable = Catalogue & { readonly section: SectionSchema };

export interface ConfigSources<Modules extends readonly Configurable[]> {
  env: Environment;
  flags: Flags;
  /** The directory of the file. */
  cwd: string;
  modules: Modules;
}

export type ServerConfig<Modules extends readonly Configurable[]> = ServerSettings & {
  /** By module: its section of the file. */
  readonly sections: { readonly [M in Modules[number] as M["name"]]: Static<M["section"]> };
  /** By module: its environment variables and flags. */
  readonly settings: { readonly [M in Modules[number] as M["name"]]: ValuesOf<M> };
  /** All of these for people, without secrets. */
  readonly inForce: readonly SettingInForce[];
};
type ValuesOf<M> = M extends { settings: infer Table extends SettingTable } ? SettingValues<Table> : object;

/** The configuration of `serve` and `migrate`. */
export function loadConfig<const Modules extends readonly Configurable[]>(
  sources: ConfigSources<Modules>,
): ServerConfig<Modules> {
  const { env, flags, cwd, modules } = sources;
  const { settings, scopes } = mergeCatalogues(modules);
  const ofKernel = serverSettings(Object.keys(scopes));
  const { values, problems } = readSettings(ofKernel, env, flags);
  const ofModules = modules.map(({ name, settings: table = {} }) => ({ name, ...readSettings(table, env, flags) }));
  const known = Object.values(settings).flat();
  const file = readConfigFile(values.configFile, cwd);
  const schemas = Object.fromEntries(modules.map(({ name, section }) => [name, section]));
  const given = "problems" in file ? {} : structuredClone(file.content); // Checking fills in defaults.
  const checked = "problems" in file ? file : checkSections(file, schemas, known);
  const all = [
    unknownNames(env, known),
    problems,
    ...ofModules.map((module) => module.problems),
    "problems" in checked ? checked.problems : [],
  ].flat();
  if ("problems" in file || "problems" in checked || all.length > 0) throw refusal(all);
  const tables = [ofKernel, ...modules.map(({ settings: table = {} }) => table)];
  const place = (path: readonly string[]) => resolve(cwd, file.place(path));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- filled module by module from what gives the type
  const byModule = {
    sections: checked.sections,
    settings: Object.fromEntries(ofModules.map((module) => [module.name, module.values])),
  } as Pick<ServerConfig<Modules>, "sections" | "settings">;
  return {
    ...values,
    ...byModule,
    inForce: [
      ...tables.flatMap((table) => tableInForce(table, env, flags)),
      ...sectionsInForce(checked.sections, schemas, { given, place }),
    ],
  };
}
