/**
 * A book is the in-memory image of a run while its lock is held: the run, and those of its nodes that a change can affect.
 * open-books.ts reads it, transition.ts and revive.ts change it, write-books.ts writes the difference back.
 */
import type { Graph, GraphNode } from "../definitions/graph.ts";
import { ENDED_NODE, NODE_NEXT, type NodeStatus, RUN_NEXT, type RunStatus } from "./states.ts";

/**
 * waiting ──▶ ready ──▶ leased ──▶ parked: for parents and tables, for a worker, at work, for its child run. From `leased` and
 * `parked` the next attempt is `delayed` by its backoff, and `blocked` while the child run of an earlier attempt stops.
 */
export type LiveState = "waiting" | "delayed" | "blocked" | "ready" | "leased" | "parked";

/** State and counters of a node that has not ended, shared by the row in `chains.live_node`, the book and the write. */
export interface LiveCounts {
  state: LiveState;
  waiting: number;
  failed: number;
  skipped: number;
  /** The number of the attempt that runs or comes next. */
  attempt: number;
  /** Attempts that failed since the last manual retry. */
  tries: number;
  /** Workers lost in a row. */
  lost: number;
  /** Attempts without a result, their worker lost or shut down, since the last attempt that had one. */
  returned: number;
}

/** A row of `chains.live_node`. */
export interface Live extends LiveCounts {
  fence: string | null;
  /** From now until a `delayed` node is due or a `parked` one times out. Null keeps the stored time. */
  delayMs: number | null;
  childRunId: string | null;
  /** The session to lease it to when the book is written. Null keeps the lease that it has. */
  leaseTo: string | null;
}

export interface NodeEntry {
  readonly node: GraphNode;
  status: NodeStatus;
  /** As in `job_run_node`: the last attempt that started, or the one that is due. */
  attempt: number;
  live: Live | null;
  /** Why it has this status. */
  error: string | null;
  artifact: unknown;
  /** How the previous attempt ended, to be stored as history before the next one starts. */
  endedAttempt: { status: NodeStatus | "LOST"; error: string | null } | null;
  readonly was: { status: NodeStatus; live: Readonly<Live> | null };
}

export interface BookEvent {
  kind: string;
  nodeId: string | null;
  actor: string | null;
  detail: Readonly<Record<string, unknown>>;
}

/** `failure`: the node that failed first. Its text is made when the book is written, which may not hold that node. */
export type ReasonChange = { text: string | null } | "failure";

export interface Book {
  readonly runId: string;
  readonly graph: Graph;
  status: RunStatus;
  /** Counts over the whole run, nodes that were not read included: not ended, FAILED, STOPPED. */
  open: number;
  failed: number;
  stopped: number;
  timedOut: boolean;
  /** While STOPPING: from now until nodes that still run become STOPPED. */
  graceMs: number | null;
  /** The run's new reason; null keeps the stored one. */
  reason: ReasonChange | null;
  readonly nodes: Map<string, NodeEntry>;
  /** By node id, the tables of its `waitsFor` that have not arrived. */
  readonly missingTables: ReadonlyMap<string, readonly string[]>;
  readonly events: BookEvent[];
  readonly was: { status: RunStatus };
}

export interface OpenBook
  extends Pick<Book, "runId" | "graph" | "status" | "open" | "failed" | "stopped" | "timedOut"> {
  missingTables?: ReadonlyMap<string, readonly string[]>;
}

const NOTHING_MISSING: ReadonlyMap<string, readonly string[]> = new Map();

// Field by field, here and below: called thousands of times a second, and a spread takes several times as long.
export function openBook(run: OpenBook): Book {
  const { runId, graph, status, open, failed, stopped, timedOut, missingTables = NOTHING_MISSING } = run;
  return {
    runId,
    graph,
    status,
    open,
    failed,
    stopped,
    timedOut,
    graceMs: null,
    reason: null,
    nodes: new Map(),
    missingTables,
    events: [],
    was: { status },
  };
}

/** The book of a run that is PENDING and has never run. */
export function freshBook(runId: string, graph: Graph, missingTables: Book["missingTables"]): Book {
  const open = graph.nodes.length;
  const book = openBook({
    runId,
    graph,
    status: "PENDING",
    open,
    failed: 0,
    stopped: 0,
    timedOut: false,
    missingTables,
  });
  for (const { id } of graph.nodes) addNode(book, id, { status: "PENDING", attempt: 0, live: null });
  return book;
}

/** Adds a node with the state that was read. */
export function addNode(
  book: Book,
  nodeId: string,
  read: { status: NodeStatus; attempt: number; live: Live | null },
): void {
  const node = book.graph.byId.get(nodeId);
  if (!node) throw new Error(`run ${book.runId} has no node ${nodeId}`);
  const { status, attempt, live } = read;
  book.nodes.set(nodeId, {
    node,
    status,
    attempt,
    live,
    error: null,
    artifact: null,
    endedAttempt: null,
    was: { status, live: live && { ...live } },
  });
}

/** The only function that changes a node's status. */
export function moveNode(book: Book, entry: NodeEntry, status: NodeStatus): void {
  const legal: readonly NodeStatus[] = NODE_NEXT[entry.status];
  if (!legal.includes(status)) {
    throw new Error(`node ${entry.node.id} of run ${book.runId} cannot go from ${entry.status} to ${status}`);
  }
  book.open += Number(!ENDED_NODE.has(status)) - Number(!ENDED_NODE.has(entry.status));
  book.failed += Number(status === "FAILED") - Number(entry.status === "FAILED");
  book.stopped += Number(status === "STOPPED") - Number(entry.status === "STOPPED");
  entry.status = status;
}

/** The only function that changes a run's status. */
export function moveRun(book: Book, status: RunStatus): void {
  const legal: readonly RunStatus[] = RUN_NEXT[book.status];
  if (!legal.includes(status)) throw new Error(`run ${book.runId} cannot go from ${book.status} to ${status}`);
  book.status = status;
}

/** Adds a row to the run's history of events. */
export function addEvent(book: Book, kind: string, event: Partial<Omit<BookEvent, "kind">> = {}): void {
  book.events.push({ kind, nodeId: null, actor: null, detail: {}, ...event });
}
