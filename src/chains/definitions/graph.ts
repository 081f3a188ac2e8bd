/**
 * A DAG prepared for the engine: parents and children of each node, in topological order. It is built once per version of a
 * chain and cached, so the engine reads no edges from the database.
 */
import type { Dag, NodeDef, RunWhen } from "./dag.ts";

export interface GraphNode {
  readonly id: string;
  /** Its index in the definition. */
  readonly no: number;
  readonly def: NodeDef;
  readonly runWhen: RunWhen;
  readonly parents: readonly GraphNode[];
  readonly children: readonly GraphNode[];
  readonly waitsFor: readonly string[];
}

export interface Graph {
  /** Parents before children, otherwise in the order of the definition. */
  readonly nodes: readonly GraphNode[];
  readonly byId: ReadonlyMap<string, GraphNode>;
  readonly usesTables: boolean;
}

type Building = { -readonly [Field in keyof GraphNode]: GraphNode[Field] } & {
  parents: Building[];
  children: Building[];
  unmet: number;
};

const asGiven = (name: string) => name;

/** The DAG must be valid (validate.ts). `tableName` maps a table of `waitsFor` to its stored name. */
export function buildGraph(dag: Dag, tableName: (given: string) => string = asGiven): Graph {
  const byId = new Map<string, Building>();
  for (const [no, def] of dag.nodes.entries()) {
    const parents: Building[] = [];
    const waitsFor = [...new Set(def.waitsFor?.map(tableName))];
    byId.set(def.id, {
      id: def.id,
      no,
      def,
      runWhen: def.runWhen ?? "all_success",
      parents,
      children: [],
      waitsFor,
      unmet: 0,
    });
  }
  for (const node of byId.values()) {
    for (const id of new Set(node.def.dependsOn)) {
      const parent = byId.get(id);
      if (!parent) throw new Error(`node ${node.id} depends on ${id}, which does not exist`);
      node.parents.push(parent);
      parent.children.push(node);
      node.unmet += 1;
    }
  }
  const nodes = [...byId.values()].filter(({ unmet }) => unmet === 0);
  for (const node of nodes) {
    for (const child of node.children) {
      child.unmet -= 1;
      if (child.unmet === 0) nodes.push(child); // The loop visits nodes that it adds.
    }
  }
  if (nodes.length < byId.size) throw new Error("the DAG has a cycle");
  return { nodes, byId, usesTables: nodes.some(({ waitsFor }) => waitsFor.length > 0) };
}

/** All descendants of these nodes, without the nodes themselves, in the graph's order. */
export function descendants(graph: Graph, from: Iterable<GraphNode>): GraphNode[] {
  const start = new Set(from);
  if (start.size === 0) return [];
  const found = new Set<GraphNode>();
  const open = [...start];
  for (let node = open.pop(); node; node = open.pop()) {
    for (const child of node.children) {
      if (found.has(child)) continue;
      found.add(child);
      open.push(child);
    }
  }
  return graph.nodes.filter((node) => found.has(node) && !start.has(node));
}
