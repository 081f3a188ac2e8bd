/** Validation of a single node of a DAG: its shape, its type and cfg, its expressions, the names it uses. */

import { Ajv, type ValidateFunction } from "ajv";
import { compileExpression, type Expression, ExpressionError } from "../../kernel/expressions/cel.ts";
import { compileTemplate, type Template } from "../../kernel/expressions/template.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { complaint, onePerPlace, pathOf, written } from "../../kernel/json/schema-errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { map } from "../types/map.ts";
import type { CfgProblem, Registry } from "../types/registry.ts";
import { type DagProblem, NODES_MAX, NodeSchema } from "./dag.ts";
import { ITEM_VARIABLES, VARIABLES } from "./variables.ts";

export interface KnownNames {
  registry: Registry;
  /** The names of the existing pools. */
  pools: ReadonlySet<string>;
}

interface NodeContext extends KnownNames {
  /** The first place of each id: `nodes[3]`. */
  placeOf: ReadonlyMap<string, string>;
}

/** A node whose shape is not checked yet. */
type LooseNode = Readonly<Record<string, unknown>>;
type At = (field: string, message: string) => DagProblem;

/** More than any real node has, and few enough that listing every error stays cheap. */
const FIELDS_MAX = 1_000;
const ITEMS_MAX = NODES_MAX;
/** Input is repeated in messages up to this length. */
const SHOWN_LENGTH_MAX = 64;

let compiledShape: ValidateFunction | undefined;

/** Compiled when it is first used: most processes start without a definition to check. */
function shapeValidator(): ValidateFunction {
  compiledShape ??= new Ajv({ allErrors: true, verbose: true, strict: false }).compile(NodeSchema);
  return compiledShape;
}

export function* nodeProblems(node: unknown, path: string, context: NodeContext): Generator<DagProblem> {
  if (!isRecord(node)) return yield { path, message: `\`${path}\` must be an object with \`id\` and \`type\`` };
  const id = typeof node["id"] === "string" ? node["id"] : undefined;
  const at: At = (field, message) => ({
    path: field === "" ? path : `${path}.${field}`,
    ...(id === undefined ? {} : { nodeId: cut(id) }),
    message,
  });
  const wide = tooWide(node, "");
  if (wide) return yield at(wide.path, wide.message);
  const shape = shapeValidator();
  if (!shape(node)) {
    for (const error of onePerPlace(shape.errors ?? [])) {
      const field = written(pathOf(error).map(cut));
      yield at(field, complaint(error, `\`${field}\``));
    }
  }
  const earlier = context.placeOf.get(id ?? "") ?? path;
  if (id !== undefined && earlier !== path) yield at("id", `the id \`${cut(id)}\` is already used by \`${earlier}\``);
  yield* parentProblems(node, at, context);
  yield* workProblems(node, { at, variables: VARIABLES, parents: new Set(parentsOf(node)), context });
  yield* ruleProblems(node, at);
}

export function parentsOf({ dependsOn }: LooseNode): string[] {
  return Array.isArray(dependsOn) ? dependsOn.filter((id) => typeof id === "string") : [];
}

function* parentProblems(node: LooseNode, at: At, { placeOf }: NodeContext): Generator<DagProblem> {
  for (const [index, parent] of (Array.isArray(node["dependsOn"]) ? node["dependsOn"] : []).entries()) {
    if (typeof parent !== "string" || placeOf.has(parent)) continue;
    yield at(`dependsOn[${index}]`, unknownNode(parent, placeOf));
  }
}

function unknownNode(id: string, placeOf: ReadonlyMap<string, string>): string {
  return `there is no node \`${cut(id)}\`.${didYouMean(id, placeOf.keys())}`;
}

interface WorkCheck {
  at: At;
  variables: readonly string[];
  parents: ReadonlySet<string>;
  context: NodeContext;
}

/** Type, cfg, condition and pool: of a node of the DAG, or of the node that a map runs for each item. */
function* workProblems(node: LooseNode, check: WorkCheck): Generator<DagProblem> {
  const { at, context } = check;
  const { type, cfg = {}, if: condition, pool } = node as Record<"type" | "cfg" | "if" | "pool", unknown>;
  if (typeof type === "string" && isName(type)) {
    if (!context.registry.get(type)) yield at("type", unknownType(type, context));
    else if (isRecord(cfg)) yield* cfgProblems(type, cfg, check);
  }
  if (typeof condition === "string" && condition !== "") yield* expressionProblems("if", condition, check);
  if (typeof pool === "string" && isName(pool) && !context.pools.has(pool)) {
    const hint = didYouMean(pool, context.pools) || " Create it with PUT /api/v1/pools/{name}.";
    yield at("pool", `there is no pool \`${pool}\`.${hint}`);
  }
}

/** Whether to look it up: text of another length was already refused by the schema. */
function isName(text: string): boolean {
  return text.length >= 1 && text.length <= SHOWN_LENGTH_MAX;
}

function unknownType(type: string, { registry }: NodeContext): string {
  const how = registry.howToEnable(type);
  if (how !== undefined) return `there is no node type \`${type}\` here: ${how}`;
  const names = registry.names();
  return `there is no node type \`${type}\`.${didYouMean(type, names) || ` Known here: ${names.join(", ")}.`}`;
}

function* cfgProblems(type: string, cfg: LooseNode, check: WorkCheck): Generator<DagProblem> {
  const { at, variables, context } = check;
  const unrendered = context.registry.get(type)?.unrendered ?? [];
  const isUnrendered = ({ path }: CfgProblem) =>
    unrendered.some((field) => path === field || path.startsWith(`${field}.`));
  const rendered = Object.fromEntries(Object.entries(cfg).filter(([field]) => !unrendered.includes(field)));
  const compiled = compileTemplate(rendered, variables);
  if ("template" in compiled) {
    yield* nonParentProblems("cfg", compiled.template, check);
    const [secret] = compiled.template.secrets;
    if (secret !== undefined && context.registry.get(type)?.storesCfg) yield at("cfg", storedSecret(secret, type));
  }
  // Templates in unrendered fields stay as they are, so there the text itself is checked.
  const problems = [
    ...("problems" in compiled ? compiled.problems : []),
    ...context.registry.check(type, cfg, { templates: true }).filter((problem) => !isUnrendered(problem)),
    ...(unrendered.length > 0 ? context.registry.check(type, cfg, { templates: false }).filter(isUnrendered) : []),
  ];
  for (const { path, message } of problems) yield at(joined("cfg", path), message);
  if (type === map.type && isRecord(cfg["node"])) yield* itemNodeProblems(cfg["node"], check);
}

function storedSecret(name: string, type: string): string {
  return (
    `the cfg of \`${type}\` is stored, so it must not contain the secret \`${name}\`. ` +
    `Write \`\${secrets.${name}}\` into the node that uses it`
  );
}

/** The node that a map runs for each item. */
function* itemNodeProblems(node: LooseNode, check: WorkCheck): Generator<DagProblem> {
  const at: At = (field, message) => check.at(`cfg.node.${field}`, message);
  if (node["type"] === map.type) {
    // The items of both would be named `item`.
    return yield at(
      "type",
      "a map cannot run another map. Put the inner one into another chain and run that with `chain`",
    );
  }
  yield* workProblems(node, { ...check, at, variables: ITEM_VARIABLES });
}

function* expressionProblems(field: string, source: string, check: WorkCheck): Generator<DagProblem> {
  try {
    yield* nonParentProblems(field, compileExpression(source, check.variables), check);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const hint = error.unknownName === "secrets" ? ` Secrets are for \`cfg\`.` : "";
    yield check.at(field, error.message + hint);
  }
}

/** A node gets only the results of its parents; any other would be missing when it runs. */
function* nonParentProblems(field: string, code: Expression | Template, check: WorkCheck): Generator<DagProblem> {
  const { at, parents, context } = check;
  for (const id of code.membersOf("nodes") ?? []) {
    if (parents.has(id)) continue;
    const reason = context.placeOf.has(id)
      ? "a node only gets the results of its parents: add it to `dependsOn`"
      : unknownNode(id, context.placeOf);
    yield at(field, `\`nodes.${cut(id)}\` is used, but ${reason}`);
  }
}

function* ruleProblems(node: LooseNode, at: At): Generator<DagProblem> {
  if (node["runWhen"] !== "one_failed") return;
  if (parentsOf(node).length === 0) {
    yield at("runWhen", "`one_failed` needs a parent in `dependsOn`: without one the node would never run");
  }
  if (Array.isArray(node["waitsFor"]) && node["waitsFor"].length > 0) {
    yield at("waitsFor", "a node with `one_failed` runs as soon as a parent has failed, and cannot wait for tables");
  }
}

/** Refuses very long lists and objects first: listing an error per item could take a million errors. */
function tooWide(value: unknown, path: string): CfgProblem | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const isList = Array.isArray(value);
  const size = isList ? value.length : Object.keys(value).length;
  const [unit, max] = isList ? ["items", ITEMS_MAX] : ["fields", FIELDS_MAX];
  if (size > max) {
    const subject = path === "" ? "the node" : `\`${path}\``;
    return { path, message: `${subject} has ${size} ${unit}, more than the ${max} allowed` };
  }
  for (const [name, item] of Object.entries(value)) {
    const found = tooWide(item, joined(path, isList ? `[${name}]` : cut(name)));
    if (found) return found;
  }
  return undefined;
}

function joined(field: string, path: string): string {
  if (field === "" || path === "") return field + path;
  return path.startsWith("[") ? `${field}${path}` : `${field}.${path}`;
}

export function cut(text: string): string {
  return text.length <= SHOWN_LENGTH_MAX ? text : `${text.slice(0, SHOWN_LENGTH_MAX)}...`;
}
