/**
 * Checks the sections of the configuration file against the schemas of the modules, and fills in defaults. The kernel imports
 * no module, so the schemas are passed in.
 */
import { Ajv, type ErrorObject } from "ajv";
import { type TObject, type TRecord, Type } from "typebox";
import { compileWithDefaults } from "../json/defaults.ts";
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
  // A missing section, or an empty one (null in YAML), still gets its defaults.
  const names = Object.keys(schemas);
  const content = { ...file.content, ...Object.fromEntries(names.map((name) => [name, file.content[name] ?? {}])) };
  // Compiled once and used once at each start: without these two steps a start takes a tenth less processor time.
  const quickly = { validateSchema: false, code: { optimize: false } } as const;
  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true, ...quickly });
  ajv.addVocabulary(["secret"]); // Marks what is never shown: see in-force.ts.
  const validate = compileWithDefaults(ajv, Type.Object(schemas, { additionalProperties: false }));
  if (validate(content)) return { sections: content };
  return { problems: onePerPlace(validate.errors ?? []).map((error) => sentence(error, file, settings)) };
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
