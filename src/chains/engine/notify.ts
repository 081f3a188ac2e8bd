/**
 * Notifications about changed runs. In the transaction: listeners for runs that end, which write outbox events. After the
 * commit: the log of failures, metrics, hints to workers, timers and live views in all processes, and the parent run.
 */
import type { Tx } from "../../kernel/data/db.ts";
import { loggedReason } from "../../kernel/telemetry/logged-reason.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ChainsMetrics } from "../catalogue.ts";
import type { Progress } from "../runs/progress.ts";
import { HELD_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { Book } from "./book.ts";
import type { KnownRun } from "./run-cache.ts";
import { ENDED_RUN, type RunStatus } from "./states.ts";
import type { WrittenBooks } from "./write-books.ts";

export interface EndedRun {
  runId: string;
  chainId: string | null;
  name: string;
  opTime: string | null;
  /** RUNNING only for a called run that had ended and goes on. */
  status: RunStatus;
  /** As stored with the run. */
  reason: string | null;
  /** The run whose node waits for it. */
  parentRunId: string | null;
  /** What started it. */
  trigger: string;
}

/** The trigger of runs that another module has started and waits for. */
export const CALLED_TRIGGER = "arrival";

/** Called with runs that end, in the transaction that ends them. */
export interface RunsEndedListener {
  /** The statuses that it is called for. */
  statuses: ReadonlySet<RunStatus>;
  onRunsEnded(tx: Tx, ended: readonly EndedRun[]): Promise<void>;
}

/** Books that one transaction changes, and the facts and graphs of their runs. */
export interface Changes {
  books: readonly Book[];
  known: ReadonlyMap<string, KnownRun>;
}

export interface Notifier {
  /**
   * Calls the listener for ended runs in the transaction, and sends hints after its commit. If a run ends, it waits for
   * `written` first: the reason is made there, and the listener reads the rows.
   */
  notify(tx: Tx, changes: Changes, written: Promise<WrittenBooks>): Promise<void>;
  /** `listener` is called with each run that ended, after the commit. */
  onEndCommitted(listener: (known: KnownRun, status: RunStatus) => void): void;
}

export function createNotifier(deps: {
  wake: Wake;
  progress: Progress;
  metrics: ChainsMetrics;
  runsEnded: RunsEndedListener | undefined;
  log: ServiceLog;
}): Notifier {
  const { wake, progress, metrics, runsEnded, log } = deps;
  const endedListeners: ((known: KnownRun, status: RunStatus) => void)[] = [];

  function isListenedFor({ status, was }: Book, run: KnownRun | undefined): boolean {
    if (status === was.status) return false;
    const isCalled = run?.facts.trigger === CALLED_TRIGGER && (ENDED_RUN.has(status) || ENDED_RUN.has(was.status));
    return isCalled || (runsEnded?.statuses.has(status) ?? false);
  }

  function afterCommit({ books, known }: Changes, reasons: WrittenBooks["reasons"]): void {
    const topics = new Set<string>();
    const ended: [KnownRun, RunStatus][] = [];
    for (const book of books) {
      addNodeTopics(book, topics);
      const { status, was } = book;
      const run = known.get(book.runId);
      if (!run) continue;
      if (book.failed > 0 || status === "FAILED") logFailures(log, book, run, reasons.get(book.runId) ?? null);
      if (status === was.status) continue;
      addRunTopics(status, run, topics);
      if (was.status === "PENDING" && status === "RUNNING") count("started");
      if (!ENDED_RUN.has(status) || ENDED_RUN.has(was.status)) continue;
      count(OUTCOMES[status] ?? status);
      ended.push([run, status]);
    }
    for (const topic of topics) wake.hint(topic);
    progress.changed(books.map(({ runId }) => runId));
    for (const listener of endedListeners) for (const [run, status] of ended) listener(run, status);
  }

  return {
    async notify(tx, changes, written) {
      const { books, known } = changes;
      let reasons: WrittenBooks["reasons"] = new Map();
      tx.afterCommit(() => afterCommit(changes, reasons));
      const ended = books.filter((book) => isListenedFor(book, known.get(book.runId)));
      if (ended.length === 0 || !runsEnded) return;
      ({ reasons } = await written);
      await runsEnded.onRunsEnded(
        tx,
        ended.flatMap((book) => endOf(book, known.get(book.runId), reasons)),
      );
    },

    onEndCommitted: (listener) => void endedListeners.push(listener),
  };

  function count(outcome: string): void {
    metrics.count("millrace_chains_runs_total", { outcome });
  }
}

const OUTCOMES: Partial<Record<RunStatus, string>> = { SUCCESS: "succeeded", FAILED: "failed", STOPPED: "stopped" };

function endOf({ status }: Book, known: KnownRun | undefined, reasons: WrittenBooks["reasons"]): EndedRun[] {
  if (!known) return [];
  const { run_id, chain_id, name, op_time, parent_run_id, trigger } = known.facts;
  return [
    {
      runId: run_id,
      chainId: chain_id,
      name,
      opTime: op_time,
      status,
      reason: reasons.get(run_id) ?? null,
      parentRunId: parent_run_id,
      trigger,
    },
  ];
}

/** One line for each node and each run that failed for good. Their errors are stored, so secrets have been replaced in them. */
function logFailures(log: ServiceLog, { nodes, status, was }: Book, { facts }: KnownRun, reason: string | null): void {
  const { run_id: runId, chain_id: chainId, name: chain, op_time: opTime, parent_run_id: parentRunId } = facts;
  const run = { runId, chainId, chain, opTime, parentRunId };
  const cut = (text: string | null) => (text === null ? null : loggedReason(text));
  for (const { node, status: now, was: before, attempt, error } of nodes.values()) {
    if (now !== "FAILED" || before.status === "FAILED") continue;
    log.warn({ ...run, nodeId: node.id, type: node.def.type, attempt, reason: cut(error) }, "a node failed");
  }
  if (status === "FAILED" && was.status !== "FAILED") log.warn({ ...run, reason: cut(reason) }, "a run failed");
}

function addNodeTopics({ nodes }: Book, topics: Set<string>): void {
  for (const { live, was: before, node } of nodes.values()) {
    const [from, to] = [before.live?.state, live?.state];
    if (from === to) continue;
    const inPool = node.def.pool !== undefined;
    if (to === "ready") topics.add(inPool ? READY_IN_POOL_TOPIC : READY_TOPIC);
    if (from === "leased" && inPool) topics.add(READY_IN_POOL_TOPIC); // A place in the pool is free.
    if (to === "delayed" || to === "parked" || to === "blocked" || from === "parked") topics.add(TIMER_TOPIC);
  }
}

function addRunTopics(status: RunStatus, { facts }: KnownRun, topics: Set<string>): void {
  if (status === "STOPPING") topics.add(HELD_TOPIC).add(TIMER_TOPIC);
  if (status === "RUNNING" && facts.run_timeout_ms !== null) topics.add(TIMER_TOPIC); // It has a deadline now.
  if (ENDED_RUN.has(status)) topics.add(TIMER_TOPIC); // There may be room for another run.
}
