/**
 * A run, as far as a change to it needs to be known, open on the desk: read under the run's lock, changed in memory by
 * transition.ts, and written back as the difference.
 */
import type { Graph, GraphNode } from "../definitions/graph.ts";
import { ENDED_NODE, NODE_NEXT, type NodeStatus, RUN_NEXT, type RunStatus } from "./states.ts";

export type LiveState = "waiting" | "delayed" | "ready" | "leased" | "parked";

/** Where a node that has not ended stands: what the engine's row, the book and what is written have in common. */
export interface LiveCounts {
  state: LiveState;
  waiting: number;
  failed: number;
  skipped: number;
  /** The number of the try that runs or comes next. */
  attempt: number;
  /** Tries that failed since a person last said "again". */
  tries: number;
  lost: number;
  /** Tries that came back without a result since one last had any. */
  returned: number;
}

/** The engine's row of a node that has not ended. */
export interface Live extends LiveCounts {
  fence: string | null;
  /** From now: when a `delayed` one is due, or a `parked` one has taken too long. Null keeps what is there. */
  delayMs: number | null;
  childRunId: string | null;
  /** The session that takes it now, while `leased`; null for one that holds it already. */
  takenBy: string | null;
}

export interface NodeEntry {
  readonly node: GraphNode;
  status: NodeStatus;
  /** As `job_run_node` has it: the last try that was begun, or the one that is due. */
  attempt: number;
  live: Live | null;
  /** Why it is as it is. */
  error: string | null;
  artifact: unknown;
  /** How the try ended that the next one follows, to be kept. */
  followed: { status: NodeStatus | "LOST"; error: string | null } | null;
  readonly was: { status: NodeStatus; live: Readonly<Live> | null };
}

export interface BookEvent {
  kind: string;
  nodeId: string | null;
  actor: string | null;
  detail: Readonly<Record<string, unknown>>;
}

export interface Book {
  readonly runId: string;
  readonly graph: Graph;
  status: RunStatus;
  /** Nodes that have not ended, that failed, that were stopped: of the whole run, also of nodes that were not read. */
  open: number;
  failed: number;
  stopped: number;
  timedOut: boolean;
  /** From now, while STOPPING. */
  graceMs: number | null;
  /** Why the run ends as it does; `first` yields to an earlier reason. */
  reason: { text: string | null; first: boolean } | null;
  readonly nodes: Map<string, NodeEntry>;
  /** What a node still waits for, of the tables that it names. */
  readonly missingTables: ReadonlyMap<string, readonly string[]>;
  readonly events: BookEvent[];
  readonly was: { status: RunStatus };
}

export interface OpenBook
  extends Pick<Book, "runId" | "graph" | "status" | "open" | "failed" | "stopped" | "timedOut"> {
  missingTables?: ReadonlyMap<string, readonly string[]>;
}

const NOTHING_MISSING: ReadonlyMap<string, readonly string[]> = new Map();

// Field by field, here and below: thousands a second pass here, and copying an object by its rest takes several times as long.
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

/** Of a run that nobody has touched yet. */
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
  for (const { id } of graph.nodes) enter(book, id, { status: "PENDING", attempt: 0, live: null });
  return book;
}

/** Adds a node as it was read. */
export function enter(
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
    followed: null,
    was: { status, live: live && { ...live } },
  });
}

/** The only way in which a node's status changes. */
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

/** The only way in which a run's status changes. */
export function moveRun(book: Book, status: RunStatus): void {
  const legal: readonly RunStatus[] = RUN_NEXT[book.status];
  if (!legal.includes(status)) throw new Error(`run ${book.runId} cannot go from ${book.status} to ${status}`);
  book.status = status;
}

export function tell(book: Book, kind: string, event: Partial<Omit<BookEvent, "kind">> = {}): void {
  book.events.push({ kind, nodeId: null, actor: null, detail: {}, ...event });
}
