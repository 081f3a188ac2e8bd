/** Reads `/openapi.json` and makes requests from it, so that a new route is covered by the tests without a word about it. */
import { Ajv } from "ajv";

export interface Schema {
  type?: "string" | "integer" | "number" | "boolean" | "array" | "object" | "null";
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  default?: unknown;
  examples?: unknown[];
}

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  schema: Schema;
  examples?: Record<string, { value: unknown }>;
}

export interface Operation {
  method: string;
  /** As in the document: `/files/{filename}`. */
  path: string;
  tags?: string[];
  summary?: string;
  responses: Record<string, unknown>;
  parameters: Parameter[];
  body: Schema | undefined;
  /** Whether it may be left out. */
  bodyOptional: boolean;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, DescribedOperation>>;
}
interface DescribedOperation extends Omit<Operation, "method" | "path" | "body" | "bodyOptional" | "parameters"> {
  parameters?: Parameter[];
  requestBody?: RequestBody;
}
interface RequestBody {
  required?: boolean;
  content: { "application/json": { schema: Schema } };
}

export async function readDocument(url: string): Promise<Document> {
  return (await (await fetch(`${url}/openapi.json`)).json()) as Document;
}

/** `known` are values for parameters in paths, such as the id of something that exists. */
export function operationsOf({ paths }: Document, known: Record<string, string> = {}): Operation[] {
  const withKnown = (parameter: Parameter): Parameter => {
    const value = parameter.in === "path" ? known[parameter.name] : undefined;
    return value === undefined ? parameter : { ...parameter, examples: { known: { value } } };
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody, parameters = [], ...operation }]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
      parameters: parameters.map(withKnown),
      body: requestBody?.content["application/json"].schema,
      bodyOptional: requestBody?.required === false,
    })),
  );
}

/** Whether it answers with a stream that may never end. */
export function isStream({ responses }: Operation): boolean {
  return JSON.stringify(responses).includes('"text/event-stream"');
}

const TEXTS = [
  "x",
  "1",
  "00000000-0000-4000-8000-000000000000",
  "2025-01-01T00:00:00Z",
  "https://x",
  "bolt://x",
  "P1D",
  "1.1",
  "1:up",
  "slot",
];

/** A value that the schema accepts. */
export function example(schema: Schema): unknown {
  const chosen = schema.const ?? schema.enum?.[0] ?? schema.examples?.[0];
  if (chosen !== undefined) return chosen;
  if (schema.anyOf) return example(schema.anyOf[0] as Schema);
  switch (schema.type) {
    case "integer":
    case "number":
      return schema.minimum ?? 1;
    case "boolean":
      return true;
    case "array":
      return [example(schema.items ?? {})];
    case "object":
      return required(schema);
    case "null":
      return null;
    case "string":
    case undefined:
      return textLike(schema);
  }
}

function textLike({ format, pattern = "" }: Schema): string {
  if (format === "uuid") return TEXTS[2] as string;
  if (format === "date-time") return TEXTS[3] as string;
  const text = TEXTS.find((candidate) => new RegExp(pattern, "u").test(candidate));
  if (text === undefined) throw new Error(`no example for the pattern ${pattern}: add one to TEXTS`);
  return text;
}

/** An object with only what it must have. */
export function required({ properties = {}, required: names = [] }: Schema): Record<string, unknown> {
  const needed = names.filter((name) => properties[name]?.default === undefined);
  return Object.fromEntries(needed.map((name) => [name, example(properties[name] ?? {})]));
}

/** An object with all its plain fields: no lists, which are for many of the same. */
function plain({ properties = {} }: Schema): Record<string, unknown> {
  const fields = Object.entries(properties).filter(([, { type }]) => type !== "array");
  return Object.fromEntries(fields.map(([name, field]) => [name, example(field)]));
}

/** The path with acceptable parameters, except those given, which are put in as they are. */
export function pathOf(operation: Operation, given: Record<string, string> = {}): string {
  return operation.path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => given[name] ?? examplesOf(operation, name)[0] ?? "x",
  );
}

/** The path with each documented word for each parameter, for example every stage with every transition. */
export function pathsOf(operation: Operation): string[] {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const combinations = names.reduce<Record<string, string>[]>(
    (some, name) => some.flatMap((given) => examplesOf(operation, name).map((value) => ({ ...given, [name]: value }))),
    [{}],
  );
  return combinations.map((given) => pathOf(operation, given));
}

function examplesOf({ parameters }: Operation, name: string): string[] {
  const parameter = parameters.find((candidate) => candidate.in === "path" && candidate.name === name);
  const documented = Object.values(parameter?.examples ?? {}).map(({ value }) => value);
  const values = documented.length > 0 ? documented : [example(parameter?.schema ?? {})];
  return values.map((value) => encodeURIComponent(String(value)));
}

type WrongValue = [why: string, value: unknown];

/** Values that must be refused, each with the reason: what the schema does not allow, and what cannot be stored. */
export function wrongValues(schema: Schema): WrongValue[] {
  const fits = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  return [...misfits(schema).filter(([, value]) => !fits(value)), ...unstorable(schema)];
}

function unstorable(schema: Schema): WrongValue[] {
  const alternatives = schema.anyOf ?? [schema];
  if (!alternatives.some(({ type, enum: words }) => (type === "string" || type === undefined) && !words)) return [];
  return [
    ["with a NUL", "a\u0000b"],
    ["with an unpaired surrogate", "a\ud800b"],
  ];
}

/** Among these are values that another part of the schema allows. */
function misfits(schema: Schema): WrongValue[] {
  if (schema.anyOf) return schema.anyOf.flatMap(wrongValues);
  const wrong: WrongValue[] = [["null", null]];
  const ofTypes = { string: "x", number: 1.5, boolean: true, array: [], object: {} };
  for (const [type, value] of Object.entries(ofTypes)) if (type !== schema.type) wrong.push([`a ${type}`, value]);
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, items, properties } = schema;
  if (minimum !== undefined) wrong.push(["too small", minimum - 1]);
  if (maximum !== undefined) wrong.push(["too large", maximum + 1]);
  if (minLength) wrong.push(["too short", "x".repeat(minLength - 1)]);
  if (maxLength !== undefined) wrong.push(["too long", "x".repeat(maxLength + 1)]);
  if (schema.enum) wrong.push(["none of the words", "nonsense"]);
  if (minItems) wrong.push(["too few", []]);
  if (maxItems !== undefined) wrong.push(["too many", Array(maxItems + 1).fill(example(items ?? {}))]);
  if (items) wrong.push(...wrongValues(items).map(([why, value]): WrongValue => [`an item: ${why}`, [value]]));
  if (properties) wrong.push(...wrongFields(schema));
  return wrong;
}

/** Objects of which one field is wrong, missing or unknown, while all else is as it should be. */
function wrongFields(schema: Schema): WrongValue[] {
  const fields = Object.entries(schema.properties ?? {});
  const least = required(schema);
  const withWrong = (base: object) =>
    fields.flatMap(([name, field]) =>
      wrongValues(field).map(([why, value]): WrongValue => [`${name}: ${why}`, { ...base, [name]: value }]),
    );
  return [
    ...withWrong(least),
    ...withWrong(plain(schema)),
    ...Object.keys(least).map((name): WrongValue => [`${name} missing`, { ...least, [name]: undefined }]),
    ["an unknown field", { ...least, unknown_field: 1 }],
    ["an unknown field", { ...plain(schema), unknown_field: 1 }],
  ];
}
