/**
 * Validation at the edge. Bodies are taken as they are: `"shard": "0"` is a mistake, not a number. Query strings and path
 * parameters are text by nature and are converted. Unknown fields are refused, since they are usually misspelt ones.
 */
import { Ajv, type ErrorObject } from "ajv";
import type { FastifyInstance, FastifySchemaValidationError } from "fastify";
import { kernelError } from "../errors.ts";
import { UUID } from "../ids.ts";
import { compileWithDefaults } from "../json/defaults.ts";
import { knownKeys, mustBe, pathOf, stepsOf, written } from "../json/schema-errors.ts";
import { nearest } from "../nearest.ts";
import { createWhenUsed } from "./when-used.ts";

const FORMATS = {
  "date-time": isTime,
  uuid: UUID,
};

// Postgres knows neither a year 0 nor an offset of 16 hours. A `+` that was not encoded arrives as a space in a query
// string; there is only one thing it can mean.
const TIME =
  /^(?!0000)(\d{4}-\d\d-\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+ -](?:0\d|1[0-5]):[0-5]\d)$/;

function isTime(text: string): boolean {
  const day = TIME.exec(text)?.[1];
  if (day === undefined) return false;
  const midnight = new Date(`${day}T00:00:00Z`); // The 30th of February becomes the 2nd of March.
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
}

const OPTIONS = {
  allErrors: false,
  useDefaults: true,
  removeAdditional: false,
  strict: false,
  verbose: true,
  formats: FORMATS,
} as const;

const asGiven = validatorsOf(new Ajv({ ...OPTIONS, coerceTypes: false }));
const converting = validatorsOf(new Ajv({ ...OPTIONS, coerceTypes: true }));

function validatorsOf(ajv: Ajv) {
  const whenUsed = createWhenUsed<unknown, true | { error: FastifySchemaValidationError[] }>();
  return (schema: object) =>
    whenUsed(schema, () => {
      const validate = compileWithDefaults(ajv, schema);
      return (part) => validate(part) || { error: (validate.errors ?? []) as FastifySchemaValidationError[] };
    });
}

export function useStrictValidation(http: FastifyInstance): void {
  http.setValidatorCompiler(({ schema, httpPart }) => (httpPart === "body" ? asGiven : converting)(schema));
  http.addHook("preValidation", ({ url }, _reply, done) => {
    // Postgres cannot store it, and only an escape can bring it in.
    const hasNul = url.includes("%00");
    const phrases = { where: "The address", what: "a NUL character (`%00`)" };
    done(hasNul ? kernelError("INVALID_TEXT", {}, phrases) : undefined);
  });
  http.setSchemaErrorFormatter((errors, part) =>
    kernelError("VALIDATION_FAILED", {}, { reason: sentence(errors, part) }),
  );
}

function sentence(errors: FastifySchemaValidationError[], part: string): string {
  const error = errors[0] as ErrorObject | undefined;
  if (!error) return `The ${part} is not valid`;
  const place = describePlace(error.instancePath, part);
  const key = pathOf(error).at(-1) ?? "";
  switch (error.keyword) {
    case "required": {
      const near = nearest(key, unknownKeys(error));
      return `${place} lacks the field \`${key}\`${near ? ` (you sent \`${near}\`)` : ""}`;
    }
    case "additionalProperties": {
      const known = knownKeys(error);
      const near = nearest(key, known);
      const noun = part === "querystring" ? "parameter" : "field";
      const hint = near ? ` (did you mean \`${near}\`?)` : part === "querystring" ? ` (${accepted(known)})` : "";
      return `${place} has the unknown ${noun} \`${key.slice(0, 64)}\`${hint}`;
    }
    case "enum": {
      const near = nearest(
        String(error.data),
        (error.params as { allowedValues: unknown[] }).allowedValues.map(String),
      );
      return `${place} ${mustBe(error)}${near ? ` (did you mean \`${near}\`?)` : ""}`;
    }
    default:
      return `${place} ${mustBe(error)}`;
  }
}

function accepted(parameters: readonly string[]): string {
  if (parameters.length === 0) return "this call takes none";
  return `known here: ${parameters.map((name) => `\`${name}\``).join(", ")}`;
}

function unknownKeys(error: ErrorObject): string[] {
  const known = new Set(knownKeys(error));
  return Object.keys(error.data as object).filter((name) => !known.has(name));
}

function describePlace(path: string, part: string): string {
  const whole =
    { querystring: "The query string", params: "The path", headers: "The request's headers" }[part] ?? "The body";
  if (path === "") return whole;
  const name = written(stepsOf(path));
  return part === "params"
    ? `The path's \`${name}\``
    : part === "querystring"
      ? `The parameter \`${name}\``
      : `The field \`${name}\``;
}
