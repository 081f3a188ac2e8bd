/** The plan of a prepared statement as the connection has cached it, and the pages that it reads. */
import { type Connection, type Db, openDb, type Queryable } from "../src/kernel/data/db.ts";
import { type Statement, statement } from "../src/kernel/data/statement.ts";

export interface PlanFacts {
  /** Node types, such as `Index Scan` or `Seq Scan`. */
  nodes: string[];
  /** The indexes used, each once. */
  indexes: string[];
  /** Pages read, to distinguish a lookup from a scan. */
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

const CUSTOM_PLANS = statement("test.custom_plans", "set plan_cache_mode = force_custom_plan");

/** Plans every statement for its values, as the connections for lists do. `db` must have a single connection. */
export async function planForValues(db: Queryable): Promise<void> {
  await db.rows(CUSTOM_PLANS);
}

const GENERIC_PLANS = statement<{ n: number }>(
  "test.generic_plans",
  "select generic_plans::int as n from pg_prepared_statements where name = $1",
);

/** Whether the connection uses a generic plan, which it keeps for its lifetime. */
export async function hasGenericPlan(db: Db, name: string): Promise<boolean> {
  const [row] = await db.rows(GENERIC_PLANS, [name]);
  return (row?.n ?? 0) > 0;
}

/** A writing `with` part may run after the rest, and then the total does not include its pages. */
function isDetached(node: PlanNode): boolean {
  return node["Node Type"] === "ModifyTable" && node["Parent Relationship"] === "InitPlan";
}

function pagesOf(node: PlanNode): number {
  return node["Shared Hit Blocks"] + node["Shared Read Blocks"];
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}

export interface RecordingDb {
  db: Db;
  /** The values that each statement was last called with, by its name. */
  calls: Map<string, readonly unknown[]>;
  /** The plan of a statement with the values of its last call. */
  explainLast(name: string): Promise<PlanFacts>;
}

/** With one connection, since each has its own plans. Records only statements whose names start with `prefix`. */
export function openRecordingDb(connection: Connection, prefix = ""): RecordingDb {
  const calls: RecordingDb["calls"] = new Map();
  const recording =
    (queryable: Queryable): Queryable["rows"] =>
    (sent, values = []) => {
      if (sent.name.startsWith(prefix)) calls.set(sent.name, values);
      return queryable.rows(sent as Statement<never>, values);
    };
  const plain = openDb({ connection, poolSize: 1 });
  const db: Db = {
    ...plain,
    rows: recording(plain),
    tx: (work) => plain.tx((tx) => work({ ...tx, rows: recording(tx) })),
  };
  return {
    db,
    calls,
    explainLast(name) {
      const values = calls.get(name) ?? [];
      return explain(db, `"${name}"${values.length > 0 ? `(${values.map(literal).join(", ")})` : ""}`);
    },
  };
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (!Array.isArray(value)) return quoted(textOf(value));
  return quoted(`{${value.map((item) => (item === null ? "null" : JSON.stringify(textOf(item)))).join(",")}}`);
}

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "string" ? value : JSON.stringify(value);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
