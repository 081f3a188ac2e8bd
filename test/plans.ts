/** Which way a prepared statement goes: its plan as the connection has cached it, and what running it touches. */
import type { Db } from "../src/kernel/db.ts";
import { statement } from "../src/kernel/statement.ts";

export interface PlanFacts {
  /** Node types, such as `Index Scan` or `Seq Scan`. */
  nodes: string[];
  /** The indexes used, each once. */
  indexes: string[];
  /** Pages read, to tell a look-up from a walk over everything. */
  pages: number;
}

interface PlanNode {
  "Node Type": string;
  "Index Name"?: string;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  "Parent Relationship"?: string;
  Plans?: PlanNode[];
}

let explained = 0;

/** `db` must have a single connection, since each connection has its own plans. `call` is `"name"(values)`. */
export async function explain(db: Db, call: string): Promise<PlanFacts> {
  explained += 1;
  const text = `explain (analyze, buffers, format json) execute ${call}`;
  const [row] = await db.rows(statement<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(`test.explain.${explained}`, text));
  if (!row) throw new Error("no plan");
  const plan = row["QUERY PLAN"][0].Plan;
  const nodes = flatten(plan);
  return {
    nodes: nodes.map((node) => node["Node Type"]),
    indexes: [...new Set(nodes.flatMap((node) => node["Index Name"] ?? []))].sort(),
    pages: [plan, ...nodes.filter(isDetached)].reduce((sum, node) => sum + pagesOf(node), 0),
  };
}

const GENERIC_PLANS = statement<{ n: number }>(
  "test.generic_plans",
  "select generic_plans::int as n from pg_prepared_statements where name = $1",
);

/** Whether the connection has settled on one plan for all values, to be kept for as long as it lives. */
export async function hasGenericPlan(db: Db, name: string): Promise<boolean> {
  const [row] = await db.rows(GENERIC_PLANS, [name]);
  return (row?.n ?? 0) > 0;
}

/** A `with` part that writes: it may run after the rest, and then the whole does not count its pages. */
function isDetached(node: PlanNode): boolean {
  return node["Node Type"] === "ModifyTable" && node["Parent Relationship"] === "InitPlan";
}

function pagesOf(node: PlanNode): number {
  return node["Shared Hit Blocks"] + node["Shared Read Blocks"];
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}
