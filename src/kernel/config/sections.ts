/**
 * Checks the sections of the configuration file against the schemas that the modules hand in, and fills in defaults.
 * The kernel knows no module, so it learns only here, at run time, which sections there are.
 */
import { Ajv, type ErrorObject } from "ajv";
import { type TObject, type TRecord, Type } from "typebox";
import { complaint, onePerPlace, pathOf } from "../json/schema-errors.ts";
import type { ConfigFile } from "./file.ts";
import type { Setting } from "./settings.ts";

/** A closed object schema (`additionalProperties: false`), or a map of names that people choose to such. */
export type SectionSchema = TObject | TRecord;

/** `settings` are those of the environment, for whoever looks for one of them in the file. */
export function checkSections(
  file: ConfigFile,
  schemas: Readonly<Record<string, SectionSchema>>,
  settings: readonly Setting[],
): { sections: Record<string, unknown> } | { problems: string[] } {
  assertClosed(schemas, "sections");
  // A section that is absent, or present but empty, which YAML reads as null, still gets its defaults.
  const names = Object.keys(schemas);
  const content = { ...file.content, ...Object.fromEntries(names.map((name) => [name, file.content[name] ?? {}])) };
  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true });
  const validate = ajv.compile<Record<string, unknown>>(Type.Object(schemas, { additionalProperties: false }));
  if (validate(content)) return { sections: content };
  return { problems: onePerPlace(validate.errors ?? []).map((error) => sentence(error, file, settings)) };
}

/** A schema that lets unknown keys pass would let every misspelt one pass. */
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
