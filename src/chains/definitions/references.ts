/**
 * The names in a definition that stand for something else: chains, engines, models and other things that node types name in
 * their `cfg`, and secrets. One that does not exist is refused when the chain is defined: a run would only fail later.
 */
import { compileTemplate } from "../../kernel/expressions/template.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { map } from "../types/map.ts";
import type { Reference } from "../types/node-type.ts";
import type { Registry } from "../types/registry.ts";
import type { Dag, DagProblem } from "./dag.ts";
import { PROBLEMS_MAX } from "./validate.ts";
import { ITEM_VARIABLES, VARIABLES } from "./variables.ts";

/** A name at its place in the DAG. */
interface Named {
  reference: Reference;
  name: string;
  /** A function, because to find a secret takes a search of the whole `cfg`. */
  path: () => string;
  nodeId: string;
}

export interface ReferenceDeps {
  registry: Registry;
  secrets: Reference;
  /** The chain that is defined: it may name itself. */
  ownName: string | undefined;
}

/** Looking for a similar name takes milliseconds in which nothing else runs, so only the first of the unknown names get one. */
const SIMILAR_MAX = 10;

/** A problem for each name that does not exist, up to PROBLEMS_MAX. */
export async function unknownReferences({ nodes }: Dag, deps: ReferenceDeps): Promise<DagProblem[]> {
  const named = nodes.flatMap((node, index) => namedIn(node, `nodes[${index}]`, node.id, deps));
  const problems: DagProblem[] = [];
  for (const one of new Set(named.map(({ reference }) => reference))) {
    const missing = await withoutExisting(
      one,
      named.filter(({ reference }) => reference === one),
      deps,
    );
    problems.push(...(await describe(one, missing.slice(0, PROBLEMS_MAX - problems.length))));
  }
  return problems;
}

async function withoutExisting(reference: Reference, named: readonly Named[], { ownName }: ReferenceDeps) {
  const names = [...new Set(named.map(({ name }) => name))];
  const existing = new Set(await reference.existing(names));
  if (ownName !== undefined && reference.what === "chain") existing.add(ownName);
  return named.filter(({ name }) => !existing.has(name));
}

async function describe(reference: Reference, missing: readonly Named[]): Promise<DagProblem[]> {
  if (missing.length === 0) return [];
  const all = await reference.all();
  const names = [...new Set(missing.map(({ name }) => name))].slice(0, SIMILAR_MAX);
  const similar = new Map(names.map((name) => [name, didYouMean(name, all)]));
  return missing.map(({ name, path, nodeId }) => {
    const hint = similar.get(name) || (reference.hint === undefined ? "" : ` ${reference.hint}`);
    return { path: path(), nodeId, message: `there is no ${reference.what} \`${name}\`.${hint}` };
  });
}

function namedIn(
  { type, cfg: given = {} }: { type: string; cfg?: object },
  path: string,
  nodeId: string,
  deps: ReferenceDeps,
  variables: readonly string[] = VARIABLES,
): Named[] {
  const cfg = given as Readonly<Record<string, unknown>>;
  const nodeType = deps.registry.get(type);
  const fields = (nodeType?.references ?? []).flatMap((reference): Named[] => {
    const name = cfg[reference.field ?? ""];
    // A template is known only when the node runs.
    if (typeof name !== "string" || name.includes("${")) return [];
    return [{ reference, name, path: () => `${path}.cfg.${reference.field}`, nodeId }];
  });
  const inner = type === map.type && isRecord(cfg["node"]) ? cfg["node"] : undefined;
  const own = inner ? { ...cfg, node: null } : cfg;
  const compiled = compileTemplate(own, variables);
  const secrets = "template" in compiled ? [...compiled.template.secrets] : [];
  return [
    ...fields,
    ...secrets.map((name) => ({
      reference: deps.secrets,
      name,
      path: () => placeOf(name, own, `${path}.cfg`) ?? `${path}.cfg`,
      nodeId,
    })),
    ...(inner ? namedIn(inner as { type: string }, `${path}.cfg.node`, nodeId, deps, ITEM_VARIABLES) : []),
  ];
}

/** The first place of `${secrets.NAME}`. */
function placeOf(name: string, value: unknown, path: string): string | undefined {
  if (typeof value === "string") {
    return new RegExp(`\\$\\{\\s*secrets\\.${name}\\s*\\}`).test(value) ? path : undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const found = placeOf(name, item, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
