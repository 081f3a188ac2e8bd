/**
 * Validation at the edge. Bodies are taken as they are: `"shard": "0"` is a mistake, not a number. Query strings and path
 * parameters are text by nature and are converted. Unknown fields are refused, since they are usually misspelt ones.
 */
import { Ajv, type ErrorObject } from "ajv";
import type { FastifyInstance, FastifySchemaValidationError } from "fastify";
import { kernelError } from "../errors.ts";
import { UUID } from "../ids.ts";
import { knownKeys, stepsOf, written } from "../json/schema-errors.ts";
import { nearest } from "../nearest.ts";
import { whenUsed } from "./when-used.ts";

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

export function useStrictValidation(http: FastifyInstance): void {
  const exact = new Ajv({ ...OPTIONS, coerceTypes: false });
  const converting = new Ajv({ ...OPTIONS, coerceTypes: true });
  http.setValidatorCompiler(({ schema, httpPart }) =>
    whenUsed(() => {
      const validate = (httpPart === "body" ? exact : converting).compile(schema as object);
      return (part: unknown) => validate(part) || { error: (validate.errors ?? []) as FastifySchemaValidationError[] };
    }),
  );
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

const FORMAT_NAMES: Record<string, string> = {
  "date-time": "a time like 2025-01-01T00:00:00Z",
  uuid: "a UUID",
};

function sentence(errors: FastifySchemaValidationError[], part: string): string {
  const error = errors[0] as ErrorObject | undefined;
  if (!error) return `The ${part} is not valid`;
  const place = describePlace(error.instancePath, part);
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case "required": {
      const missing = String(params["missingProperty"]);
      const near = nearest(missing, unknownKeys(error));
      return `${place} lacks the field \`${missing}\`${near ? ` (you sent \`${near}\`)` : ""}`;
    }
    case "additionalProperties": {
      const name = String(params["additionalProperty"]);
      const near = nearest(name, knownKeys(error));
      return `${place} has the unknown field \`${name.slice(0, 64)}\`${near ? ` (did you mean \`${near}\`?)` : ""}`;
    }
    case "enum":
      return `${place} must be one of ${(params["allowedValues"] as unknown[]).map((value) => `\`${String(value)}\``).join(", ")}`;
    case "format":
      return `${place} must be ${FORMAT_NAMES[String(params["format"])] ?? `a ${String(params["format"])}`}`;
    case "type":
      return `${place} must be ${article(String(params["type"]))}`;
    case "pattern": {
      const description = error.parentSchema?.["description"];
      return `${place} is not acceptable${typeof description === "string" ? `: ${description.replace(/\.$/, "")}` : ""}`;
    }
    default:
      return `${place} ${error.message?.replace("NOT", "not") ?? "is not valid"}`;
  }
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

function article(type: string): string {
  if (type.includes(",")) return `one of ${type.replaceAll(",", ", ")}`;
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
