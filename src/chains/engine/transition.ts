/**
 * All state changes of a run that is under way, whatever causes them: a worker's result, a timer, a reclaim, a stop. The
 * functions work on an open book and nothing else, so a test can play any sequence of events. Admission, resume, retry and
 * complete are in revive.ts.
 */
import { retryDelayMs } from "../../kernel/work/retry.ts";
import { policyOf } from "../../kernel/work/retry-fields.ts";
import { descendants, type Graph, type GraphNode } from "../definitions/graph.ts";
import { addEvent, type Book, type Live, moveNode, moveRun, type NodeEntry } from "./book.ts";
import { type Decision, decide } from "./rules.ts";
import { ENDED_NODE, type NodeStatus } from "./states.ts";

/** What a worker, a timer or another run reports about one node. */
export type NodeEvent =
  | { kind: "succeeded"; nodeId: string; fence: string; artifact: unknown }
  | { kind: "failed"; nodeId: string; fence: string; error: string; final: boolean }
  | { kind: "skipped"; nodeId: string; fence: string; reason: string }
  | { kind: "parked"; nodeId: string; fence: string; childRunId: string }
  | { kind: "blocked"; nodeId: string; fence: string; childRunId: string }
  | { kind: "released"; nodeId: string; fence: string }
  | { kind: "lost"; nodeId: string; fence: string; lostLimit: number }
  | { kind: "child ended"; nodeId: string; childRunId: string; outcome: ChildOutcome }
  | { kind: "child timed out"; nodeId: string; childRunId: string }
  | { kind: "arrived"; nodeId: string; table: string };

export type ChildOutcome =
  | { status: "SUCCESS"; artifact: unknown }
  | { status: "FAILED" | "STOPPED"; error: string; final: boolean };

/** What stops the run as a whole. */
export type RunEvent =
  | { kind: "stop"; graceMs: number; actor: string; reason: string }
  | { kind: "timed out"; graceMs: number; timeoutMs: number }
  | { kind: "grace expired" };

/** Returns whether the event counted. If its sender no longer holds the node, it does not, and nothing changes. */
export function onNodeEvent(book: Book, event: NodeEvent, random: () => number): boolean {
  const entry = book.nodes.get(event.nodeId);
  const live = entry?.live;
  if (!entry || !live || !isFrom(live, event)) return false;
  switch (event.kind) {
    case "succeeded":
      succeed(book, entry, event.artifact);
      break;
    case "failed":
      fail(book, entry, live, event, random);
      break;
    case "skipped":
      entry.attempt = live.attempt - 1; // Only its `if` was evaluated: that is no attempt.
      end(book, entry, "SKIPPED", event.reason);
      break;
    case "parked":
      if (book.status === "STOPPING") end(book, entry, "STOPPED", "stopped");
      else park(live, event.childRunId, entry.node.def.timeoutMs);
      break;
    case "blocked":
      if (book.status === "STOPPING") end(book, entry, "STOPPED", "stopped");
      else block(book, entry, live, event.childRunId);
      break;
    case "released":
      live.returned += 1;
      if (book.status === "STOPPING") end(book, entry, "STOPPED", "stopped");
      else tryAgain(book, entry, live, { status: "STOPPED", error: "its worker was shut down", delayMs: 0 });
      break;
    case "lost":
      onWorkerLost(book, entry, live, event.lostLimit);
      break;
    case "child ended":
      if (live.state === "blocked") Object.assign(live, { state: "ready", childRunId: null } satisfies Partial<Live>);
      else if (event.outcome.status === "SUCCESS") succeed(book, entry, event.outcome.artifact);
      else fail(book, entry, live, event.outcome, random);
      break;
    case "child timed out":
      fail(
        book,
        entry,
        live,
        { error: `it took longer than its ${entry.node.def.timeoutMs} ms`, final: false },
        random,
      );
      break;
    case "arrived":
      live.waiting -= 1;
      decideAgain(entry, live);
      break;
  }
  endRunIfDone(book);
  return true;
}

function isFrom(live: Live, event: NodeEvent): boolean {
  if (event.kind === "arrived") return true;
  if ("fence" in event) return live.state === "leased" && live.fence === event.fence;
  const waits = live.state === "parked" || (live.state === "blocked" && event.kind === "child ended");
  return waits && live.childRunId === event.childRunId;
}

function park(live: Live, childRunId: string, timeoutMs: number | undefined): void {
  Object.assign(live, { state: "parked", fence: null, childRunId, delayMs: timeoutMs ?? null } satisfies Partial<Live>);
}

/** The attempt has not begun: the child run that it would continue is still stopping. It is made again after that. */
function block(book: Book, entry: NodeEntry, live: Live, childRunId: string): void {
  moveNode(book, entry, "RETRYING");
  entry.error = `run ${childRunId}, which an earlier attempt started, is still stopping`;
  Object.assign(live, { fence: null, childRunId: null } satisfies Partial<Live>);
  if (waitAgain(book, entry, live, "blocked")) live.childRunId = childRunId;
}

/** Leases a node that has just become ready to the session whose report made it ready. */
export function lease(book: Book, entry: NodeEntry, live: Live, session: string): void {
  moveNode(book, entry, "RUNNING");
  entry.attempt = live.attempt;
  live.state = "leased";
  live.leaseTo = session;
}

function succeed(book: Book, entry: NodeEntry, artifact: unknown): void {
  entry.artifact = artifact;
  end(book, entry, "SUCCESS", null);
}

function fail(
  book: Book,
  entry: NodeEntry,
  live: Live,
  { error, final }: { error: string; final: boolean },
  random: () => number,
): void {
  if (book.status === "STOPPING") return end(book, entry, "STOPPED", error);
  live.tries += 1;
  live.lost = 0;
  live.returned = 0;
  const delayMs = final ? undefined : retryDelayMs(policyOf(entry.node.def.retry), live.tries, random);
  if (delayMs === undefined) {
    const triesLeft = (entry.node.def.retry?.maxAttempts ?? 1) - live.tries;
    failForGood(book, entry, triesLeft > 0 ? `${error} (not retried: the error is final)` : error);
  } else {
    tryAgain(book, entry, live, { status: "FAILED", error, delayMs });
  }
}

function onWorkerLost(book: Book, entry: NodeEntry, live: Live, lostLimit: number): void {
  live.lost += 1;
  live.returned += 1;
  const error = live.lost === 1 ? "its worker was lost" : `${live.lost} workers in a row were lost`;
  addEvent(book, "node lost its worker", {
    nodeId: entry.node.id,
    detail: { attempt: live.attempt, inARow: live.lost },
  });
  if (book.status === "STOPPING") return end(book, entry, "STOPPED", error);
  if (live.lost >= lostLimit) return failForGood(book, entry, error);
  tryAgain(book, entry, live, { status: "LOST", error, delayMs: 0 });
}

function failForGood(book: Book, entry: NodeEntry, error: string): void {
  if (book.failed === 0) book.reason ??= "failure";
  end(book, entry, "FAILED", error);
}

function tryAgain(
  book: Book,
  entry: NodeEntry,
  live: Live,
  endedAttempt: { status: NodeStatus | "LOST"; error: string; delayMs: number },
): void {
  const { status, error, delayMs } = endedAttempt;
  moveNode(book, entry, "RETRYING");
  entry.endedAttempt = { status, error };
  entry.error = error;
  live.attempt += 1;
  entry.attempt = live.attempt;
  Object.assign(live, { fence: null, childRunId: null } satisfies Partial<Live>);
  const waits = waitAgain(book, entry, live, delayMs > 0 ? "delayed" : "ready");
  live.delayMs = waits && delayMs > 0 ? delayMs : null;
}

/** Returns false if it has to wait for parents, or is skipped: while it ran, a manual retry may have reset them. */
function waitAgain(book: Book, entry: NodeEntry, live: Live, state: "delayed" | "blocked" | "ready"): boolean {
  const decision = decide(entry.node.runWhen, live);
  live.state = decision === "run" ? state : "waiting";
  if (decision === "skip") end(book, entry, "SKIPPED", whySkipped(entry.node));
  return decision === "run";
}

/** Ends a node and all descendants that are skipped because of it. A loop: with thousands in a row, recursion would overflow. */
function end(book: Book, first: NodeEntry, firstStatus: NodeStatus, firstError: string | null): void {
  const ended = [endOne(book, first, firstStatus, firstError)];
  for (const { node, status } of ended) {
    if (status === "STOPPED") continue; // Its children are stopped too, until someone resumes or retries.
    for (const child of node.children) {
      const entry = book.nodes.get(child.id);
      const live = entry?.live;
      if (!entry || !live) continue; // It has already ended.
      live.waiting -= 1;
      if (status === "FAILED") live.failed += 1;
      if (status === "SKIPPED") live.skipped += 1;
      if (decideAgain(entry, live) === "skip") ended.push(endOne(book, entry, "SKIPPED", whySkipped(child)));
    }
  }
}

/** Ends one node, without effect on its children. */
export function endOne(book: Book, entry: NodeEntry, status: NodeStatus, error: string | null): NodeEntry {
  if (entry.live && !isRunning(entry.live)) entry.attempt = entry.live.attempt - 1; // The next attempt did not start.
  moveNode(book, entry, status);
  entry.error = error;
  entry.live = null;
  return entry;
}

function isRunning({ state }: Live): boolean {
  return state === "leased" || state === "parked";
}

/** Makes a waiting node ready if its new counts allow it. */
function decideAgain({ node }: NodeEntry, live: Live): Decision {
  if (live.state !== "waiting") return "wait";
  const decision = decide(node.runWhen, live);
  if (decision === "run") live.state = "ready";
  return decision;
}

export function whySkipped(node: GraphNode): string {
  return node.runWhen === "one_failed" ? "none of its parents failed" : "a parent failed or was skipped";
}

/** Ends the run when its last node has ended. */
export function endRunIfDone(book: Book): void {
  if (book.open > 0 || (book.status !== "RUNNING" && book.status !== "STOPPING")) return;
  if (book.timedOut || (book.failed > 0 && book.status === "RUNNING")) return moveRun(book, "FAILED");
  if (book.stopped > 0) return stopRun(book);
  // The stored reason is that of the stop, which did not stop anything.
  if (book.failed > 0) book.reason = "failure";
  moveRun(book, book.failed > 0 ? "FAILED" : "SUCCESS");
}

/** A revived run ends like this if some of its nodes stayed STOPPED. */
function stopRun(book: Book): void {
  if (book.status === "RUNNING") {
    book.reason = book.was.status === "STOPPED" ? null : { text: `nodes that are still STOPPED: ${book.stopped}` };
  }
  moveRun(book, "STOPPED");
}

export function onRunEvent(book: Book, event: RunEvent): void {
  switch (event.kind) {
    case "stop":
      addEvent(book, "stop asked for", { actor: event.actor, detail: { reason: event.reason } });
      book.reason = { text: event.reason };
      return stop(book, event.graceMs);
    case "timed out":
      addEvent(book, "run timed out", { detail: { timeoutMs: event.timeoutMs } });
      book.timedOut = true;
      book.reason = { text: `the run took longer than its ${event.timeoutMs} ms` };
      return stop(book, event.graceMs);
    case "grace expired":
      for (const entry of book.nodes.values()) {
        if (entry.live) end(book, entry, "STOPPED", "did not stop within the grace period");
      }
      return endRunIfDone(book);
  }
}

/**
 * Nodes that do not run stop at once; running nodes are aborted and have the grace period to end. The run stays STOPPING
 * until a second step even if no node runs, so that every stop of a live run is answered with STOPPING.
 */
function stop(book: Book, graceMs: number): void {
  const wasPending = book.status === "PENDING";
  for (const entry of book.nodes.values()) {
    if (!ENDED_NODE.has(entry.status) && !(entry.live && isRunning(entry.live))) {
      end(book, entry, "STOPPED", "the run was stopped before it started");
    }
  }
  moveRun(book, wasPending ? "STOPPED" : "STOPPING");
  book.graceMs = wasPending ? null : graceMs;
}

/** The nodes that an event can change, its own included: the engine reads them before it applies the event. */
export function affectedNodes(graph: Graph, event: NodeEvent): string[] {
  const node = graph.byId.get(event.nodeId);
  if (!node) return [];
  // All descendants of a skipped node may be skipped.
  const succeeded = event.kind === "succeeded" || (event.kind === "child ended" && event.outcome.status === "SUCCESS");
  const mayBeSkipped =
    event.kind === "arrived" || event.kind === "parked"
      ? []
      : succeeded
        ? node.children.filter(({ runWhen }) => runWhen === "one_failed")
        : [node];
  const children = succeeded ? node.children : [];
  const all = new Set([node, ...children, ...mayBeSkipped, ...descendants(graph, mayBeSkipped)]);
  return [...all].map(({ id }) => id);
}
