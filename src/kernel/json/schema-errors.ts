/**
 * Ajv's errors as sentences for the person who wrote the value: the one vocabulary of every validator here. Requests are
 * refused at the first error, with `mustBe`. Files that people write by hand (settings, chains, KPIs) get a list of all
 * errors, with `complaint`; those validators run with `allErrors` and `verbose`.
 */
import type { ErrorObject } from "ajv";
import { didYouMean } from "../nearest.ts";
import { counted } from "../text/sentences.ts";
import { isRecord } from "./is-record.ts";
import { accepts, type JsonSchema } from "./schema-words.ts";

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

/** A path as code has it: `rules[0].name`. */
export function written(path: readonly string[]): string {
  return path.reduce((text, step) => (/^\d+$/.test(step) ? `${text}[${step}]` : text ? `${text}.${step}` : step), "");
}

/**
 * Ajv reports each branch of an alternative, and then the alternative as a whole: only the whole is kept. Of a group of fields that
 * only one branch takes, such as `retry: { maxAttempt: 3 }` where null is the other, the errors of that branch are kept instead.
 */
export function onePerPlace(errors: readonly ErrorObject[]): ErrorObject[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    const branches: ErrorObject[] = [];
    if (isAlternative(error)) {
      for (let last = kept.at(-1); isBranchOf(last, error); last = kept.at(-1)) {
        branches.unshift(last);
        kept.pop();
      }
    }
    kept.push(...(meantBranch(branches, error) ?? [error]));
  }
  return [...new Map(kept.map((error) => [pathOf(error).join("/"), error])).values()];
}

/** What is wrong with the value, and what is accepted. `noun` says what an unknown key should have been. */
export function complaint(error: ErrorObject, subject: string, noun = "field"): string {
  const schema: JsonSchema = error.parentSchema ?? {};
  const accepted = `Accepted: ${accepts(schema)}.`;
  const key = pathOf(error).at(-1) ?? "";
  switch (error.keyword) {
    case "additionalProperties": {
      const known = knownKeys(error);
      return `${subject} is not a ${noun}.${didYouMean(key, known) || ` Known here: ${known.join(", ") || "nothing"}.`}`;
    }
    case "required":
      return `${subject} is missing. Accepted: ${accepts(schema.properties?.[key])}.`;
    case "enum":
      return `${subject} is ${shownCode(error.data)}. ${accepted}${didYouMean(String(error.data), (schema.enum ?? []).map(String))}`;
    case "minLength":
    case "maxLength":
      return `${subject} has ${counted(String(error.data).length, "character")}. ${accepted}`;
    case "minItems":
    case "maxItems":
      return `${subject} has ${counted((error.data as unknown[]).length, "item")}. ${accepted}`;
    case "type":
    case "const":
    case "anyOf":
    case "minimum":
    case "maximum":
      return `${subject} is ${shown(error.data)}. ${accepted}`;
    default:
      return `${subject} ${mustBe(error)}.`;
  }
}

const FORMAT_NAMES: Record<string, string> = {
  "date-time": "a time like 2025-01-01T00:00:00Z",
  uuid: "a UUID",
};

/** Keywords that limit a count, with what they count. */
const COUNTED: Record<string, string> = {
  minLength: "character",
  maxLength: "character",
  minItems: "item",
  maxItems: "item",
  minProperties: "field",
  maxProperties: "field",
};

/** What the value must be, to be put behind its name; without a full stop. */
export function mustBe({ keyword, params, message, parentSchema }: ErrorObject): string {
  const { limit, type, format, allowedValues } = params as Record<string, unknown>;
  switch (keyword) {
    case "type":
      return `must be ${withArticle(String(type))}`;
    case "format":
      return `must be ${FORMAT_NAMES[String(format)] ?? `a ${String(format)}`}`;
    case "enum":
      return `must be one of ${(allowedValues as unknown[]).map((value) => `\`${String(value)}\``).join(", ")}`;
    case "pattern": {
      const description: unknown = parentSchema?.["description"];
      if (typeof description === "string") return `is not acceptable: ${description.replace(/\.$/, "")}`;
    }
  }
  const noun = COUNTED[keyword];
  if (noun === undefined) return message?.replace("NOT", "not") ?? "is not valid";
  return `must not have ${keyword.startsWith("min") ? "fewer" : "more"} than ${counted(Number(limit), noun)}`;
}

/** The keys that an object may have. */
export function knownKeys({ parentSchema }: ErrorObject): string[] {
  return Object.keys((parentSchema?.["properties"] as object | undefined) ?? {});
}

function withArticle(type: string): string {
  if (type.includes(",")) return `one of ${type.replaceAll(",", ", ")}`;
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function isAlternative({ keyword }: ErrorObject): boolean {
  return keyword === "anyOf" || keyword === "oneOf";
}

/** The errors of the only branch that takes a group of fields, if that is the value. */
function meantBranch(branches: readonly ErrorObject[], whole: ErrorObject): ErrorObject[] | undefined {
  if (!isRecord(whole.data)) return undefined;
  const branchOf = ({ schemaPath }: ErrorObject) => schemaPath.slice(whole.schemaPath.length).split("/")[1] ?? "";
  const others = branches.filter(
    ({ keyword, instancePath }) => keyword === "type" && instancePath === whole.instancePath,
  );
  const refused = new Set(others.map(branchOf));
  const meant = branches.filter((error) => !refused.has(branchOf(error)));
  return new Set(meant.map(branchOf)).size === 1 ? meant : undefined;
}

function isBranchOf(error: ErrorObject | undefined, whole: ErrorObject): error is ErrorObject {
  return (
    error !== undefined &&
    error.schemaPath.startsWith(`${whole.schemaPath}/`) &&
    error.instancePath.startsWith(whole.instancePath)
  );
}

/** A word of letters, where one of some words belongs, is a misspelt one and no credential. */
function shownCode(value: unknown): string {
  return typeof value === "string" && /^[A-Za-z][A-Za-z_-]{0,23}$/.test(value) ? `\`${value}\`` : shown(value);
}

/** Text is not shown: it may be a credential in the wrong place, and the path says where to look. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a group of settings";
  return typeof value === "string" ? "text" : String(value);
}
