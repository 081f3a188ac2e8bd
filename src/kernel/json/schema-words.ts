/** A JSON Schema in words, for the person who has to correct a value: a validator's own messages are for programmers. */

/** The keywords that are put into words. */
export interface JsonSchema {
  type?: string | readonly string[];
  const?: string | number | boolean;
  enum?: readonly (string | number)[];
  anyOf?: readonly JsonSchema[];
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  [keyword: string]: unknown;
}

/** Ends the sentence "Accepted: ...": `a whole number from 1 to 10`. */
export function accepts(schema: JsonSchema = {}): string {
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return `one of ${schema.enum.join(", ")}`;
  if (schema.anyOf) return schema.anyOf.map(accepts).join(" or ");
  const { type = "" } = schema;
  if (Array.isArray(type)) return type.map((one: string) => accepts({ ...schema, type: one })).join(" or ");
  switch (type) {
    case "integer":
      return `a whole number${range(schema.minimum, schema.maximum)}`;
    case "number":
      return `a number${range(schema.minimum, schema.maximum)}`;
    case "string":
      return `text${range(schema.minLength, schema.maxLength, " characters")}`;
    case "array":
      return `a list${range(schema.minItems, schema.maxItems, " items")}, each ${accepts(schema.items)}`;
    case "object":
      return acceptedKeys(Object.keys(schema.properties ?? {}));
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    default:
      return "a value";
  }
}

function acceptedKeys(names: readonly string[]): string {
  return names.length > 0 ? `settings ${names.join(", ")}` : "named values";
}

function range(min: number | undefined, max: number | undefined, unit = ""): string {
  if (min === undefined && max === undefined) return "";
  if (max === undefined) return ` of ${min} or more${unit}`;
  return min === undefined ? ` of at most ${max}${unit}` : ` from ${min} to ${max}${unit}`;
}
