/** The schema of a definition as JSON Schema, with a sentence for each field: for editors, and for the tables of docs/sources.md. */
import { Definition } from "./definition.ts";
import { DESCRIPTIONS } from "./descriptions.ts";

interface Schema {
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  required?: string[];
  default?: unknown;
  description?: string;
}

const SCHEMA = Definition as unknown as Schema;

export interface Field {
  /** As in DESCRIPTIONS. */
  path: string;
  schema: Schema;
  isRequired: boolean;
}

/** What has a default need not be written. */
export function definitionJsonSchema(): object {
  const schema = described(SCHEMA, "");
  return { $schema: "http://json-schema.org/draft-07/schema#", title: "A source of Millrace", ...schema };
}

/** Every field of a definition. The fields of a layer are there once, although three places may have them. */
export function definitionFields(): Field[] {
  const fields = new Map<string, Field>();
  visit(SCHEMA, "");
  return [...fields.values()];

  function visit(schema: Schema, path: string): void {
    for (const [name, part] of Object.entries(schema.properties ?? {})) {
      const field = pathOf(path, name);
      const isRequired = (schema.required?.includes(name) ?? false) && part.default === undefined;
      if (!fields.has(field)) fields.set(field, { path: field, schema: part, isRequired });
      visit(part, field);
    }
    for (const part of Object.values(schema.patternProperties ?? {})) visit(part, `${path}{}`);
    if (schema.items) visit(schema.items, `${path}[]`);
    for (const part of schema.anyOf ?? []) visit(part, path);
  }
}

function described(schema: Schema, path: string): Schema {
  const { properties, patternProperties, items, anyOf, required } = schema;
  const inside = (parts: Record<string, Schema>, at: (name: string) => string) =>
    Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, described(part, at(name))]));
  const needed = required?.filter((name) => properties?.[name]?.default === undefined);
  const { required: _, ...rest } = schema;
  const description = DESCRIPTIONS[path] ?? schema.description;
  return {
    ...rest,
    ...(description !== undefined && { description }),
    ...(needed && needed.length > 0 && { required: needed }),
    ...(properties && { properties: inside(properties, (name) => pathOf(path, name)) }),
    ...(patternProperties && { patternProperties: inside(patternProperties, () => `${path}{}`) }),
    ...(items && { items: described(items, `${path}[]`) }),
    ...(anyOf && { anyOf: anyOf.map((part) => described(part, path)) }),
  };
}

/** The sections of a layer have the same path wherever the layer is. */
function pathOf(path: string, name: string): string {
  const isLayer = ["defaults", "endpoints{}.overrides"].includes(path);
  const isInline = path === "endpoints{}" && !Object.hasOwn(DESCRIPTIONS, `${path}.${name}`);
  return path === "" || isLayer || isInline ? name : `${path}.${name}`;
}
