/**
 * Checks the sections of the configuration file against the schemas that the modules hand in, and fills in defaults.
 * The kernel knows no module, so it learns only here, at run time, which sections there are.
 */
import { Ajv, type ErrorObject } from "ajv";
import { type Static, type TObject, Type } from "typebox";
import { didYouMean } from "../nearest.ts";
import { accepts, type JsonSchema } from "./accepts.ts";
import type { ConfigFile } from "./file.ts";
import { SETTINGS, type Setting } from "./settings.ts";

/** One closed object schema (`additionalProperties: false`) per section. */
export type SectionSchemas = Readonly<Record<string, TObject>>;
export type Sections<Schemas extends SectionSchemas> = { readonly [Name in keyof Schemas]: Static<Schemas[Name]> };

export function checkSections<Schemas extends SectionSchemas>(
  file: ConfigFile,
  schemas: Schemas,
): { sections: Sections<Schemas> } | { problems: string[] } {
  assertClosed(schemas, "sections");
  // A section that is absent, or present but empty, which YAML reads as null, still gets its defaults.
  const names = Object.keys(schemas);
  const content = { ...file.content, ...Object.fromEntries(names.map((name) => [name, file.content[name] ?? {}])) };
  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true });
  const validate = ajv.compile<Sections<Schemas>>(Type.Object(schemas, { additionalProperties: false }));
  if (validate(content)) return { sections: content };
  return { problems: onePerPlace(validate.errors ?? []).map((error) => sentence(error, file)) };
}

/** A schema that lets unknown keys pass would let every misspelt one pass. */
function assertClosed(schema: unknown, path: string): void {
  if (typeof schema !== "object" || schema === null) return;
  if ("type" in schema && schema.type === "object" && !("additionalProperties" in schema)) {
    throw new Error(`the schema at ${path} must say additionalProperties: false`);
  }
  for (const [key, value] of Object.entries(schema)) assertClosed(value, `${path}/${key}`);
}

/** Ajv reports each branch of an alternative, and the alternative as a whole last: that one says it all. */
function onePerPlace(errors: readonly ErrorObject[]): ErrorObject[] {
  return [...new Map(errors.map((error) => [pathOf(error).join("/"), error])).values()];
}

function sentence(error: ErrorObject, file: ConfigFile): string {
  const path = pathOf(error);
  const subject = `${file.place(path)}: \`${path.join(".")}\``;
  const schema: JsonSchema = error.parentSchema ?? {};
  switch (error.keyword) {
    case "additionalProperties":
      return `${subject} is not a setting.${hint(path, Object.keys(schema.properties ?? {}))}`;
    case "required":
      return `${subject} is missing. Accepted: ${accepts(schema.properties?.[path.at(-1) ?? ""])}.`;
    default:
      return `${subject} is ${shown(error.data)}. Accepted: ${accepts(schema)}.`;
  }
}

/** Where the error is: for an unknown or missing key, the key itself instead of the object around it. */
function pathOf({ instancePath, params }: ErrorObject): string[] {
  const { additionalProperty, missingProperty } = params as { additionalProperty?: string; missingProperty?: string };
  const path = instancePath.split("/").slice(1);
  const key = additionalProperty ?? missingProperty;
  return [...path.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")), ...(key === undefined ? [] : [key])];
}

function hint(path: readonly string[], known: readonly string[]): string {
  const name = path.at(-1) ?? "";
  const setting: Setting | undefined = path.length === 1 ? settingNamed(name) : undefined;
  if (setting) return ` Set ${setting.env} in the environment instead.`;
  return didYouMean(name, known) || ` Known here: ${known.join(", ") || "nothing"}.`;
}

function settingNamed(name: string): Setting | undefined {
  return Object.values<Setting>(SETTINGS).find(({ env, flag }) => name === flag || name.toUpperCase() === env);
}

/** Text is not shown: anything in the file may be a credential in the wrong place, and the position says where to look. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a group of settings";
  return typeof value === "string" ? "text" : String(value);
}
