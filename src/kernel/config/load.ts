/**
 * The whole configuration of a process: settings from flags and environment, sections from the file. Whatever is wrong
 * is told at once, not one start after the other.
 */
import { OperatorError } from "../errors.ts";
import { readConfigFile } from "./file.ts";
import { type Environment, type Flags, readSettings } from "./read-settings.ts";
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
export type ClientConfig = Settings<"client">;

/** A start that failed for its settings fails again with the same ones: a code of its own lets a supervisor give up. */
const EXIT_CODE = 2;

/** The configuration of `serve` and `migrate`. */
export function loadConfig<Schemas extends SectionSchemas>(sources: ConfigSources<Schemas>): ServerConfig<Schemas> {
  const { values, problems } = readSettings("server", sources.env, sources.flags);
  const file = readConfigFile(values.configFile, sources.cwd);
  const checked = "problems" in file ? file : checkSections(file, sources.sections);
  if ("problems" in checked) throw refusal([...problems, ...checked.problems]);
  if (problems.length > 0) throw refusal(problems);
  return { ...values, sections: checked.sections };
}

/** The configuration of the commands that talk to a running server. */
export function loadClientConfig({ env, flags }: { env: Environment; flags: Flags }): ClientConfig {
  const { values, problems } = readSettings("client", env, flags);
  if (problems.length > 0) throw refusal(problems);
  return values;
}

function refusal(problems: readonly string[]): OperatorError {
  const sentence =
    problems.length === 1 ? problems.join() : [`${problems.length} settings are wrong:`, ...problems].join("\n  ");
  return new OperatorError(sentence, EXIT_CODE);
}
