/**
 * What a JSON Schema validator found, in sentences for the person who wrote the value. The settings file and the nodes of a
 * chain are both written by hand and share these; both run Ajv with `allErrors` and `verbose`.
 */
import type { ErrorObject } from "ajv";
import { accepts, type JsonSchema } from "../config/accepts.ts";

/** The keywords that `accepts` puts into words. Whatever else a schema asks for is told in the validator's own. */
const IN_WORDS = new Set([
  "type",
  "const",
  "enum",
  "anyOf",
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
]);

/** Where the error is: for an unknown, missing or misnamed key, the key itself instead of the object around it. */
export function pathOf({ instancePath, params, propertyName }: ErrorObject): string[] {
  const { additionalProperty, missingProperty } = params as { additionalProperty?: string; missingProperty?: string };
  const key = additionalProperty ?? missingProperty ?? propertyName;
  return [...stepsOf(instancePath), ...(key === undefined ? [] : [key])];
}

/** The steps of a JSON Pointer: `/a~1b/0` is `a/b`, then `0`. */
export function stepsOf(pointer: string): string[] {
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** A path as one would write it in code: `rules[0].name`. */
export function written(path: readonly string[]): string {
  return path.reduce((text, step) => (/^\d+$/.test(step) ? `${text}[${step}]` : text ? `${text}.${step}` : step), "");
}

/** Ajv reports each branch of an alternative, and the alternative as a whole after them: that one says it all. */
export function onePerPlace(errors: readonly ErrorObject[]): ErrorObject[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    if (isAlternative(error)) while (isBranchOf(kept.at(-1), error)) kept.pop();
    kept.push(error);
  }
  return [...new Map(kept.map((error) => [pathOf(error).join("/"), error])).values()];
}

/** What is wrong with the value, and what would do. Unknown keys are left out: what to say depends on who asked for them. */
export function complaint(error: ErrorObject, subject: string): string {
  const schema: JsonSchema = error.parentSchema ?? {};
  if (error.keyword === "required") {
    return `${subject} is missing. Accepted: ${accepts(schema.properties?.[pathOf(error).at(-1) ?? ""])}.`;
  }
  if (IN_WORDS.has(error.keyword)) return `${subject} is ${shown(error.data)}. Accepted: ${accepts(schema)}.`;
  return `${subject} ${(error.message ?? "is not valid").replace("NOT", "not")}.`;
}

/** The keys that an object may have, for the hint after an unknown one. */
export function knownKeys({ parentSchema }: ErrorObject): string[] {
  return Object.keys((parentSchema?.["properties"] as object | undefined) ?? {});
}

function isAlternative({ keyword }: ErrorObject): boolean {
  return keyword === "anyOf" || keyword === "oneOf";
}

function isBranchOf(error: ErrorObject | undefined, whole: ErrorObject): boolean {
  return (
    error !== undefined &&
    error.schemaPath.startsWith(`${whole.schemaPath}/`) &&
    error.instancePath.startsWith(whole.instancePath)
  );
}

/** Text is not shown: what someone wrote may be a credential in the wrong place, and the path says where to look. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a group of settings";
  return typeof value === "string" ? "text" : String(value);
}
