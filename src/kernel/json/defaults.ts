/**
 * Validators that apply every default of a schema. Ajv ignores a default inside `anyOf` and `oneOf`, such as that of a field
 * of an object that may also be null: the value would be accepted, and stored, without the field. So before Ajv validates a
 * value, each alternative in it is completed by the first member that accepts it.
 */
import type { Ajv, ErrorObject } from "ajv";
import { isRecord } from "./is-record.ts";

export interface Validator {
  (value: unknown): boolean;
  /** Of the last call. */
  errors?: ErrorObject[] | null;
}

/** Like `ajv.compile`. `ajv` applies the defaults outside alternatives (`useDefaults`). */
export function compileWithDefaults(ajv: Ajv, schema: object): Validator {
  const validate = ajv.compile(schema);
  const complete = completer(ajv, schema, schema);
  if (!complete) return validate;
  const validator: Validator = (value) => {
    complete(value);
    const isValid = validate(value);
    validator.errors = validate.errors ?? null;
    return isValid;
  };
  return validator;
}

/**
 * What validation makes of an object that leaves everything out, without a validator: the defaults of fields and of the fields of
 * objects, none of which holds an alternative.
 */
export function defaultsOf({ properties = {} }: Schema): Record<string, unknown> {
  const given = Object.entries(properties).filter(([, { default: value }]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, part]) => {
      const value: unknown = structuredClone(part.default);
      return [name, isRecord(value) ? { ...defaultsOf(part), ...value } : value];
    }),
  );
}

/** Whether an object needs a field that has no default. */
export function hasRequired({ properties = {}, required = [] }: Schema): boolean {
  return required.some((name) => properties[name]?.default === undefined);
}

/** The keywords that hold other schemas. */
export interface Schema {
  properties?: Record<string, Schema>;
  required?: string[];
  patternProperties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  default?: unknown;
  $defs?: object;
  definitions?: object;
}
/** Changes the value in place. */
type Complete = (value: unknown) => void;

/** Undefined if Ajv applies all defaults of the schema itself. */
function completer(ajv: Ajv, schema: Schema, root: Schema): Complete | undefined {
  const steps = partsOf(schema).flatMap(({ schema: part, of }) => {
    const complete = completer(ajv, part, root);
    return complete ? [(value: unknown) => of(value).forEach(complete)] : [];
  });
  const members = alternativesOf(schema);
  if (members.some(holdsDefault)) {
    // A member may refer to the definitions of the whole.
    const { $defs, definitions } = root;
    const shared = { ...($defs ? { $defs } : {}), ...(definitions ? { definitions } : {}) };
    const validators = members.map((member) => compileWithDefaults(ajv, { ...member, ...shared }));
    steps.push((value) => {
      if (typeof value !== "object" || value === null) return;
      // On a copy: a member that refuses the value may have filled in defaults of its own before.
      validators.find((validator) => validator(structuredClone(value)))?.(value);
    });
  }
  return steps.length === 0 ? undefined : (value) => steps.forEach((step) => step(value));
}

function alternativesOf({ anyOf = [], oneOf = [] }: Schema): Schema[] {
  return [...anyOf, ...oneOf];
}

function holdsDefault(schema: Schema): boolean {
  const inside = [...partsOf(schema).map((part) => part.schema), ...alternativesOf(schema)];
  return inside.some((part) => Object.hasOwn(part, "default") || holdsDefault(part));
}

/** The schemas of the parts of a value, with the parts that each is for. */
function partsOf(schema: Schema): { schema: Schema; of: (value: unknown) => unknown[] }[] {
  const { properties = {}, patternProperties = {}, additionalProperties, items, allOf = [] } = schema;
  const patterns = Object.keys(patternProperties).map((pattern) => new RegExp(pattern, "u"));
  const isOther = (name: string) => !Object.hasOwn(properties, name) && !patterns.some((one) => one.test(name));
  const valuesWhere = (value: unknown, isMeant: (name: string) => boolean) =>
    isRecord(value) ? Object.keys(value).flatMap((name) => (isMeant(name) ? [value[name]] : [])) : [];
  return [
    ...Object.entries(properties).map(([name, part]) => ({
      schema: part,
      of: (value: unknown) => {
        if (!isRecord(value)) return [];
        // As Ajv does, but before the alternatives in the default itself are completed.
        if (value[name] === undefined && part.default !== undefined) value[name] = structuredClone(part.default);
        return [value[name]];
      },
    })),
    ...Object.values(patternProperties).map((part, index) => ({
      schema: part,
      of: (value: unknown) => valuesWhere(value, (name) => patterns[index]?.test(name) ?? false),
    })),
    ...(typeof additionalProperties === "object"
      ? [{ schema: additionalProperties, of: (value: unknown) => valuesWhere(value, isOther) }]
      : []),
    ...(items ? [{ schema: items, of: (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : []) }] : []),
    ...allOf.map((part) => ({ schema: part, of: (value: unknown) => [value] })),
  ];
}
