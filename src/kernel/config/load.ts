/**
 * The whole configuration of a process: settings from flags and environment, sections from the file. Whatever is wrong
 * is told at once, not one start after the other.
 */
import { readConfigFile } from "./file.ts";
import { type Environment, type Flags, readSettings, refusal } from "./read-settings.ts";
import { checkSections, type SectionSchemas, type Sections } from "./sections.ts";
import type { Settings } from "./settings.ts";

export interface ConfigSources<Schemas extends SectionSchemas> {
  env: Environment;
  flags: Flags;
  /** Where the file is looked for. */
  cwd: string;
  /** What each module accepts in its section of the file. */
  sections: Schemas;
}

export type ServerConfig<Schemas extends SectionSchemas> = Settings<"server"> & {
  readonly sections: Sections<Schemas>;
};
/** The configuration of `serve` and `migrate`. */
export function loadConfig<Schemas extends SectionSchemas>(sources: ConfigSources<Schemas>): ServerConfig<Schemas> {
  const { values, problems } = readSettings("server", sources.env, sources.flags);
  const file = readConfigFile(values.configFile, sources.cwd);
  const checked = "problems" in file ? file : checkSections(file, sources.sections);
  if ("problems" in checked) throw refusal([...problems, ...checked.problems]);
  if (problems.length > 0) throw refusal(problems);
  return { ...values, sections: checked.sections };
}
