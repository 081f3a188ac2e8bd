/** Prepares claimed nodes: compiles conditions and templates, and reads parents' results, checkpoints and secrets. */

import type { Db } from "../../kernel/data/db.ts";
import { compileExpression, type Expression, type Path } from "../../kernel/expressions/cel.ts";
import { compileTemplate, type Template } from "../../kernel/expressions/template.ts";
import type { NamedSecrets, OpenedSecret } from "../../kernel/secrets/named-secrets.ts";
import type { GraphNode } from "../definitions/graph.ts";
import { ITEM_VARIABLES, VARIABLES } from "../definitions/variables.ts";
import type { KnownRun, RunCache } from "../engine/run-cache.ts";
import { READ_BYTES_MAX, readsReference, resolveArtifact } from "../runs/child-artifacts.ts";
import { readCheckpoints, readResults } from "../store/history.ts";
import type { ClaimedNode, NodeKey } from "../store/live.ts";
import { FinalFailure, type NodeType } from "../types/node-type.ts";
import type { Registry } from "../types/registry.ts";

export interface PreparedNode extends ClaimedNode {
  run: KnownRun;
  node: GraphNode;
  checkpoint: unknown;
  parents: Record<string, { status: string; artifact: unknown }>;
  /** The existing secrets that any node of the same batch names. */
  secrets: ReadonlyMap<string, OpenedSecret>;
  /** Why it cannot run. */
  trouble?: string;
}

/** What `prepare` reads from. */
export interface PrepareDeps {
  db: Db;
  runCache: RunCache;
  registry: Registry;
  secrets: Pick<NamedSecrets, "open">;
}

interface Compiled {
  condition: Expression | undefined;
  template: Template;
  /** Fields of `cfg` that are passed as they are; see `unrendered` of a node type. */
  unrendered: Record<string, unknown>;
  needsParents: boolean;
  /** What its condition and templates read of the parents, those in `unrendered` included. */
  paths: readonly Path[];
  /** The `cfg` of a node without templates: checked once, frozen, and shared by all attempts. */
  constant: unknown;
}

const NO_SECRETS: ReadonlyMap<string, OpenedSecret> = new Map();

const compiledNodes = new WeakMap<GraphNode, Compiled>();

function compile(node: GraphNode, registry: Registry): Compiled {
  const known = compiledNodes.get(node);
  if (known) return known;
  const { cfg = {}, if: condition, type } = node.def;
  const nodeType = registry.get(type);
  const kept = nodeType?.unrendered ?? [];
  const fields = Object.entries(cfg);
  const unrendered = Object.fromEntries(fields.filter(([name]) => kept.includes(name)));
  const result = compileTemplate(Object.fromEntries(fields.filter(([name]) => !kept.includes(name))), VARIABLES);
  if ("problems" in result) throw new FinalFailure(`its cfg is not valid: ${result.problems[0]?.message}`);
  const expression = condition === undefined ? undefined : compileExpression(condition, VARIABLES);
  const compiled = {
    condition: expression,
    template: result.template,
    unrendered,
    needsParents: usesNodes(result.template) || (expression !== undefined && usesNodes(expression)),
    paths: [result.template, ...(expression ? [expression] : []), ...itemTemplates(unrendered)].flatMap((source) =>
      source.pathsOf("nodes"),
    ),
    constant: result.template.isConstant
      ? deepFreeze(completed(registry, type, { ...(result.template.render({}) as object), ...unrendered }))
      : undefined,
  };
  compiledNodes.set(node, compiled);
  return compiled;
}

/** Those that do not compile are left out: the node type reports them. */
function itemTemplates(unrendered: Record<string, unknown>): Template[] {
  const result = compileTemplate(unrendered, ITEM_VARIABLES);
  return "template" in result ? [result.template] : [];
}

function usesNodes({ references }: { references: ReadonlySet<string> }): boolean {
  return references.has("nodes");
}

/**
 * Reads what the nodes need, in at most three statements for any number of nodes, and none if they need nothing. Artifacts that
 * parents have by reference are read with a few more.
 */
export async function prepare(deps: PrepareDeps, claimed: readonly ClaimedNode[]): Promise<PreparedNode[]> {
  const { db, runCache, registry } = deps;
  const known = await runCache.get(db, [...new Set(claimed.map(({ run_id }) => run_id))]);
  const prepared = claimed.map((item): PreparedNode => {
    const run = known.get(item.run_id);
    const node = run?.graph.byId.get(item.node_id);
    if (!run || !node) throw new Error(`node ${item.node_id} of run ${item.run_id} was claimed but does not exist`);
    const { run_id, node_id, fence, attempt, returned } = item;
    return { run_id, node_id, fence, attempt, returned, run, node, checkpoint: null, parents: {}, secrets: NO_SECRETS };
  });
  const retried = prepared.filter(({ attempt }) => attempt > 1);
  const needingParents = prepared.filter((item) => needsParents(item, registry));
  const names = new Set<string>();
  for (const { node } of prepared)
    for (const name of tryCompile(node, registry)?.template.secrets ?? []) names.add(name);
  const [checkpoints, results, secrets] = await Promise.all([
    retried.length > 0 ? readCheckpoints(db, retried) : [],
    needingParents.length > 0 ? readResults(db, needingParents.flatMap(parentKeys)) : [],
    names.size > 0 ? deps.secrets.open([...names]) : NO_SECRETS,
  ]);
  for (const item of prepared) item.secrets = secrets;
  const checkpointOf = new Map(checkpoints.map((row) => [`${row.run_id}/${row.node_id}`, row.checkpoint]));
  const resultOf = new Map(results.map((row) => [`${row.run_id}/${row.node_id}`, row]));
  for (const item of retried) item.checkpoint = checkpointOf.get(`${item.run_id}/${item.node_id}`) ?? null;
  for (const item of needingParents) {
    for (const { id } of item.node.parents) {
      const row = resultOf.get(`${item.run_id}/${id}`);
      if (row) item.parents[id] = { status: row.status, artifact: row.artifact };
    }
    await resolveParents(db, item, registry);
  }
  return prepared;
}

/** Reads the artifacts that the node reads through references. */
async function resolveParents(db: Db, item: PreparedNode, registry: Registry): Promise<void> {
  const named = tryCompile(item.node, registry)?.paths ?? [];
  const readsAll = registry.get(item.node.def.type)?.readsParents !== false;
  // Its type may read everything in `ctx.parents`. If that is too much, it gets what its templates name, and the references.
  if (readsAll && (await resolveAlong(db, item, () => [[]])) === undefined) return;
  const trouble = await resolveAlong(db, item, (id) => pathsInto(named, id));
  if (trouble !== undefined) item.trouble = trouble;
}

/** Returns why it could not, or nothing. */
async function resolveAlong(
  db: Db,
  { run_id, parents }: PreparedNode,
  pathsOf: (parentId: string) => readonly Path[],
): Promise<string | undefined> {
  const room = { bytes: READ_BYTES_MAX };
  const resolved: Record<string, unknown> = {};
  try {
    for (const [id, { artifact }] of Object.entries(parents)) {
      const paths = pathsOf(id);
      if (!readsReference(artifact, paths)) continue;
      resolved[id] = await resolveArtifact(db, { owner: { run_id, node_id: id }, artifact, paths }, room);
    }
  } catch (error) {
    if (!(error instanceof FinalFailure)) throw error;
    return error.message;
  }
  for (const [id, artifact] of Object.entries(resolved)) parents[id] = { status: parents[id]?.status ?? "", artifact };
  return undefined;
}

/** Below the artifact of a parent; the empty path is all of it. */
function pathsInto(paths: readonly Path[], parentId: string): Path[] {
  return paths.flatMap(([id, field, ...below]) => {
    if (id === undefined || (id === parentId && field === undefined)) return [[]];
    return id === parentId && field === "artifact" ? [below] : [];
  });
}

function needsParents({ node }: PreparedNode, registry: Registry): boolean {
  if (node.parents.length === 0) return false;
  if (registry.get(node.def.type)?.readsParents !== false) return true;
  return tryCompile(node, registry)?.needsParents ?? false;
}

/** Undefined for a node that does not compile: it fails with the reason when it runs. */
function tryCompile(node: GraphNode, registry: Registry): Compiled | undefined {
  try {
    return compile(node, registry);
  } catch {
    return undefined;
  }
}

function parentKeys({ run_id, node }: PreparedNode): NodeKey[] {
  return node.parents.map(({ id }) => ({ run_id, node_id: id }));
}

interface RenderedNode {
  type: NodeType;
  cfg: unknown;
  /** The values of the secrets in it. */
  secrets: Iterable<string>;
}

/** Its type and rendered cfg, or the reason why it is skipped. */
export function render(item: PreparedNode, registry: Registry): RenderedNode | { skippedBecause: string } {
  const { node, run, parents, attempt, trouble } = item;
  if (trouble !== undefined) throw new FinalFailure(trouble);
  const type = registry.get(node.def.type);
  if (!type) {
    const how = registry.howToEnable(node.def.type);
    throw new FinalFailure(`this process has no node type \`${node.def.type}\`${how === undefined ? "" : `: ${how}`}`);
  }
  const { condition, template, unrendered, constant } = compile(node, registry);
  const values = {
    params: run.facts.params,
    opTime: run.facts.op_time,
    nodes: parents,
    run: { id: run.facts.run_id },
    node: { id: node.id, attempt },
  };
  if (condition) {
    const verdict = condition.evaluate(values);
    if (typeof verdict !== "boolean") throw new FinalFailure(`its \`if\` is neither true nor false: ${node.def.if}`);
    if (!verdict) return { skippedBecause: `its \`if\` is false: ${node.def.if}` };
  }
  if (constant !== undefined) return { type, cfg: constant, secrets: [] };
  const secrets = new Map([...template.secrets].map((name) => [name, valueOf(name, item.secrets.get(name))]));
  const rendered = { ...(template.render({ ...values, secrets }) as object), ...unrendered };
  return { type, cfg: completed(registry, type.type, rendered), secrets: secrets.values() };
}

function valueOf(name: string, secret: OpenedSecret | undefined): string {
  if (!secret) {
    throw new FinalFailure(
      `there is no secret \`${name}\`. \`millrace secrets list\` shows the existing ones; \`millrace secrets set ${name}\` creates it`,
    );
  }
  if ("trouble" in secret) throw new FinalFailure(`secret \`${name}\`: ${secret.trouble}`);
  return secret.value;
}

function completed(registry: Registry, type: string, cfg: unknown): unknown {
  const complete = registry.complete(type, cfg);
  if ("cfg" in complete) return complete.cfg;
  const [problem] = complete.problems;
  throw new FinalFailure(`its cfg is not valid: ${problem?.path ? `${problem.path}: ` : ""}${problem?.message}`);
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const item of Object.values(value)) deepFreeze(item);
  return Object.freeze(value);
}
