/**
 * Who is told when a run has changed. In the transaction: the world, of runs that end. After the commit: workers, timers and
 * watchers, here and in other processes, and the run that waits for this one.
 */
import type { Tx } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ChainsMetrics } from "../catalogue.ts";
import type { Progress } from "../runs/progress.ts";
import { LET_GO_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
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
  /** The run that waits for it. */
  parentRunId: string | null;
}

/** Tells the world, in the transaction, of runs that end. */
export interface TellEnded {
  /** How they must end to be told of. */
  of: ReadonlySet<RunStatus>;
  tell(tx: Tx, ended: readonly EndedRun[]): Promise<void>;
}

/** Books that were open together, and what is known about their runs. */
export interface Changes {
  books: readonly Book[];
  known: ReadonlyMap<string, KnownRun>;
}

export interface Teller {
  /**
   * Tells the world in the transaction, and everyone else after its commit. Waits until the books are written if there is
   * anything to tell the world: that is read from their rows.
   */
  inTransaction(tx: Tx, changes: Changes, written: Promise<unknown>): Promise<void>;
  /** Called with each run that ended, after the commit. */
  onEnded(listener: (known: KnownRun, status: RunStatus) => void): void;
}

export function createTeller(deps: {
  wake: Wake;
  progress: Progress;
  metrics: ChainsMetrics;
  tellEnded: TellEnded | undefined;
}): Teller {
  const { wake, progress, metrics, tellEnded } = deps;
  const endedListeners: ((known: KnownRun, status: RunStatus) => void)[] = [];

  function isToldOf({ status, was }: Book): boolean {
    return status !== was.status && (tellEnded?.of.has(status) ?? false);
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
    async inTransaction(tx, changes, written) {
      const { books, known } = changes;
      tx.afterCommit(() => afterCommit(changes));
      const ended = books.flatMap((book) => (isToldOf(book) ? endOf(book, known.get(book.runId)) : []));
      if (ended.length === 0 || !tellEnded) return;
      await written;
      await tellEnded.tell(tx, ended);
    },

    onEnded: (listener) => void endedListeners.push(listener),
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
    if (from === "leased" && inPool) topics.add(READY_IN_POOL_TOPIC); // There is room for another.
    if (to === "delayed" || to === "parked" || from === "parked") topics.add(TIMER_TOPIC);
  }
}

function addRunTopics(status: RunStatus, { facts }: KnownRun, topics: Set<string>): void {
  if (status === "STOPPING") topics.add(LET_GO_TOPIC).add(TIMER_TOPIC);
  if (status === "RUNNING" && facts.run_timeout_ms !== null) topics.add(TIMER_TOPIC); // It has a deadline now.
  if (ENDED_RUN.has(status)) topics.add(TIMER_TOPIC); // There may be room for another run.
}
