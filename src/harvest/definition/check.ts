/**
 * Everything that is wrong with a definition, each with its table, its field and its place in the file: its shape, what its parts
 * say together, and what the compiler finds in each endpoint that can be harvested.
 */
import { written } from "../../kernel/json/schema-errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { shownUrl } from "../../kernel/net/outbound.ts";
import { checkCron } from "../../kernel/time/cron.ts";
import { wrongTimeZone } from "../../kernel/time/time-zone.ts";
import { type Compiled, type CompileInput, compileSpec, wrongAlone } from "../spec/compile.ts";
import type { Dictionary } from "../spec/dictionary.ts";
import type { Problem } from "../spec/problem.ts";
import type { Operation } from "../spec/snapshot.ts";
import { type Definition, parseDefinition } from "./definition.ts";
import { defaultEndpoint } from "./rows.ts";
import { cfgTableOf } from "./tables.ts";

export interface LocatedProblem extends Problem {
  /** The steps to the value in the definition. */
  path: string[];
}

export interface CheckedDefinition {
  /** As it was written, with defaults. */
  definition: Definition;
  /** By the name of the endpoint. */
  compiled: ReadonlyMap<string, CompiledEndpoint>;
  warnings: LocatedProblem[];
}

export interface CheckOptions {
  dictionary: Dictionary;
  /** Hosts with their port that may be private or without TLS. */
  allowPrivate: readonly string[];
  /** Instead of the base URL of the definition. */
  baseUrl: string | undefined;
}

export function checkDefinition(
  value: unknown,
  options: CheckOptions,
): CheckedDefinition | { problems: LocatedProblem[] } {
  const parsed = parseDefinition(value);
  if ("problems" in parsed) {
    const problems = parsed.problems.map(({ path, message }) => problemAt(path, message));
    return { problems: distinct([...problems, ...(parsed.rest ? problemsOfRest(parsed.rest, options) : [])]) };
  }
  const { definition } = parsed;
  const input = inputOf(definition, options);
  const problems = wrongParts(definition);
  const warnings: LocatedProblem[] = [];
  const compiled = new Map<string, CompiledEndpoint>();
  for (const endpointName of searchEndpoints(definition)) {
    const found = compileEndpoint({ ...input, endpointName, operation: usualOperation(definition, endpointName) });
    const located = (problem: Problem) => locate(withAddress(problem, options), endpointName, definition);
    if ("problems" in found) problems.push(...found.problems.map(located));
    else {
      compiled.set(endpointName, found);
      warnings.push(...found.compiled.warnings.map(located));
    }
  }
  problems.push(...sharedTables(compiled), ...wrongTriggers(input, options));
  return problems.length > 0
    ? { problems: distinct(problems) }
    : { definition, compiled, warnings: distinct(warnings) };
}

function inputOf(definition: Definition, { dictionary, allowPrivate, baseUrl = definition.baseUrl }: CheckOptions) {
  return { definition: { ...definition, baseUrl }, dictionary, allowPrivate };
}

/** What else is wrong beside values of the wrong shape, which are left out: what no other value decides. */
function problemsOfRest(rest: Definition, options: CheckOptions): LocatedProblem[] {
  const input = inputOf(rest, options);
  const ofEndpoints = searchEndpoints(rest).flatMap((endpointName) =>
    wrongAlone({ ...input, endpointName, operation: usualOperation(rest, endpointName) }).map((problem) =>
      locate(withAddress(problem, options), endpointName, rest),
    ),
  );
  return [...wrongParts(rest), ...ofEndpoints];
}

/** An endpoint, compiled as far as it does not depend on the trigger. */
export interface CompiledEndpoint {
  compiled: Compiled;
  /** Parameters that only a trigger can give. With other values of them, the fingerprint is another one. */
  needs: string[];
}

export function compileEndpoint(input: Omit<CompileInput, "trigger">): CompiledEndpoint | { problems: Problem[] } {
  const found = compileSpec({ ...input, trigger: { isExample: true } });
  if ("compiled" in found) return { ...found, needs: [] };
  const others = found.problems.filter(({ table }) => table !== "trigger");
  if (others.length > 0) return { problems: others };
  const needs = found.problems.map(({ field }) => field.replace(/^params\./, ""));
  const params = Object.fromEntries(needs.map((name) => [name, ""]));
  const again = compileSpec({ ...input, trigger: { params, isExample: true } });
  return "compiled" in again ? { ...again, needs } : again;
}

/** Schedules whose endpoint does not compile with their parameters or for their operation. */
function wrongTriggers(
  input: Omit<CompileInput, "trigger" | "endpointName" | "operation">,
  options: CheckOptions,
): LocatedProblem[] {
  const { definition } = input;
  return Object.entries(definition.schedules ?? {}).flatMap(([name, { endpoint, operation, params = {} }]) => {
    const endpointName = endpoint ?? defaultEndpoint(definition);
    if (endpointName === undefined || !searchEndpoints(definition).includes(endpointName)) return [];
    const found = compileSpec({ ...input, endpointName, operation, trigger: { params } });
    if ("compiled" in found) return endlessBackfill(name, operation, found.compiled);
    return found.problems.map((problem) => {
      if (problem.table !== "trigger") return locate(withAddress(problem, options), endpointName, definition);
      return problemAt(["schedules", name, ...stepsOf(problem.field)], problem.reason);
    });
  });
}

/** A schedule gives no window, so the definition has to say how far back it goes. */
function endlessBackfill(name: string, operation: Operation, { snapshot }: Compiled): LocatedProblem[] {
  if (operation !== "BACKFILL" || snapshot.spec.window?.earliest !== undefined) return [];
  const reason = "A backfill by schedule goes back to `window.earliest`, which its endpoint does not declare.";
  return [problemAt(["schedules", name, "operation"], reason)];
}

/** An endpoint whose known records are only updated cannot be harvested. */
export function usualOperation({ defaults, endpoints }: Definition, name: string): Operation {
  const { enumerator, overrides } = endpoints[name] ?? {};
  return (enumerator ?? overrides?.enumerator ?? defaults?.enumerator) === "ExistingSet" ? "UPDATE" : "HARVEST";
}

/** The endpoints that can be harvested. */
function searchEndpoints({ endpoints }: Definition): string[] {
  return Object.keys(endpoints).filter((name) => endpoints[name]?.role === "SEARCH");
}

function wrongParts(definition: Definition): LocatedProblem[] {
  const { endpoints, schedules = {} } = definition;
  const problems: LocatedProblem[] = [];
  const add = (path: string[], reason: string | undefined) => {
    if (reason !== undefined) problems.push(problemAt(path, reason));
  };
  const searches = searchEndpoints(definition);
  if (searches.length === 0) add(["endpoints"], "No endpoint has the role SEARCH, so there is nothing to harvest.");
  const [first, ...others] = Object.keys(endpoints).filter((name) => endpoints[name]?.default);
  for (const name of others) add(["endpoints", name, "default"], `\`${first}\` is the default already.`);

  for (const [name, { endpoint, cron, timeZone }] of Object.entries(schedules)) {
    const path = ["schedules", name];
    const wrongZone = wrongTimeZone(timeZone);
    add([...path, "timeZone"], wrongZone && `${wrongZone}.`);
    const wrongCron = checkCron(cron, wrongZone === undefined ? timeZone : "UTC");
    add([...path, "cron"], wrongCron && `${wrongCron}.`);
    if (endpoint === undefined) {
      const isKnown = defaultEndpoint(definition) !== undefined;
      add(path, isKnown ? undefined : "It names no endpoint, and none is the default.");
    } else if (!searches.includes(endpoint)) {
      const what = Object.hasOwn(endpoints, endpoint) ? "is only for details" : "does not exist";
      add([...path, "endpoint"], `The endpoint \`${endpoint}\` ${what}.${didYouMean(endpoint, searches)}`);
    }
  }
  return problems;
}

/** A partition is replaced as a whole, so two endpoints would delete each other's rows. */
function sharedTables(compiled: ReadonlyMap<string, CompiledEndpoint>): LocatedProblem[] {
  const users = new Map<string, string>();
  return [...compiled].flatMap(([name, endpoint]) => {
    const { table } = endpoint.compiled.snapshot.spec.landing ?? {};
    if (table === undefined) return [];
    const user = users.get(table.toLowerCase());
    if (user === undefined) users.set(table.toLowerCase(), name);
    const reason = `\`${user}\` lands in ${table} already. An endpoint has a table of its own.`;
    return user === undefined ? [] : [problemAt(["endpoints", name, "landing", "table"], reason)];
  });
}

/** A problem with the value at this place of the definition. */
export function problemAt(path: string[], reason: string): LocatedProblem {
  const [part, , ...inside] = path;
  if (part === "endpoints" && inside.length > 0) {
    return { table: cfgTableOf(inside) ?? "reg_prov_endpoint_def", field: written(inside), reason, path };
  }
  return { table: TABLES[part ?? ""] ?? "reg_provenance", field: written(path), reason, path };
}

const TABLES: Readonly<Record<string, string>> = {
  endpoints: "reg_prov_endpoint_def",
  credentials: "reg_prov_credential",
  schedules: "ing_schedule",
};

/** An address that the definition does not have is named, since its place is that of another. */
function withAddress(problem: Problem, { baseUrl }: CheckOptions): Problem {
  if (problem.field !== "baseUrl" || baseUrl === undefined) return problem;
  return { ...problem, reason: `${shownUrl(baseUrl)} stands in for it. ${problem.reason}` };
}

/** Finds where the definition says what the compiler complains about. */
function locate(problem: Problem, endpointName: string, definition: Definition): LocatedProblem {
  const { table, field } = problem;
  const isOfDetail = field.startsWith("detail.");
  const name = isOfDetail ? (definition.endpoints[endpointName]?.detail ?? endpointName) : endpointName;
  const steps = stepsOf(isOfDetail ? field.slice("detail.".length) : field);
  const isPolicy = cfgTableOf(steps) !== undefined;
  const below = (...parents: string[]) => ({ ...problem, path: [...parents, ...steps] });
  if (table === "reg_provenance") return isPolicy ? below("defaults") : below();
  if (table === "reg_prov_endpoint_def") return below("endpoints", name, ...(isPolicy ? ["overrides"] : []));
  return isPolicy ? below("endpoints", name) : below();
}

/** The steps of a path such as `params[2].name`. */
function stepsOf(field: string): string[] {
  return field.split(/[.[\]]+/).filter((step) => step !== "");
}

/** A mistake in the defaults of a source is found in each of its endpoints. */
function distinct(problems: readonly LocatedProblem[]): LocatedProblem[] {
  return [...new Map(problems.map((one) => [JSON.stringify([one.path, one.reason]), one])).values()];
}
