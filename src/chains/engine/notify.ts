/**
 * Notifications about changed runs. In the transaction: listeners for runs that end, which write outbox events. After the
 * commit: metrics, hints to workers, timers and live views in all processes, and the parent run.
 */
import type { Tx } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ChainsMetrics } from "../catalogue.ts";
import type { Progress } from "../runs/progress.ts";
import { HELD_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { Book } from "./book.ts";
import type { KnownRun } from "./run-cache.ts";
import { ENDED_RUN, type RunStatus } from "./states.ts";

export interface EndedRun {
  runId: string;
  chainId: string | null;
  name: string;
  opTime: string | null;
  status: RunStatus;
  reason: string | null;
  /** The run whose node waits for it. */
  parentRunId: string | null;
}

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
   * `written` first, because the listener reads the rows.
   */
  notify(tx: Tx, changes: Changes, written: Promise<unknown>): Promise<void>;
  /** `listener` is called with each run that ended, after the commit. */
  onEndCommitted(listener: (known: KnownRun, status: RunStatus) => void): void;
}

export function createNotifier(deps: {
  wake: Wake;
  progress: Progress;
  metrics: ChainsMetrics;
  runsEnded: RunsEndedListener | undefined;
}): Notifier {
  const { wake, progress, metrics, runsEnded } = deps;
  const endedListeners: ((known: KnownRun, status: RunStatus) => void)[] = [];

  function isListenedFor({ status, was }: Book): boolean {
    return status !== was.status && (runsEnded?.statuses.has(status) ?? false);
  }

  function afterCommit({ books, known }: Changes): void {
    const topics = new Set<string>();
    const ended: [KnownRun, RunStatus][] = [];
    for (const book of books) {
      addNodeTopics(book, topics);
      const { status, was } = book;
      const run = known.get(book.runId);
      if (!run || status === was.status) continue;
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
      tx.afterCommit(() => afterCommit(changes));
      const ended = books.flatMap((book) => (isListenedFor(book) ? endOf(book, known.get(book.runId)) : []));
      if (ended.length === 0 || !runsEnded) return;
      await written;
      await runsEnded.onRunsEnded(tx, ended);
    },

    onEndCommitted: (listener) => void endedListeners.push(listener),
  };

  function count(outcome: string): void {
    metrics.count("millrace_chains_runs_total", { outcome });
  }
}

const OUTCOMES: Partial<Record<RunStatus, string>> = { SUCCESS: "succeeded", FAILED: "failed", STOPPED: "stopped" };

function endOf({ status, reason }: Book, known: KnownRun | undefined): EndedRun[] {
  if (!known) return [];
  const { run_id, chain_id, name, op_time, parent_run_id } = known.facts;
  return [
    {
      runId: run_id,
      chainId: chain_id,
      name,
      opTime: op_time,
      status,
      reason: reason?.text ?? null,
      parentRunId: parent_run_id,
    },
  ];
}

function addNodeTopics({ nodes }: Book, topics: Set<string>): void {
  for (const { live, was: before, node } of nodes.values()) {
    const [from, to] = [before.live?.state, live?.state];
    if (from === to) continue;
    const inPool = node.def.pool !== undefined;
    if (to === "ready") topics.add(inPool ? READY_IN_POOL_TOPIC : READY_TOPIC);
    if (from === "leased" && inPool) topics.add(READY_IN_POOL_TOPIC); // A place in the pool is free.
    if (to === "delayed" || to === "parked" || from === "parked") topics.add(TIMER_TOPIC);
  }
}

function addRunTopics(status: RunStatus, { facts }: KnownRun, topics: Set<string>): void {
  if (status === "STOPPING") topics.add(HELD_TOPIC).add(TIMER_TOPIC);
  if (status === "RUNNING" && facts.run_timeout_ms !== null) topics.add(TIMER_TOPIC); // It has a deadline now.
  if (ENDED_RUN.has(status)) topics.add(TIMER_TOPIC); // There may be room for another run.
}
