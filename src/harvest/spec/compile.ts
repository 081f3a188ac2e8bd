/**
 * Compiles one endpoint of a definition to a Snapshot: merges the layers, checks what they mean together, and normalises the
 * result. A pure function: the same definition, trigger and dictionary give the same snapshot, byte for byte.
 */
import { didYouMean } from "../../kernel/nearest.ts";
import type { Definition, EndpointDefinition, ParamValues } from "../definition/definition.ts";
import type { PolicyLayer } from "../definition/policy.ts";
import { instantOf } from "../plan/window.ts";
import type { Check, CheckInput, Finding } from "./checks/check.ts";
import { compileTemplates } from "./checks/expressions.ts";
import { ALONE, CHECKS, WARNINGS } from "./checks/index.ts";
import { type Dictionary, SEEDED_DICTIONARY } from "./dictionary.ts";
import { exprProtoHashOf, specFingerprintOf } from "./hashes.ts";
import { cfgLayerOf, type Layer, mergeLayers, type Origins } from "./layers.ts";
import { endpointSpec } from "./normalise.ts";
import { type Problem, tableOf } from "./problem.ts";
import { wrongValues } from "./render-params.ts";
import type { EndpointSpec, Operation, Snapshot } from "./snapshot.ts";

export interface CompileInput {
  /** With `baseUrl` overridden already. */
  definition: Definition;
  endpointName: string;
  operation: Operation;
  trigger?: {
    params?: ParamValues;
    /** The values stand in for those of a later trigger, so they are not checked. */
    isExample?: boolean;
    /** Checked here, and used by the planner. */
    window?: { from: string; to: string };
  };
  /** Of `sys_dict_item`; without it, the codes that it is seeded with. */
  dictionary?: Dictionary;
  /** Hosts with ports that may be called without https and at private addresses. */
  allowPrivate?: readonly string[];
}

export interface Compiled {
  snapshot: Snapshot;
  specFingerprint: string;
  exprProtoHash: string;
  /** Paths of the detail endpoint begin with `detail.`. */
  origins: Origins;
  warnings: Problem[];
}

/** Part of the snapshot: another version may compile the same definition differently. A test compares those of the libraries. */
export const COMPILER_VERSION = "1 cel-js-8.0.0 json-p3-2.3.1";

export function compileSpec(input: CompileInput): { compiled: Compiled } | { problems: Problem[] } {
  const { definition, endpointName, operation, trigger = {} } = input;
  const endpoint = Object.hasOwn(definition.endpoints, endpointName) ? definition.endpoints[endpointName] : undefined;
  if (!endpoint) {
    const known = Object.keys(definition.endpoints);
    const reason = `The source \`${definition.source}\` has no endpoint \`${endpointName}\`.${didYouMean(endpointName, known)}`;
    return { problems: [{ table: "reg_prov_endpoint_def", field: "endpoint", reason }] };
  }
  const detailName = endpoint.detail;
  const detailEndpoint = detailName === undefined ? undefined : definition.endpoints[detailName];
  const main = checked(input, endpointName, endpoint, false);
  const answers =
    detailName !== undefined && detailEndpoint ? checked(input, detailName, detailEndpoint, true) : undefined;
  const detail = main.isTwoPhase || operation === "UPDATE" ? answers : undefined;
  const declared = [...main.params, ...(detail?.params ?? [])];
  const problems = [
    ...main.problems,
    ...(answers?.problems ?? []),
    ...(answers ? wrongKeys(main, answers) : []),
    ...wrongTrigger(trigger, declared, main.timeZone),
  ];
  if (problems.length > 0) return { problems };
  const wrong = trigger.isExample ? [] : wrongParams(declared, trigger.params);
  if (wrong.length > 0) return { problems: wrong };

  const defaults = declared.flatMap(({ name, default: value }) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const snapshot: Snapshot = {
    schemaVersion: 1,
    compilerVersion: COMPILER_VERSION,
    provenanceCode: definition.source,
    endpointName,
    operation,
    spec: main.spec(),
    ...(detail && detailName !== undefined ? { detail: { ...detail.spec(), endpointName: detailName } } : {}),
    // The first declaration of a default wins, and the trigger over both.
    params: { ...Object.fromEntries(defaults.toReversed()), ...trigger.params },
  };
  // What a record is read by does not depend on the operation: an endpoint that only updates ask is no part of it.
  const { detail: asked, ...listed } = snapshot;
  const read = main.isTwoPhase && asked ? snapshot : listed;
  return {
    compiled: {
      snapshot,
      specFingerprint: specFingerprintOf(snapshot),
      exprProtoHash: exprProtoHashOf(read),
      origins: { ...main.origins, ...detail?.origins, ...paramOrigins(main, detail, trigger) },
      warnings: [...main.warnings, ...(detail?.warnings ?? [])],
    },
  };
}

/** What is wrong with single values of a definition of which some are left out. */
export function wrongAlone(input: Omit<CompileInput, "trigger">): Problem[] {
  const { definition, endpointName } = input;
  const endpoint = definition.endpoints[endpointName];
  const detail = definition.endpoints[endpoint?.detail ?? ""];
  return [
    ...(endpoint ? checked(input, endpointName, endpoint, false, ALONE).problems : []),
    ...(detail ? checked(input, endpoint?.detail ?? "", detail, true, ALONE).problems : []),
  ];
}

/** Of the values of parameters: the layer that declares their default, or the trigger. */
function paramOrigins(
  main: Checked,
  detail: Checked | undefined,
  { params = {}, isExample = false }: NonNullable<CompileInput["trigger"]>,
): Record<string, Layer> {
  const defaults = ({ params: declared, origins }: Checked, field: string) =>
    declared.flatMap(({ name, default: value }): [string, Layer][] =>
      value === undefined ? [] : [[`params.${name}`, origins[field] ?? "cfg"]],
    );
  const given = isExample ? [] : Object.keys(params).map((name): [string, Layer] => [`params.${name}`, "trigger"]);
  return Object.fromEntries([
    ...(detail ? defaults(detail, "detail.params") : []),
    ...defaults(main, "params"),
    ...given,
  ]);
}

interface Checked {
  problems: Problem[];
  warnings: Problem[];
  origins: Record<string, Layer>;
  params: CheckInput["policy"]["params"];
  isTwoPhase: boolean;
  /** How many values the key of a record is made of. */
  keyParts: number;
  timeZone: string;
  /** For a policy without problems. */
  spec(): EndpointSpec;
}

function checked(
  input: CompileInput,
  endpointName: string,
  endpoint: EndpointDefinition,
  isDetail: boolean,
  checks: readonly Check[] = CHECKS,
): Checked {
  const { definition, operation, dictionary = SEEDED_DICTIONARY, allowPrivate = [] } = input;
  const shared = (layer: PolicyLayer) => (isDetail ? withoutList(layer) : layer);
  const { policy, origins } = mergeLayers({
    ...(definition.defaults ? { provenance: shared(definition.defaults) } : {}),
    ...(endpoint.overrides ? { endpoint: endpoint.overrides } : {}),
    cfg: cfgLayerOf(endpoint),
  });
  const answersIds = isDetail || (operation === "UPDATE" && policy.enumerator === "ExistingSet");
  const base = {
    definition,
    endpointName,
    endpoint,
    isDetail,
    answersIds,
    operation,
    policy,
    origins,
    dictionary,
    allowPrivate,
  };
  const { templates, findings } = compileTemplates(base);
  const all: CheckInput = { ...base, templates, allCompile: findings.length === 0 };
  const prefix = isDetail ? "detail." : "";
  const located = ({ field, reason, table = tableOf(field, origins) }: Finding): Problem => ({
    table,
    field: prefix + field,
    reason,
  });
  return {
    problems: [...findings, ...checks.flatMap((check) => [...check(all)])].map(located),
    warnings: WARNINGS.flatMap((check) => [...check(all)]).map(located),
    origins: Object.fromEntries(Object.entries(origins).map(([field, layer]) => [prefix + field, layer])),
    params: policy.params,
    isTwoPhase: policy.enumerator === "TwoPhase",
    keyParts: policy.response.keyPaths?.length ?? 1,
    timeZone: policy.window?.timezone ?? "UTC",
    spec: () => endpointSpec(definition, endpoint, policy, answersIds),
  };
}

/** What a layer for several endpoints says about lists does not concern the endpoint for details. */
function withoutList(layer: PolicyLayer): PolicyLayer {
  const { window: _1, landing: _2, pagination: _3, enumerator: _4, slicing: _5, update: _6, ...rest } = layer;
  return rest;
}

/** Records are asked for by their keys, and answers found by theirs. */
function wrongKeys(list: Checked, detail: Checked): Problem[] {
  if (list.keyParts === detail.keyParts) return [];
  const reason = `A key has ${detail.keyParts} parts here and ${list.keyParts} in the list, so no answer would be that of a record.`;
  return [{ table: "reg_expr_field_dict", field: "detail.response.keyPaths", reason }];
}

/** Parameters that no request could be made with: known now, so it is not left to the first request. */
function wrongParams(declared: CheckInput["policy"]["params"], given: ParamValues = {}): Problem[] {
  const problems = wrongValues(declared, given).map(({ name, reason }) => ({
    table: "trigger",
    field: `params.${name}`,
    reason,
  }));
  return [...new Map(problems.map((one) => [`${one.field} ${one.reason}`, one])).values()];
}

function wrongTrigger(
  { params = {}, window }: NonNullable<CompileInput["trigger"]>,
  declared: CheckInput["policy"]["params"],
  timeZone: string,
): Problem[] {
  const known = declared.map(({ name }) => name);
  const at = (field: string, reason: string): Problem => ({ table: "trigger", field, reason });
  const problems = Object.keys(params)
    .filter((name) => !known.includes(name))
    .map((name) => at(`params.${name}`, `The endpoint has no parameter \`${name}\`.${didYouMean(name, known)}`));
  for (const { name, required, expr } of declared) {
    if (!required || expr !== undefined || Object.hasOwn(params, name)) continue;
    problems.push(at(`params.${name}`, "It is required and has no value."));
  }
  if (!window) return problems;
  const [from, to] = [instantOf(window.from, timeZone), instantOf(window.to, timeZone)];
  const time = "It is not a time, such as 2026-08-20 or 2026-08-20T00:00:00Z.";
  if (!from) problems.push(at("window.from", time));
  if (!to) problems.push(at("window.to", time));
  if (from && to && from >= to) problems.push(at("window", "It ends before it starts, or is empty."));
  return problems;
}
