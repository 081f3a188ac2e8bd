/**
 * A definition: a source, its endpoints and how each is harvested, as people write it in a file. Its shape is checked here; what
 * its parts mean together is checked when an endpoint is compiled (spec/compile.ts).
 */
import { Ajv, type ErrorObject } from "ajv";
import { type Static, Type } from "typebox";
import { compileWithDefaults } from "../../kernel/json/defaults.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { complaint, onePerPlace, pathOf, written } from "../../kernel/json/schema-errors.ts";
import { OPERATIONS } from "../spec/snapshot.ts";
import { PolicyLayer } from "./policy.ts";

const closed = { additionalProperties: false } as const;
/** The names of sources, endpoints, schedules and credentials: they are parts of paths, keys and metrics. */
export const NAME_PATTERN = "^[a-z][a-z0-9_-]{0,62}$";
const NAME_RULE =
  "a name has lower-case letters, digits, `_` and `-`, begins with a letter and has at most 63 characters";
const Name = Type.String({ pattern: NAME_PATTERN, description: NAME_RULE });
/** Maps from names that people choose. A key that is not a name is refused as an unknown key. */
const named = { ...closed, maxProperties: 100 };

export const METHODS = ["GET", "POST", "HEAD"] as const;
export const ROLES = ["SEARCH", "DETAIL"] as const;

/** Where the value of a credential is found. The value itself is never in a definition. */
const CredentialReference = Type.Union([
  Type.Object({ env: Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" }) }, closed),
  Type.Object({ secret: Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" }) }, closed),
]);

/** The values that a trigger gives to the parameters of an endpoint. */
export const ParamValues = Type.Record(
  Type.String({ pattern: "^.{1,255}$" }),
  Type.Union([Type.String({ maxLength: 4_096 }), Type.Number(), Type.Boolean()]),
  named,
);
export type ParamValues = Static<typeof ParamValues>;

/** Sections and fields of a policy beside the endpoint's own fields are its cfg layer; `overrides` is the layer below it. */
export const EndpointDefinition = Type.Object(
  {
    role: Type.Enum(ROLES, { default: "SEARCH" }),
    method: Type.Enum(METHODS, { default: "GET" }),
    /** A template, below `baseUrl`. */
    path: Type.String({ maxLength: 2_048 }),
    /** The endpoint of a plan that names none. */
    default: Type.Boolean({ default: false }),
    /** Requests are never anonymous. */
    requiresAuth: Type.Boolean({ default: false }),
    /** The endpoint that answers the records of ids, for the enumerator TwoPhase. */
    detail: Type.Optional(Name),
    overrides: Type.Optional(PolicyLayer),
    ...PolicyLayer.properties,
  },
  closed,
);
export type EndpointDefinition = Static<typeof EndpointDefinition>;

const ScheduleDefinition = Type.Object(
  {
    endpoint: Type.Optional(Name),
    operation: Type.Enum(OPERATIONS, { default: "HARVEST" }),
    cron: Type.String({ minLength: 1, maxLength: 255 }),
    timeZone: Type.String({ default: "UTC", minLength: 1, maxLength: 64 }),
    params: Type.Optional(ParamValues),
    /** Smaller goes first. */
    priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000 })),
  },
  closed,
);

export const Definition = Type.Object(
  {
    source: Name,
    name: Type.String({ minLength: 1, maxLength: 255 }),
    description: Type.Optional(Type.String({ maxLength: 4_096 })),
    baseUrl: Type.String({ minLength: 1, maxLength: 2_048 }),
    credentials: Type.Optional(Type.Record(Name, CredentialReference, named)),
    defaults: Type.Optional(PolicyLayer),
    endpoints: Type.Record(Name, EndpointDefinition, { ...named, minProperties: 1 }),
    schedules: Type.Optional(Type.Record(Name, ScheduleDefinition, named)),
  },
  closed,
);
export type Definition = Static<typeof Definition>;

export interface DefinitionProblem {
  /** The steps to the value, to find its line in a file. */
  path: string[];
  /** A sentence that names the value. */
  message: string;
}

/** Made when it is first used: it takes 25 MB, and most processes never see a definition. */
let validator: ReturnType<typeof compileWithDefaults> | undefined;

function validatorOf(): ReturnType<typeof compileWithDefaults> {
  validator ??= compileWithDefaults(
    new Ajv({ allErrors: true, verbose: true, useDefaults: true, allowUnionTypes: true }),
    Definition,
  );
  return validator;
}

/**
 * The definition with its defaults, or all that is wrong with its shape; then `rest` is the definition without those values, if it
 * has what is required. Does not change `value`.
 */
export function parseDefinition(
  value: unknown,
): { definition: Definition } | { problems: DefinitionProblem[]; rest: Definition | undefined } {
  const copy = structuredClone(value);
  const validate = validatorOf();
  if (validate(copy)) return { definition: copy as Definition };
  const problems = onePerPlace(validate.errors ?? []).map(problemOf);
  const isLeftOut = problems.every(({ path }) => isAlone(path)) && leaveOut(copy, problems);
  return { problems, rest: isLeftOut && validate(copy) ? (copy as Definition) : undefined };
}

/** No other value refers to it, such as a template to a parameter, or needs it, as those of a window need its section. */
function isAlone([part, ...inside]: readonly string[]): boolean {
  if (part !== "endpoints" && part !== "defaults") return inside.length > 0;
  const ofEndpoint = part === "endpoints" ? inside.slice(1) : inside;
  const [section = "", ...fields] = ofEndpoint[0] === "overrides" ? ofEndpoint.slice(1) : ofEndpoint;
  return fields.length > 0 && section !== "slicing" && section !== "params";
}

/** False if one is no member of an object, or of none that is there. */
function leaveOut(definition: unknown, problems: readonly DefinitionProblem[]): boolean {
  return problems.every(({ path }) => {
    const parent = path.slice(0, -1).reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), definition);
    const name = path.at(-1);
    if (!isRecord(parent) || name === undefined) return false;
    delete parent[name];
    return true;
  });
}

/** What others call our codes. */
const MEANT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "pagination.type": { CURSOR: "TOKEN", LINK: "URL", LIMIT: "OFFSET", PAGE_NUMBER: "PAGE" },
  "auth.type": { APIKEY: "API_KEY", KEY: "API_KEY", HEADER: "API_KEY", TOKEN: "BEARER", OAUTH: "OAUTH2" },
};

function problemOf(error: ErrorObject): DefinitionProblem {
  const path = pathOf(error);
  const subject = path.length === 0 ? "The definition" : `\`${written(path)}\``;
  const isMisnamed =
    error.keyword === "additionalProperties" && error.parentSchema?.["patternProperties"] !== undefined;
  const meant = MEANT[path.slice(-2).join(".")]?.[String(error.data).toUpperCase()];
  if (error.keyword === "enum" && meant !== undefined) {
    // What is similar to one of our codes has the question already, and not always with this one.
    const [sentence] = complaint(error, subject).split(" Did you mean ");
    return { path, message: `${sentence} Did you mean \`${meant}\`?` };
  }
  return { path, message: isMisnamed ? `${subject} is not acceptable: ${NAME_RULE}.` : complaint(error, subject) };
}
