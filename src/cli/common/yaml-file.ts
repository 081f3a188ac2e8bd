/** The files with definitions that commands apply: YAML or JSON, with positions, so that errors can name a line and a column. */
import { type ConfigFile, parseConfigText } from "../../kernel/config/file.ts";
import { OperatorError } from "../../kernel/errors.ts";
import { canonicalJson } from "../../kernel/json/canonical.ts";
import { EXIT } from "./exit-codes.ts";

/** Throws everything that is wrong with the file. */
export function parseYamlFile(filename: string, text: string): ConfigFile {
  const file = parseConfigText(filename, text);
  if ("problems" in file) throw new OperatorError(file.problems.join("\n"), EXIT.usage);
  return file;
}

/** YAML has numbers that JSON does not have, such as `.inf`; they would be sent as null. */
export function assertJson(filename: string, content: unknown): void {
  try {
    canonicalJson(content);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new OperatorError(`${filename}: ${error.message}`, EXIT.usage);
  }
}
