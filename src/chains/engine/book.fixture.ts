/** Books of whole runs, for tests of the transitions without a database. */

import type { Dag, NodeDef } from "../definitions/dag.ts";
import { buildGraph } from "../definitions/graph.ts";
import { type Book, freshBook, type Live, moveNode, type NodeEntry } from "./book.ts";
import { admit } from "./revive.ts";
import type { NodeStatus } from "./states.ts";

/** By node id: its parents, or fields of its definition. */
export type Nodes = Record<string, readonly string[] | Partial<NodeDef>>;

export function dagOf(nodes: Nodes): Dag {
  return {
    nodes: Object.entries(nodes).map(([id, given]) => {
      const rest = isParents(given) ? { dependsOn: [...given] } : given;
      return { id, type: "noop", ...rest };
    }),
  };
}

function isParents(given: Nodes[string]): given is readonly string[] {
  return Array.isArray(given);
}

/** A PENDING run that has never run. */
export function newBook(nodes: Nodes, missingTables: Record<string, string[]> = {}): Book {
  const graph = buildGraph(dagOf(nodes));
  return freshBook("run-1", graph, new Map(Object.entries(missingTables)));
}

/** A run whose first nodes are ready. */
export function runningBook(nodes: Nodes, missingTables?: Record<string, string[]>): Book {
  const book = newBook(nodes, missingTables);
  admit(book);
  return book;
}

export function entryOf(book: Book, nodeId: string): NodeEntry {
  const entry = book.nodes.get(nodeId);
  if (!entry) throw new Error(`there is no node ${nodeId}`);
  return entry;
}

export function liveOf(book: Book, nodeId: string): Live {
  const { live } = entryOf(book, nodeId);
  if (!live) throw new Error(`node ${nodeId} has ended`);
  return live;
}

let fences = 0;

/** Does in memory what a claim does in the database. Returns the fence. */
export function claim(book: Book, nodeId: string): string {
  const entry = entryOf(book, nodeId);
  const live = liveOf(book, nodeId);
  if (live.state !== "ready") throw new Error(`node ${nodeId} is ${live.state}, and cannot be claimed`);
  fences += 1;
  moveNode(book, entry, "RUNNING");
  entry.attempt = live.attempt;
  Object.assign(live, { state: "leased", fence: String(fences) });
  return String(fences);
}

/** `{ a: "SUCCESS", b: "RUNNING" }` */
export function statuses(book: Book): Record<string, NodeStatus> {
  return Object.fromEntries([...book.nodes].map(([id, { status }]) => [id, status]));
}
