/**
 * Beginnings: a run is admitted, resumed, tried again, or a node called complete. All of these set some nodes to a new
 * beginning and then count anew who waits for whom, over the whole run, which must be in the book.
 */

import { descendants, type GraphNode } from "../definitions/graph.ts";
import { type Book, type Live, moveNode, moveRun, type NodeEntry, tell } from "./book.ts";
import { judge } from "./rules.ts";
import { ENDED_NODE, type NodeStatus } from "./states.ts";
import { close, onRunEvent, whySkipped } from "./transition.ts";

/** A plain course of events is that it works; else the sentence says why not. */
export type Refused = { because: string };

/** The first step of a run: its nodes become work. */
export function admit(book: Book): void {
  moveRun(book, "RUNNING");
  countAnew(book);
}

/** Takes up a stopped run where it was left. */
export function resume(book: Book, actor: string): Refused | undefined {
  if (book.status !== "STOPPED") return { because: `it is ${book.status}, and only a STOPPED run can be resumed` };
  for (const entry of entries(book)) if (entry.status === "STOPPED") beginAgain(book, entry, entry.attempt > 0);
  tell(book, "run resumed", { actor, detail: { runWas: book.was.status } });
  goOn(book);
  return undefined;
}

export interface RetryRequest {
  /** Undefined means everything that failed or was stopped. */
  nodeId: string | undefined;
  /** Also run again what succeeded behind it. */
  downstream: boolean;
  actor: string;
  reason: string | null;
}

export function retry(book: Book, { nodeId, downstream, actor, reason }: RetryRequest): Refused | undefined {
  const busy = notNow(book);
  if (busy) return busy;
  const targets = nodeId === undefined ? entries(book).filter(isRetryable) : [entryOf(book, nodeId)];
  const [first] = targets;
  if (!first) return { because: "none of its nodes is FAILED or STOPPED" };
  if (nodeId !== undefined && !isRetryable(first)) {
    return { because: `node \`${nodeId}\` is ${first.status}, and only a FAILED or STOPPED node can be retried` };
  }
  const asked = new Set(targets.map(({ node }) => node));
  const again = new Set([...asked, ...stoppedBefore(book, asked)]);
  for (const node of again) {
    const entry = entryOf(book, node.id);
    beginAgain(book, entry, asked.has(node) || entry.attempt > 0);
  }
  resetBehind(book, again, downstream);
  tell(book, nodeId === undefined ? "run retried" : "node retried", {
    nodeId: nodeId ?? null,
    actor,
    detail: { runWas: book.was.status, downstream, ...(reason === null ? {} : { reason }) },
  });
  goOn(book);
  // Asked for by name, and yet it would not run: better said than done.
  if (nodeId !== undefined && first.status === "SKIPPED") {
    return { because: `node \`${nodeId}\` would be skipped: ${first.error}. Retry its parents` };
  }
  return undefined;
}

export interface CompleteRequest {
  nodeId: string;
  artifact: unknown;
  actor: string;
  reason: string | null;
}

/** Completing what has succeeded already changes nothing; the caller sees to that. */
export function complete(book: Book, { nodeId, artifact, actor, reason }: CompleteRequest): Refused | undefined {
  const entry = entryOf(book, nodeId);
  if (entry.status !== "FAILED" && entry.status !== "STOPPED" && entry.status !== "RUNNING") {
    return { because: `node \`${nodeId}\` is ${entry.status}, and only FAILED, STOPPED or RUNNING can be completed` };
  }
  const { status } = entry;
  // What really happened is kept as an attempt: the success is a person's word.
  entry.followed = status === "RUNNING" ? { status: "STOPPED", error: "completed by hand" } : { status, error: null };
  moveNode(book, entry, "SUCCESS");
  Object.assign(entry, { artifact, error: null, live: null });
  const detail = { runWas: book.was.status, nodeWas: entry.was.status, ...(reason === null ? {} : { reason }) };
  tell(book, "node completed", { nodeId, actor, detail });
  if (book.status === "STOPPING") {
    stopBehind(book, entry.node);
    countAnew(book);
    onRunEvent(book, { kind: "settle" });
    return undefined;
  }
  resetBehind(book, new Set([entry.node]), false);
  goOn(book);
  return undefined;
}

function isRetryable({ status }: NodeEntry): boolean {
  return status === "FAILED" || status === "STOPPED";
}

function notNow({ status }: Book): Refused | undefined {
  return status === "STOPPING" ? { because: "the run is STOPPING; wait until it is STOPPED" } : undefined;
}

/** The stopped nodes that these cannot do without: they would wait for them for ever. */
function stoppedBefore(book: Book, nodes: ReadonlySet<GraphNode>): Set<GraphNode> {
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

function beginAgain(book: Book, entry: NodeEntry, asRetry: boolean): void {
  const { status, attempt } = entry;
  entry.followed = { status, error: null };
  moveNode(book, entry, asRetry ? "RETRYING" : "PENDING");
  entry.live = freshLive(attempt + 1);
  if (asRetry) entry.attempt = attempt + 1;
  entry.error = null;
  entry.artifact = null;
}

/** What was skipped or stopped behind the nodes that begin again gets another chance, unless it waits for a stopped one. */
function resetBehind(book: Book, again: ReadonlySet<GraphNode>, downstream: boolean): void {
  for (const node of descendants(book.graph, again)) {
    const entry = entryOf(book, node.id);
    const comesAlong = downstream ? ENDED_NODE.has(entry.status) : isPutAside(entry.status);
    if (!comesAlong) continue;
    const waitsForEver = node.parents.some((parent) => entryOf(book, parent.id).status === "STOPPED");
    if (!waitsForEver) beginAgain(book, entry, false);
    else if (entry.status === "SKIPPED") close(book, entry, "STOPPED", "waits for a node that was stopped");
  }
}

/** What was skipped behind a node that succeeded after all stops with the rest of the run, so that it can be resumed. */
function stopBehind(book: Book, completed: GraphNode): void {
  for (const node of descendants(book.graph, [completed])) {
    const entry = entryOf(book, node.id);
    if (entry.status === "SKIPPED") close(book, entry, "STOPPED", "the run was stopped before it");
  }
}

function isPutAside(status: NodeStatus): boolean {
  return status === "SKIPPED" || status === "STOPPED";
}

function goOn(book: Book): void {
  if (book.status !== "RUNNING") moveRun(book, "RUNNING");
  book.timedOut = false;
  countAnew(book);
  onRunEvent(book, { kind: "settle" });
  const stillFailed = entries(book).find(({ status }) => status === "FAILED");
  // The reason of a run that failed before may be this very node, with its error.
  const known = stillFailed && book.was.status === "FAILED";
  book.reason = known ? null : { text: stillFailed ? `node \`${stillFailed.node.id}\` failed` : null, first: false };
}

/** Parents come before their children, so one walk settles everything. */
function countAnew(book: Book): void {
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
    const verdict = judge(entry.node.runWhen, live);
    if (verdict === "run" && live.state === "delayed") continue;
    live.state = verdict === "run" ? "ready" : "waiting";
    live.delayMs = null;
    if (verdict === "skip") close(book, entry, "SKIPPED", whySkipped(entry.node));
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
    takenBy: null,
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
