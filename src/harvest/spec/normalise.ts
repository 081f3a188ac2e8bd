/**
 * A checked policy as an EndpointSpec: durations in milliseconds, sets sorted, names of headers in lower case, nothing that is
 * undefined. So definitions that mean the same have the same fingerprint.
 */
import { familyRules } from "../decode/families.ts";
import type { Definition, EndpointDefinition } from "../definition/definition.ts";
import type { ClassifierRule, OutputField, RequestParam } from "../definition/policy.ts";
import type { Dimension } from "../definition/slicing-policy.ts";
import { durationMs, durationText } from "./duration.ts";
import type { MergedPolicy } from "./layers.ts";
import type {
  AuthSpec,
  DimensionSpec,
  EndpointSpec,
  PaginationSpec,
  ResponseSpec,
  SlicingSpec,
  UpdateSpec,
  WindowSpec,
} from "./snapshot.ts";
import { windowDefaults } from "./window-defaults.ts";

/** By the rules of the families. 429 closes the gate too. */
const RETRIED_ANYWAY: ReadonlySet<number> = new Set([408, 425, 429]);

const PREFIX_DEPTH = 8;

/** Of a policy without problems, so what is required is there. */
export function endpointSpec(
  { source, baseUrl }: Pick<Definition, "source" | "baseUrl">,
  { method, path }: EndpointDefinition,
  policy: MergedPolicy,
  answersIds: boolean,
): EndpointSpec {
  const { http, retry, rateLimit, batching, expr, budget, landing, params, outputFields, classifier, bodies } = policy;
  const { providerRatePerSec: _, headerWindow, ...rate } = rateLimit;
  return defined<EndpointSpec>({
    enumerator: policy.enumerator,
    family: policy.family,
    http: defined<EndpointSpec["http"]>({
      ...http,
      method,
      baseUrl: baseUrl.replace(/\/+$/, ""),
      path,
      headers: lowerCase(http.headers ?? {}),
      query: http.query ?? {},
    }),
    auth: authSpec(policy.auth),
    pagination: paginationSpec(policy.pagination, answersIds),
    window: policy.window && windowSpec(policy.window),
    slicing: policy.slicing && slicingSpec(policy.slicing),
    response: responseSpec(policy.response),
    retry: { ...retry, retryableStatus: sortedNumbers(retry.retryableStatus ?? []) },
    rateLimit: defined<EndpointSpec["rateLimit"]>({
      ...rate,
      keys: rate.keys ?? [source],
      headerWindowMs: headerWindow === undefined ? undefined : durationMs(headerWindow),
      quotas: (rate.quotas ?? []).map((quota) => ({ ...quota, window: durationText(durationMs(quota.window)!) })),
    }),
    batching,
    expr: { ...expr, allowedFunctions: sorted(expr.allowedFunctions ?? []) },
    budget,
    landing,
    update: updateSpec(policy.update),
    params: params.map((param) => defined<RequestParam>(param)).sort((a, b) => (a.name < b.name ? -1 : 1)),
    outputFields: outputFields.map((field) => defined<OutputField>(field)),
    classifier: [
      ...classifier.map((rule) => defined<ClassifierRule>(rule)),
      ...retried(retry),
      ...familyRules(policy.family),
    ],
    bodies,
  });
}

/** What the definition retries beside what every family does. */
function retried({ retryableStatus = [] }: MergedPolicy["retry"]): ClassifierRule[] {
  const others = sortedNumbers(retryableStatus).filter((status) => status < 500 && !RETRIED_ANYWAY.has(status));
  if (others.length === 0) return [];
  return [{ when: `status in [${others.join(", ")}]`, action: "RETRY", reason: "declared as retryable", level: "L1" }];
}

function authSpec(auth: MergedPolicy["auth"]): AuthSpec {
  if (auth.type !== "API_KEY" && auth.type !== "BEARER") return { type: "NONE" };
  const { type, location = "HEADER", credential = "", required = true } = auth;
  const name = auth.name ?? "authorization";
  return { type, location, name: location === "HEADER" ? name.toLowerCase() : name, credential, required };
}

function paginationSpec(pagination: MergedPolicy["pagination"], answersIds: boolean): PaginationSpec {
  const { pageSizeMax: _, tokenTtl, ...rest } = pagination;
  return defined<PaginationSpec>({
    ...rest,
    // Details are answered by one request for each batch of ids.
    type: rest.type ?? (answersIds ? "OFFSET" : undefined),
    tokenClass: rest.tokenClass ?? "REPEATABLE",
    tokenTtlMs: tokenTtl === undefined ? undefined : durationMs(tokenTtl),
  });
}

function windowSpec(window: NonNullable<MergedPolicy["window"]>): WindowSpec {
  const { granularity: _1, safetyLag: _2, minWindow: _3, maxWindow: _4, hint, ...rest } = window;
  return defined<WindowSpec>({
    ...rest,
    ...windowDefaults(window),
    hint: hint && defined<NonNullable<WindowSpec["hint"]>>({ ...hint, header: hint.header?.toLowerCase() }),
    boundaryPolicy: "[from,to)",
  });
}

function slicingSpec({ by = "TIME", ids, ladder = [], ...rest }: NonNullable<MergedPolicy["slicing"]>): SlicingSpec {
  return defined<SlicingSpec>({ ...rest, by, ids: ids && dimensionSpec(ids), ladder: ladder.map(dimensionSpec) });
}

function dimensionSpec({ name, type, fragment, rest, ...declared }: Dimension): DimensionSpec {
  const { from, until, values = [] } = declared;
  const withRest = rest === undefined ? {} : { rest };
  switch (type) {
    case "DATE": {
      const { format = "yyyy-MM-dd" } = declared;
      return { name, type, fragment, from: String(from), until: String(until), format };
    }
    case "NUMBER":
      return { name, type, fragment, from: Number(from), until: Number(until) };
    case "VALUES":
      return { name, type, fragment, values, ...withRest };
    case "PREFIX":
      return { name, type, fragment, values, depth: declared.depth ?? PREFIX_DEPTH, ...withRest };
  }
}

function updateSpec({ staleAfter, fillEmpty = [], ...rest }: MergedPolicy["update"]): UpdateSpec {
  return defined<UpdateSpec>({
    ...rest,
    staleAfterMs: staleAfter === undefined ? undefined : durationMs(staleAfter),
    fillEmpty: sorted(fillEmpty).map((path) => path.slice("$.".length)),
  });
}

function responseSpec(response: MergedPolicy["response"]): ResponseSpec {
  return defined<ResponseSpec>({
    ...response,
    itemElements: response.itemElements && sorted(response.itemElements),
    deletedValues: response.deletedValues && sorted(response.deletedValues),
    requiredPaths: sorted(response.requiredPaths ?? []),
    ignoredPaths: sorted(response.ignoredPaths ?? []),
  });
}

/** A set: its order and repetitions mean nothing. */
function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

function sortedNumbers(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Without the members that are undefined, which canonical JSON refuses. The checks have found the required ones. */
function defined<Type>(object: { [Key in keyof Type]?: unknown }): Type {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Type;
}
