/**
 * What ended runs read and wrote, as far as their chains declare it: tables that were waited for, and tables that were announced.
 * The text of a statement is reported, but not parsed for tables.
 */
import type { EndedRun, Graph, GraphNode, KnownRun, NodeEnd, NodeStatus } from "../../chains/index.ts";
import { ENGINE_DEFAULT } from "../../engines/index.ts";
import type { Queryable } from "../../kernel/data/db.ts";

/** What is asked of chains about runs that have ended, in the transaction of their end. */
export interface RunHistory {
  runs(tx: Queryable, runIds: readonly string[]): Promise<ReadonlyMap<string, KnownRun>>;
  nodeEnds(tx: Queryable, nodes: readonly AskedNode[]): Promise<NodeEnd[]>;
}
interface AskedNode {
  run_id: string;
  node_id: string;
  announces: boolean;
}

/** Which work it was. The items of a `map` are a run of their own, and yet the work of a node of the chain. */
export interface Place {
  chain: string;
  node: string | null;
}

export interface Statement {
  sql: string;
  engine: string;
}

export interface RunFlow extends Place, Pick<EndedRun, "runId" | "opTime" | "status" | "reason"> {
  /** The run that waits for it. */
  parent: (Place & { runId: string }) | null;
  inputs: readonly string[];
  outputs: readonly string[];
  /** What the items of a `map` over statements have in common. */
  statement: Statement | null;
  statements: readonly StatementFlow[];
}

/** A `sql` node that has run. */
export interface StatementFlow extends Statement {
  node: string;
  attempt: number;
  status: NodeStatus;
  error: string | null;
  endedAt: Date;
  inputs: readonly string[];
  /** Tables that are announced directly behind it. */
  outputs: readonly string[];
}

/** More tables of one run are left out. */
const TABLES_MAX = 1_000;
const NO_TABLES: readonly string[] = [];

type Known = ReadonlyMap<string, KnownRun>;

/** In one statement, whatever the number of runs, beside the reading of runs that are not in memory. */
export async function flowsOf(
  tx: Queryable,
  ended: readonly EndedRun[],
  { history, tableName }: { history: RunHistory; tableName: (given: string) => string },
): Promise<RunFlow[]> {
  const known = await withThoseAbove(tx, history, ended);
  const ends = await endsByRun(tx, history, ended, known);
  return ended.flatMap(({ runId, opTime, status, reason }): RunFlow[] => {
    const run = known.get(runId);
    if (!run) return [];
    const nodes = ends.get(runId) ?? new Map<string, NodeEnd>();
    const announced = ({ id }: GraphNode) => tablesOf(nodes.get(id), tableName);
    const end = { runId, opTime, status, reason };
    return [{ ...end, ...contextOf(run, known), ...workOf(run, tablesAround(run, known), nodes, announced) }];
  });
}

function contextOf(run: KnownRun, known: Known): Place & Pick<RunFlow, "parent" | "statement"> {
  const { home, node } = homeOf(run, known);
  const { parent_run_id: parentId } = run.facts;
  const parent = parentId === null ? undefined : known.get(parentId);
  return {
    chain: home.facts.name,
    node,
    parent: parent ? { ...placeOf(parent, known), runId: parent.facts.run_id } : null,
    statement: node === null ? null : statementOf(eachOf(home.graph.byId.get(node)?.def)),
  };
}

function workOf(
  { graph }: KnownRun,
  around: readonly string[],
  nodes: ReadonlyMap<string, NodeEnd>,
  announced: (node: GraphNode) => readonly string[],
): Pick<RunFlow, "inputs" | "outputs" | "statements"> {
  return {
    inputs: union([around, ...graph.nodes.map(({ waitsFor }) => waitsFor)]),
    outputs: union(graph.nodes.map(announced)),
    statements: graph.nodes.flatMap((node) => {
      const end = nodes.get(node.id);
      const statement = end && statementOf(node.def);
      if (!statement) return [];
      const { attempt, status, error, ended_at: endedAt } = end;
      const inputs = union([around, tablesBefore(graph).get(node.id) ?? NO_TABLES]);
      const outputs = union(node.children.map(announced));
      return [{ ...statement, node: node.id, attempt, status, error, endedAt, inputs, outputs }];
    }),
  };
}

/** The runs, and those that wait for them, up to the first that nobody waits for. */
async function withThoseAbove(tx: Queryable, history: RunHistory, ended: readonly EndedRun[]): Promise<Known> {
  const known = new Map<string, KnownRun>();
  for (let wanted = ended.map(({ runId }) => runId); wanted.length > 0; ) {
    const found = await history.runs(tx, wanted);
    for (const [runId, run] of found) known.set(runId, run);
    const above = [...found.values()].flatMap(({ facts }) => facts.parent_run_id ?? []);
    wanted = [...new Set(above)].filter((runId) => !known.has(runId));
  }
  return known;
}

async function endsByRun(
  tx: Queryable,
  history: RunHistory,
  ended: readonly EndedRun[],
  known: Known,
): Promise<Map<string, Map<string, NodeEnd>>> {
  const keys = ended.flatMap(({ runId }) => {
    const { facts, graph } = known.get(runId) ?? {};
    // Of the items of a map only announced tables are reported: there may be ten thousand items.
    const types = facts?.chain_id === null ? ["arrive"] : ["sql", "arrive"];
    const nodes = graph?.nodes.filter(({ def }) => types.includes(def.type)) ?? [];
    return nodes.map(({ id, def }) => ({ run_id: runId, node_id: id, announces: def.type === "arrive" }));
  });
  const byRun = new Map<string, Map<string, NodeEnd>>();
  for (const end of keys.length > 0 ? await history.nodeEnds(tx, keys) : []) {
    const nodes = byRun.get(end.run_id);
    if (nodes) nodes.set(end.node_id, end);
    else byRun.set(end.run_id, new Map([[end.node_id, end]]));
  }
  return byRun;
}

function tablesOf(end: NodeEnd | undefined, tableName: (given: string) => string): string[] {
  return end?.status === "SUCCESS" && end.announced ? [tableName(end.announced)] : [];
}

/** The run of a chain that a run is part of, and as which of its nodes. */
function homeOf(run: KnownRun, known: Known): { home: KnownRun; node: string | null } {
  let node: string | null = null;
  let home = run;
  while (home.facts.chain_id === null && home.facts.parent_run_id !== null) {
    const above = known.get(home.facts.parent_run_id);
    if (!above) break;
    node = home.facts.parent_node_id;
    home = above;
  }
  return { home, node };
}

function placeOf(run: KnownRun, known: Known): Place {
  const { home, node } = homeOf(run, known);
  return { chain: home.facts.name, node };
}

/** What those above a run have waited for before it began. */
function tablesAround({ facts }: KnownRun, known: Known): readonly string[] {
  const above = facts.parent_run_id === null ? undefined : known.get(facts.parent_run_id);
  if (!above) return NO_TABLES;
  const before = tablesBefore(above.graph).get(facts.parent_node_id ?? "") ?? NO_TABLES;
  return union([tablesAround(above, known), before]);
}

const remembered = new WeakMap<Graph, ReadonlyMap<string, readonly string[]>>();

/** For each node, the tables that it and the nodes before it wait for. */
function tablesBefore(graph: Graph): ReadonlyMap<string, readonly string[]> {
  const known = remembered.get(graph);
  if (known) return known;
  const before = new Map<string, readonly string[]>();
  // Parents come first, and a node that adds nothing shares the list of its parents.
  for (const { id, parents, waitsFor } of graph.nodes) {
    before.set(id, union([...parents.map((parent) => before.get(parent.id) ?? NO_TABLES), waitsFor]));
  }
  remembered.set(graph, before);
  return before;
}

function union(lists: readonly (readonly string[])[]): readonly string[] {
  const [first = NO_TABLES, ...others] = new Set(lists.filter(({ length }) => length > 0));
  if (others.length === 0) return first;
  const all = new Set(first);
  for (const list of others) {
    for (const table of list) if (all.size < TABLES_MAX) all.add(table);
  }
  return [...all];
}

interface Work {
  type: string;
  cfg?: object;
}

/** What a `map` does for each of its items. */
function eachOf(def: Work | undefined): Work | undefined {
  if (def?.type !== "map") return def;
  const { node } = (def.cfg ?? {}) as { node?: Work };
  return eachOf(node);
}

/** As it is written in the chain: what a template stands for differs from run to run. */
function statementOf(def: Work | undefined): Statement | null {
  if (def?.type !== "sql") return null;
  const { sql, engine = ENGINE_DEFAULT } = (def.cfg ?? {}) as Partial<Statement>;
  return sql === undefined ? null : { sql, engine };
}
