/**
 * The one function through which the state of a run changes, whoever asks for it: a worker that is done, a timer, a
 * reclaim, a person. It works on an open book and touches nothing else, so every sequence of events can be played in a
 * test. What a person may ask of ended nodes is in revive.ts, which comes back here for the consequences.
 */
import { type RetryPolicy, retryDelayMs } from "../../kernel/work/retry.ts";
import type { NodeDef } from "../definitions/dag.ts";
import { descendants, type Graph, type GraphNode } from "../definitions/graph.ts";
import { type Book, type Live, moveNode, moveRun, type NodeEntry, tell } from "./book.ts";
import { judge, type Verdict } from "./rules.ts";
import { ENDED_NODE, type NodeStatus } from "./states.ts";

/** What a worker, a timer or another run reports about one node. */
export type NodeEvent =
  | { kind: "succeeded"; nodeId: string; fence: string; artifact: unknown }
  | { kind: "failed"; nodeId: string; fence: string; error: string; final: boolean }
  | { kind: "skipped"; nodeId: string; fence: string; reason: string }
  | { kind: "parked"; nodeId: string; fence: string; childRunId: string }
  | { kind: "released"; nodeId: string; fence: string }
  | { kind: "lost"; nodeId: string; fence: string; lostLimit: number }
  | { kind: "child ended"; nodeId: string; childRunId: string; outcome: ChildOutcome }
  | { kind: "child took too long"; nodeId: string; childRunId: string }
  | { kind: "arrived"; nodeId: string; table: string };

export type ChildOutcome =
  | { status: "SUCCESS"; artifact: unknown }
  | { status: "FAILED" | "STOPPED"; error: string; final: boolean };

/** What happens to the run as a whole. */
export type RunEvent =
  | { kind: "stop"; graceMs: number; actor: string; reason: string }
  | { kind: "time is up"; graceMs: number; timeoutMs: number }
  | { kind: "grace is over" }
  | { kind: "settle" };

/** Answers whether the event counted. It does not when its sender has lost the node: then nothing changes. */
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
      entry.attempt = live.attempt - 1; // It looked, but it did not try.
      end(book, entry, "SKIPPED", event.reason);
      break;
    case "parked":
      if (book.status === "STOPPING") end(book, entry, "STOPPED", "stopped");
      else park(live, event.childRunId, entry.node.def.timeoutMs);
      break;
    case "released":
      live.returned += 1;
      if (book.status === "STOPPING") end(book, entry, "STOPPED", "stopped");
      else tryAgain(book, entry, live, { status: "STOPPED", error: "its worker was shut down", delayMs: 0 });
      break;
    case "lost":
      lose(book, entry, live, event.lostLimit);
      break;
    case "child ended":
      if (event.outcome.status === "SUCCESS") succeed(book, entry, event.outcome.artifact);
      else fail(book, entry, live, event.outcome, random);
      break;
    case "child took too long":
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
      judgeAgain(entry, live);
      break;
  }
  settle(book);
  return true;
}

function isFrom(live: Live, event: NodeEvent): boolean {
  if (event.kind === "arrived") return true;
  if ("fence" in event) return live.state === "leased" && live.fence === event.fence;
  return live.state === "parked" && live.childRunId === event.childRunId;
}

function park(live: Live, childRunId: string, timeoutMs: number | undefined): void {
  Object.assign(live, { state: "parked", fence: null, childRunId, delayMs: timeoutMs ?? null } satisfies Partial<Live>);
}

/** Leases a node that has just become ready to the session whose report made it so. */
export function take(book: Book, entry: NodeEntry, live: Live, session: string): void {
  moveNode(book, entry, "RUNNING");
  entry.attempt = live.attempt;
  live.state = "leased";
  live.takenBy = session;
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
  const delayMs = final ? undefined : retryDelayMs(retryPolicy(entry.node.def), live.tries, random);
  if (delayMs === undefined) {
    const triesLeft = (entry.node.def.retry?.maxAttempts ?? 1) - live.tries;
    giveUp(book, entry, triesLeft > 0 ? `${error} (not tried again: it would fail alike)` : error);
  } else {
    tryAgain(book, entry, live, { status: "FAILED", error, delayMs });
  }
}

function lose(book: Book, entry: NodeEntry, live: Live, lostLimit: number): void {
  live.lost += 1;
  live.returned += 1;
  const error = live.lost === 1 ? "its worker fell silent" : `${live.lost} workers in a row fell silent`;
  tell(book, "node lost its worker", { nodeId: entry.node.id, detail: { attempt: live.attempt, inARow: live.lost } });
  if (book.status === "STOPPING") return end(book, entry, "STOPPED", error);
  if (live.lost >= lostLimit) return giveUp(book, entry, error);
  tryAgain(book, entry, live, { status: "LOST", error, delayMs: 0 });
}

function giveUp(book: Book, entry: NodeEntry, error: string): void {
  book.reason ??= { text: `node \`${entry.node.id}\` failed: ${error}`, first: true };
  end(book, entry, "FAILED", error);
}

function tryAgain(
  book: Book,
  entry: NodeEntry,
  live: Live,
  followed: { status: NodeStatus | "LOST"; error: string; delayMs: number },
): void {
  const { status, error, delayMs } = followed;
  moveNode(book, entry, "RETRYING");
  entry.followed = { status, error };
  entry.error = error;
  live.attempt += 1;
  entry.attempt = live.attempt;
  // While it ran, a person may have made what it depends on begin again.
  const verdict = judge(entry.node.runWhen, live);
  const delayed = verdict === "run" && delayMs > 0;
  Object.assign(live, {
    state: delayed ? "delayed" : verdict === "run" ? "ready" : "waiting",
    delayMs: delayed ? delayMs : null,
    fence: null,
    childRunId: null,
  } satisfies Partial<Live>);
  if (verdict === "skip") end(book, entry, "SKIPPED", whySkipped(entry.node));
}

/** Ends a node, and with it whatever is skipped because of it: in a loop, for a chain of thousands would fill the stack. */
function end(book: Book, first: NodeEntry, firstStatus: NodeStatus, firstError: string | null): void {
  const ended = [close(book, first, firstStatus, firstError)];
  for (const { node, status } of ended) {
    if (status === "STOPPED") continue; // Its children are stopped as well, and wait for what people decide.
    for (const child of node.children) {
      const entry = book.nodes.get(child.id);
      const live = entry?.live;
      if (!entry || !live) continue; // It has ended already.
      live.waiting -= 1;
      if (status === "FAILED") live.failed += 1;
      if (status === "SKIPPED") live.skipped += 1;
      if (judgeAgain(entry, live) === "skip") ended.push(close(book, entry, "SKIPPED", whySkipped(child)));
    }
  }
}

/** Ends one node alone. */
export function close(book: Book, entry: NodeEntry, status: NodeStatus, error: string | null): NodeEntry {
  if (entry.live && !isRunning(entry.live)) entry.attempt = entry.live.attempt - 1; // The next try was not begun.
  moveNode(book, entry, status);
  entry.error = error;
  entry.live = null;
  return entry;
}

function isRunning({ state }: Live): boolean {
  return state === "leased" || state === "parked";
}

/** Lets a waiting node go on, if it may, now that its counts have changed. */
function judgeAgain({ node }: NodeEntry, live: Live): Verdict {
  if (live.state !== "waiting") return "wait";
  const verdict = judge(node.runWhen, live);
  if (verdict === "run") live.state = "ready";
  return verdict;
}

export function whySkipped(node: GraphNode): string {
  return node.runWhen === "one_failed" ? "none of its parents failed" : "a parent failed or was skipped";
}

/** Ends the run when its last node has ended. */
function settle(book: Book): void {
  if (book.open > 0 || (book.status !== "RUNNING" && book.status !== "STOPPING")) return;
  if (book.timedOut || (book.failed > 0 && book.status === "RUNNING")) moveRun(book, "FAILED");
  else if (book.stopped > 0) moveRun(book, "STOPPED");
  else moveRun(book, book.failed > 0 ? "FAILED" : "SUCCESS");
}

export function onRunEvent(book: Book, event: RunEvent): void {
  switch (event.kind) {
    case "stop":
      tell(book, "stop asked for", { actor: event.actor, detail: { reason: event.reason } });
      book.reason = { text: event.reason, first: false };
      return stop(book, event.graceMs);
    case "time is up":
      tell(book, "run timed out", { detail: { timeoutMs: event.timeoutMs } });
      book.timedOut = true;
      book.reason = { text: `the run took longer than its ${event.timeoutMs} ms`, first: false };
      return stop(book, event.graceMs);
    case "grace is over":
      for (const entry of book.nodes.values()) {
        if (entry.live) end(book, entry, "STOPPED", "did not stop in time, and was given up");
      }
      return settle(book);
    case "settle":
      return settle(book);
  }
}

/**
 * What does not run stops at once; what runs is asked to and has the grace period to do so. The run itself stays STOPPING
 * until a second step, even if nothing runs, so that a caller who stops a run always sees the same answer.
 */
function stop(book: Book, graceMs: number): void {
  const wasPending = book.status === "PENDING";
  for (const entry of book.nodes.values()) {
    if (!ENDED_NODE.has(entry.status) && !(entry.live && isRunning(entry.live))) {
      end(book, entry, "STOPPED", "the run was stopped before it");
    }
  }
  moveRun(book, wasPending ? "STOPPED" : "STOPPING");
  book.graceMs = wasPending ? null : graceMs;
}

/** Which nodes an event can change, itself included: those are to be read before. */
export function reach(graph: Graph, event: NodeEvent): string[] {
  const node = graph.byId.get(event.nodeId);
  if (!node) return [];
  // Behind a node that is skipped, everything may be skipped.
  const wellEnded = event.kind === "succeeded" || (event.kind === "child ended" && event.outcome.status === "SUCCESS");
  const mayBeSkipped =
    event.kind === "arrived" || event.kind === "parked"
      ? []
      : wellEnded
        ? node.children.filter(({ runWhen }) => runWhen === "one_failed")
        : [node];
  const near = wellEnded ? node.children : [];
  const all = new Set([node, ...near, ...mayBeSkipped, ...descendants(graph, mayBeSkipped)]);
  return [...all].map(({ id }) => id);
}

const DEFAULT_RETRY = { backoffMs: 1_000, factor: 2, jitter: 0.2 };
const MAX_BACKOFF_MS = 60_000;

function retryPolicy({ retry }: NodeDef): RetryPolicy {
  const { maxAttempts, backoffMs, factor, maxBackoffMs, jitter } = {
    maxAttempts: 1,
    maxBackoffMs: undefined,
    ...DEFAULT_RETRY,
    ...retry,
  };
  // A longer first wait that somebody wrote down is meant.
  const capMs = maxBackoffMs ?? Math.max(MAX_BACKOFF_MS, backoffMs);
  return { maxAttempts, baseMs: backoffMs, factor, capMs, jitter };
}
