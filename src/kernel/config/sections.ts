/**
 * Checks the sections of the configuration file against the schemas of the modules, and fills in defaults. The kernel imports
 * no module, so the schemas are passed in.
 */
import { Ajv, type ErrorObject } from "ajv";
import { type TObject, type TRecord, Type } from "typebox";
import { compileWithDefaults, defaultsOf, hasRequired, type Schema } from "../json/defaults.ts";
import { complaint, onePerPlace, pathOf } from "../json/schema-errors.ts";
import type { ConfigFile } from "./file.ts";
import type { Setting } from "./settings.ts";

/** A closed object schema (`additionalProperties: false`), or a map from user-chosen names to such objects. */
export type SectionSchema = TObject | TRecord;

/** `settings` are those of the environment, for a hint if one of them is in the file. */
export function checkSections(
  file: ConfigFile,
  schemas: Readonly<Record<string, SectionSchema>>,
  settings: readonly Setting[],
): { sections: Record<string, unknown> } | { problems: string[] } {
  assertClosed(schemas, "sections");
  const names = Object.keys(schemas);
  // An empty section (null in YAML) is a missing one.
  const isMissing = (name: string) => file.content[name] === undefined || file.content[name] === null;
  const isMisspelt = Object.keys(file.content).some((name) => !names.includes(name)); // Then the meant one is missing.
  // Compiling all schemas takes a tenth of the processor time of a start, and what is missing has only defaults.
  const isDefault = (name: string) => isMissing(name) && !isMisspelt && !hasRequired(schemas[name] as Schema);
  const validated = names.filter((name) => !isDefault(name));
  const content = {
    ...(isMisspelt ? file.content : {}),
    ...Object.fromEntries(validated.map((name) => [name, file.content[name] ?? {}])),
  };
  // Compiled once and used once at each start.
  const quickly = { validateSchema: false, code: { optimize: false } } as const;
  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true, ...quickly });
  ajv.addVocabulary(["secret"]); // Marks what is never shown: see in-force.ts.
  const own = Object.fromEntries(validated.map((name) => [name, schemas[name] as SectionSchema]));
  const validate = compileWithDefaults(ajv, Type.Object(own, { additionalProperties: false }));
  if (!validate(content)) {
    return { problems: onePerPlace(validate.errors ?? []).map((error) => sentence(error, file, settings)) };
  }
  const defaults = names.filter(isDefault).map((name) => [name, defaultsOf(schemas[name] as Schema)]);
  return { sections: { ...content, ...Object.fromEntries(defaults) } };
}

/** An open schema would accept misspelt keys. */
function assertClosed(schema: unknown, path: string): void {
  if (typeof schema !== "object" || schema === null) return;
  if ("type" in schema && schema.type === "object" && !("additionalProperties" in schema)) {
    throw new Error(`the schema at ${path} must say additionalProperties: false`);
  }
  for (const [key, value] of Object.entries(schema)) assertClosed(value, `${path}/${key}`);
}

function sentence(error: ErrorObject, file: ConfigFile, settings: readonly Setting[]): string {
  const path = pathOf(error);
  const subject = `${file.place(path)}: \`${path.join(".")}\``;
  const [name = ""] = path;
  const isMeant = ({ env, flag }: Setting) => name === flag || name.toUpperCase() === env;
  const setting = path.length === 1 ? settings.find(isMeant) : undefined;
  if (error.keyword === "additionalProperties" && setting) {
    return `${subject} is not a setting. Set ${setting.env} in the environment instead.`;
  }
  return complaint(error, subject, "setting");
}
