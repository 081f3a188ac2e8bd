/**
 * Starts and restarts: a run is admitted, resumed or retried, or a node is completed by hand. Each of these resets some nodes
 * and then recounts the unmet parents of all nodes, so the book must hold the whole run.
 */

import { descendants, type GraphNode } from "../definitions/graph.ts";
import { addEvent, type Book, type Live, moveNode, moveRun, type NodeEntry } from "./book.ts";
import { decide } from "./rules.ts";
import { ENDED_NODE } from "./states.ts";
import { endOne, endRunIfDone, whySkipped } from "./transition.ts";

/** Why a request was refused, as the end of a sentence. */
export type Refused = { because: string };

/** PENDING to RUNNING: its nodes become live. */
export function admit(book: Book): void {
  moveRun(book, "RUNNING");
  recount(book);
}

/** Continues a STOPPED run where it was stopped. */
export function resume(book: Book, actor: string): Refused | undefined {
  if (book.status !== "STOPPED") return { because: `it is ${book.status}, and only a STOPPED run can be resumed` };
  for (const entry of entries(book)) if (entry.status === "STOPPED") reset(book, entry, entry.attempt > 0);
  addEvent(book, "run resumed", { actor, detail: { runWas: book.was.status } });
  continueRun(book);
  return undefined;
}

export interface RetryRequest {
  /** Undefined means everything that failed or was stopped. */
  nodeId: string | undefined;
  /** Also run descendants again that have succeeded. */
  downstream: boolean;
  actor: string;
  reason: string | null;
  /** The node's artifact until its attempt ends. */
  artifact?: unknown;
}

export function retry(book: Book, request: RetryRequest): Refused | undefined {
  const { nodeId, downstream, actor, reason, artifact = null } = request;
  if (book.status === "STOPPING") return { because: "the run is STOPPING; wait until it is STOPPED" };
  if (nodeId !== undefined && entryOf(book, nodeId).live?.state === "delayed") {
    retryNow(book, entryOf(book, nodeId), request);
    return undefined;
  }
  const targets = nodeId === undefined ? entries(book).filter(isRetryable) : [entryOf(book, nodeId)];
  const [first] = targets;
  // A run that timed out while its last nodes succeeded is FAILED with nothing left to run: it ends with SUCCESS.
  if (!first && book.status !== "FAILED") return { because: "none of its nodes is FAILED or STOPPED" };
  if (first && nodeId !== undefined && !isRetryable(first)) {
    const which = "only a FAILED or STOPPED node, or one in its back-off, can be retried";
    return { because: `node \`${nodeId}\` is ${first.status}, and ${which}` };
  }
  const asked = new Set(targets.map(({ node }) => node));
  const again = new Set([...asked, ...stoppedAncestors(book, asked)]);
  for (const node of again) {
    const entry = entryOf(book, node.id);
    reset(book, entry, asked.has(node) || entry.attempt > 0);
  }
  if (nodeId !== undefined && first) first.artifact = artifact;
  resetDescendants(book, again, downstream);
  addEvent(book, nodeId === undefined ? "run retried" : "node retried", {
    nodeId: nodeId ?? null,
    actor,
    detail: { runWas: book.was.status, downstream, ...(reason === null ? {} : { reason }) },
  });
  continueRun(book);
  // A node that was named and would be skipped is refused instead.
  if (nodeId !== undefined && first?.status === "SKIPPED") {
    return { because: `node \`${nodeId}\` would be skipped: ${first.error}. Retry its parents` };
  }
  return undefined;
}

/** Ends the back-off of a node: its next attempt begins now, with a fresh budget. */
function retryNow(book: Book, entry: NodeEntry, { actor, reason, artifact = null }: RetryRequest): void {
  const live = entry.live ?? freshLive(entry.attempt);
  entry.live = { ...live, state: "ready", delayMs: null, tries: 0 };
  entry.artifact = artifact;
  const detail = { runWas: book.was.status, nodeWas: entry.status, ...(reason === null ? {} : { reason }) };
  addEvent(book, "node retried", { nodeId: entry.node.id, actor, detail });
}

export interface CompleteRequest {
  nodeId: string;
  artifact: unknown;
  actor: string;
  reason: string | null;
}

/** The caller handles a node that has already succeeded: completing it changes nothing. */
export function complete(book: Book, { nodeId, artifact, actor, reason }: CompleteRequest): Refused | undefined {
  const entry = entryOf(book, nodeId);
  const { status } = entry;
  if (status === "RETRYING") {
    entry.attempt -= 1; // The next attempt did not begin, and how the last one ended is in the history already.
  } else if (status === "FAILED" || status === "STOPPED" || status === "RUNNING") {
    // How the attempt really ended stays in the history of attempts; the SUCCESS is set by hand.
    entry.endedAttempt =
      status === "RUNNING" ? { status: "STOPPED", error: "completed by hand" } : { status, error: null };
  } else {
    const which = "only FAILED, STOPPED, RUNNING or RETRYING can be completed";
    return { because: `node \`${nodeId}\` is ${status}, and ${which}` };
  }
  moveNode(book, entry, "SUCCESS");
  Object.assign(entry, { artifact, error: null, live: null });
  const detail = { runWas: book.was.status, nodeWas: entry.was.status, ...(reason === null ? {} : { reason }) };
  addEvent(book, "node completed", { nodeId, actor, detail });
  if (book.status === "STOPPING") {
    stopSkippedDescendants(book, entry.node);
    recount(book);
    endRunIfDone(book);
    return undefined;
  }
  resetDescendants(book, new Set([entry.node]), false);
  continueRun(book);
  return undefined;
}

function isRetryable({ status }: NodeEntry): boolean {
  return status === "FAILED" || status === "STOPPED";
}

/** Their STOPPED ancestors: without a reset of those, the nodes would wait forever. */
function stoppedAncestors(book: Book, nodes: ReadonlySet<GraphNode>): Set<GraphNode> {
  const found = new Set<GraphNode>();
  const open = [...nodes];
  for (let node = open.pop(); node; node = open.pop()) {
    for (const parent of node.parents) {
      if (found.has(parent) || entryOf(book, parent.id).status !== "STOPPED") continue;
      found.add(parent);
      open.push(parent);
    }
  }
  return found;
}

function reset(book: Book, entry: NodeEntry, asRetry: boolean): void {
  const { status, attempt } = entry;
  entry.endedAttempt = { status, error: null };
  moveNode(book, entry, asRetry ? "RETRYING" : "PENDING");
  entry.live = freshLive(attempt + 1);
  if (asRetry) entry.attempt = attempt + 1;
  entry.error = null;
  entry.artifact = null;
}

/** Resets the skipped and stopped descendants of nodes that run again, except those that wait for a STOPPED node. */
function resetDescendants(book: Book, again: ReadonlySet<GraphNode>, downstream: boolean): void {
  for (const node of descendants(book.graph, again)) {
    const entry = entryOf(book, node.id);
    const isSkippedOrStopped = entry.status === "SKIPPED" || entry.status === "STOPPED";
    if (!isSkippedOrStopped && !(downstream && ENDED_NODE.has(entry.status))) continue;
    const waitsForStopped = node.parents.some((parent) => entryOf(book, parent.id).status === "STOPPED");
    if (!waitsForStopped) reset(book, entry, false);
    else if (entry.status === "SKIPPED") endOne(book, entry, "STOPPED", "waits for a node that was stopped");
  }
}

/** In a run that is STOPPING, the skipped descendants of a completed node become STOPPED, so that a resume runs them. */
function stopSkippedDescendants(book: Book, completed: GraphNode): void {
  for (const node of descendants(book.graph, [completed])) {
    const entry = entryOf(book, node.id);
    if (entry.status === "SKIPPED") endOne(book, entry, "STOPPED", "the run was stopped before it started");
  }
}

function continueRun(book: Book): void {
  if (book.status !== "RUNNING") moveRun(book, "RUNNING");
  book.timedOut = false;
  recount(book);
  // The stored reason may be a node that runs again or was completed, while another is still FAILED.
  book.reason = book.failed > 0 ? "failure" : { text: null };
  endRunIfDone(book);
}

/** Recounts the parents of every node that has not ended. The graph lists parents before children, so one pass is enough. */
function recount(book: Book): void {
  for (const entry of entries(book)) {
    if (ENDED_NODE.has(entry.status)) continue;
    const live = entry.live ?? freshLive(entry.status === "RETRYING" ? entry.attempt : entry.attempt + 1);
    entry.live = live;
    const parents = entry.node.parents.map((parent) => entryOf(book, parent.id).status);
    const unmet = parents.filter((status) => !ENDED_NODE.has(status) || status === "STOPPED").length;
    live.waiting = unmet + (book.missingTables.get(entry.node.id)?.length ?? 0);
    live.failed = parents.filter((status) => status === "FAILED").length;
    live.skipped = parents.filter((status) => status === "SKIPPED").length;
    if (live.state === "leased" || live.state === "parked") continue;
    const decision = decide(entry.node.runWhen, live);
    if (decision === "run" && (live.state === "delayed" || live.state === "blocked")) continue;
    live.state = decision === "run" ? "ready" : "waiting";
    live.delayMs = null;
    live.childRunId = null;
    if (decision === "skip") endOne(book, entry, "SKIPPED", whySkipped(entry.node));
  }
}

function freshLive(attempt: number): Live {
  return {
    state: "waiting",
    waiting: 0,
    failed: 0,
    skipped: 0,
    attempt,
    tries: 0,
    lost: 0,
    returned: 0,
    fence: null,
    delayMs: null,
    childRunId: null,
    leaseTo: null,
  };
}

function entries(book: Book): NodeEntry[] {
  return book.graph.nodes.map(({ id }) => entryOf(book, id));
}

function entryOf(book: Book, nodeId: string): NodeEntry {
  const entry = book.nodes.get(nodeId);
  if (!entry) throw new Error(`node ${nodeId} of run ${book.runId} was not read`);
  return entry;
}
