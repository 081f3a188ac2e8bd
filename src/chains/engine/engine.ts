/**
 * The engine: applies every change of a run to its book and writes the book in one transaction. Reports of workers are
 * batched over all runs; requests of people and timers open one whole run at a time.
 */
import { CommitWith, type Db, type Queryable, type Tx } from "../../kernel/data/db.ts";
import { createGroupCommit } from "../../kernel/data/group-commit.ts";
import type { LeaseWorker } from "../../kernel/work/lease-worker.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ChainsHints, type ChainsMetrics, chainsError } from "../catalogue.ts";
import type { Dag } from "../definitions/dag.ts";
import type { Progress } from "../runs/progress.ts";
import { saveCheckpoints, secondsRunning } from "../store/history.ts";
import { type ClaimedNode, lockRuns, type NodeKey } from "../store/live.ts";
import {
  fullChain,
  insertChainRuns,
  insertDagRun,
  type NewRun,
  pickAdmissible,
  stillPending,
  stoppingRuns,
} from "../store/runs.ts";
import { satisfyWaits } from "../store/waits.ts";
import { HELD_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { Book, Live, NodeEntry } from "./book.ts";
import { type Changes, createNotifier, type Notifier, type RunsEndedListener } from "./notify.ts";
import { type HasArrived, openFresh, openLive, openWhole } from "./open-books.ts";
import { admit } from "./revive.ts";
import type { KnownRun, RunCache } from "./run-cache.ts";
import { ENDED_RUN } from "./states.ts";
import { affectedNodes, lease, type NodeEvent, onNodeEvent } from "./transition.ts";
import { writeBooks } from "./write-books.ts";

/** A run that a node starts and is parked for. */
export interface ChildStart {
  run: NewRun;
  /** The DAG of a run that belongs to no chain. */
  own?: { dag: Dag; name: string };
}

export interface Report {
  runId: string;
  event: NodeEvent;
  /** Stored for the next attempt, if there is one. */
  checkpoint?: unknown;
  /** Started in the same transaction, if the node is parked for it. */
  child?: ChildStart;
}

export interface Engine {
  /** An event of a node, from a worker, a timer or a child run. Returns whether it counted; resolves after COMMIT. */
  report(report: Report): Promise<boolean>;
  /**
   * Opens a whole run under its lock, passes the book to `change`, and writes the difference unless that returns `dry`.
   * Undefined if there is no such run, or no longer.
   */
  change<T>(runId: string, change: (book: Book) => Changed<T>): Promise<T | undefined>;
  /**
   * Inserts runs, and admits them in the same transaction if their chain has no limit and they are not too large. The others
   * stay PENDING. Returns for each whether it was inserted.
   */
  start(runs: readonly NewRun[]): Promise<boolean[]>;
  /** Admits PENDING runs, up to the limits of their chains; returns how many. */
  admit(limit: number): Promise<number>;
  onEndCommitted: Notifier["onEndCommitted"];
  /** Lets the worker of this process run nodes that its reports make ready, without a claim. */
  setLocalWorker(worker: LocalWorker): void;
  drain(): Promise<void>;
}

export interface Changed<T> {
  answer: T;
  /** Nothing is written. */
  dry?: boolean;
  /** Further writes in the same transaction. */
  also?: (tx: Queryable) => Promise<void>;
}

/** The worker of this process, which can adopt nodes: run them without a claim. */
export interface LocalWorker extends Pick<LeaseWorker<ClaimedNode>, "reserve" | "adopt" | "answerLost"> {
  session(): string;
  /** This process, as people see it. */
  name: string;
}

export interface EngineDeps {
  db: Db;
  wake: Wake;
  hints: ChainsHints;
  progress: Progress;
  metrics: ChainsMetrics;
  runCache: RunCache;
  hasArrived: HasArrived;
  runsEnded: RunsEndedListener | undefined;
  random: () => number;
  log: ServiceLog;
}

/**
 * Reports of one run use one lane, since in two they would wait for each other at the run's lock. With two lanes, one batch is
 * read while the other is written.
 */
const REPORT_LANES = 2;
const REPORTS_AT_ONCE = 500;
const REPORTS_WAITING_MAX = 100_000;
/** Nodes admitted in one transaction; building more books would block the process for seconds. */
const NODES_ADMITTED_MAX = 20_000;
const RUNS_READ_AT_ONCE = 50;
/** Runs that are started together are admitted at once up to this many nodes: the caller of a start waits for it. */
const NODES_STARTED_MAX = 2_000;
/** Nodes that a process adopts of the runs that it has just admitted; the rest is left for claims by any process. */
const ADOPTED_AT_ADMISSION_MAX = 100;

/** Books that a transaction has changed and is about to write. */
interface Draft<Answer> extends Changes {
  /** Up to this many nodes that became ready are leased to the worker of this process. */
  adoptMax: number;
  /** Returned to the caller after the commit. */
  answer: Answer;
}

export function createEngine(deps: EngineDeps): Engine {
  const { db, wake, hints, runCache, hasArrived, random } = deps;
  let localWorker: LocalWorker | undefined;
  const notifier = createNotifier(deps);

  const reportLanes = Array.from({ length: REPORT_LANES }, () =>
    createGroupCommit<Report, boolean>({
      identity: keyOf,
      write: writeReports,
      itemsMax: REPORTS_AT_ONCE,
      yieldsBetweenBatches: true,
      waitingMax: REPORTS_WAITING_MAX,
    }),
  );

  async function writeReports(batch: readonly Report[]): Promise<boolean[]> {
    const runIds = [...new Set(batch.map(({ runId }) => runId))];
    const known = await runCache.get(db, runIds);
    return writeAndAdopt((tx) => draftOf(tx, batch, known));
  }

  /** Writes a draft in one transaction; the worker of this process adopts nodes that became ready by it. */
  async function writeAndAdopt<Answer>(draft: (tx: Tx) => Promise<Draft<Answer>>): Promise<Answer> {
    let reserved = 0;
    let leased: ClaimedNode[] = [];
    try {
      return await db.tx(async (tx) => {
        leased = []; // Of an attempt that was rolled back.
        const { books, known, adoptMax, answer } = await draft(tx);
        if (books.length === 0) return answer;
        const ready = becameReady(books, adoptMax);
        // A transaction that is retried keeps the slots that it has reserved.
        if (ready.length > reserved) reserved += localWorker?.reserve(ready.length - reserved) ?? 0;
        for (const [book, entry, live] of ready.slice(0, reserved))
          lease(book, entry, live, localWorker?.session() ?? "");
        const written = writeBooks(tx, books, localWorker?.name ?? null);
        await notifier.notify(tx, { books, known }, written);
        // The commit is sent together with the last statement, without waiting for its result.
        return new CommitWith(
          written.then((result) => {
            leased = result.leased;
            return answer;
          }),
        );
      });
    } catch (error) {
      leased = [];
      if (reserved > 0) localWorker?.answerLost();
      throw error;
    } finally {
      localWorker?.adopt(leased, reserved);
    }
  }

  async function draftOf(
    tx: Tx,
    batch: readonly Report[],
    known: ReadonlyMap<string, KnownRun>,
  ): Promise<Draft<boolean[]>> {
    const continued = batch.flatMap((report) => continuedChild(report) ?? []);
    const open = await openLive(tx, keysOf(batch, known), known, continued);
    // Read under their locks: a child run is stopped under its lock only if no node waits for it.
    const stopping = continued.length > 0 ? await stoppingRuns(tx, continued) : NO_RUNS;
    const satisfied = await satisfiedWaits(tx, batch);
    const waits = batch.filter(({ runId, event }) => endsWait(open.get(runId), event));
    const seconds = await secondsOf(tx, waits);
    const counted = batch.map((report) => {
      const book = open.get(report.runId);
      if (!book || (report.event.kind === "arrived" && !satisfied.has(keyOf(report)))) return false;
      const isBlocked = stopping.has(continuedChild(report) ?? "");
      return onNodeEvent(book, isBlocked ? blocked(report.event) : report.event, random);
    });
    const effective = batch.filter((_, index) => counted[index]);
    const checkpoints = effective.flatMap(({ runId, event, checkpoint }) =>
      checkpoint === undefined ? [] : [{ run_id: runId, node_id: event.nodeId, checkpoint }],
    );
    await saveCheckpoints(tx, checkpoints);
    for (const { runId, event, child } of effective) {
      // In a run that is STOPPING, the node was stopped instead of parked.
      if (child && open.get(runId)?.nodes.get(event.nodeId)?.live?.state === "parked") {
        await startChild(tx, child);
        hints.changed(tx, "run", child.run.run_id);
      }
    }
    tx.afterCommit(() => {
      for (const report of waits)
        if (effective.includes(report)) observeWait(report, seconds.get(keyOf(report)), known);
      if (effective.some(({ event }) => event.kind === "parked")) wake.hint(TIMER_TOPIC);
      // Events that did not count locked rows for a moment, and a claim may have skipped them.
      if (effective.length < batch.length) wake.hint(READY_TOPIC);
    });
    // As many as it has just ended; other ready nodes are left for claims by any process.
    const adoptMax = effective.filter(({ event }) => event.kind === "succeeded" || event.kind === "skipped").length;
    return { books: [...open.values()], known, adoptMax, answer: counted };
  }

  function observeWait(
    { runId, event }: Report,
    seconds: number | undefined,
    known: ReadonlyMap<string, KnownRun>,
  ): void {
    const type = known.get(runId)?.graph.byId.get(event.nodeId)?.def.type;
    if (type === undefined || seconds === undefined) return;
    const outcome = event.kind === "child ended" && event.outcome.status === "SUCCESS" ? "succeeded" : "failed";
    deps.metrics.observe("millrace_chains_node_seconds", { type, outcome }, seconds);
  }

  /** Opens runs that have never run, and admits them. */
  async function admitFresh(tx: Queryable, known: ReadonlyMap<string, KnownRun>): Promise<Book[]> {
    const books = await openFresh(tx, [...known.values()], hasArrived);
    for (const book of books) admit(book);
    return books;
  }

  return {
    report: (report) => (reportLanes[laneOf(report)] as (typeof reportLanes)[number]).add(report),

    async start(newRuns) {
      const started = await writeAndAdopt(async (tx) => {
        const made = await insertChainRuns(tx, newRuns);
        runCache.add(made);
        const known = await runCache.get(
          tx,
          made.filter(({ has_limit }) => !has_limit).map(({ run_id }) => run_id),
        );
        let room = NODES_STARTED_MAX;
        for (const [runId, { graph }] of known) {
          if (graph.nodes.length <= room) room -= graph.nodes.length;
          else known.delete(runId);
        }
        // They need no lock: no other transaction sees them before the commit. A limit set meanwhile applies to later runs.
        const books = await admitFresh(tx, known);
        if (books.length < made.length) tx.afterCommit(() => wake.hint(TIMER_TOPIC));
        const answer = new Set(made.map(({ run_id }) => run_id));
        hints.changed(tx, "run", answer);
        return { books, known, adoptMax: ADOPTED_AT_ADMISSION_MAX, answer };
      });
      return newRuns.map(({ run_id }) => started.has(run_id));
    },

    async change(runId, change) {
      const known = (await runCache.get(db, [runId])).get(runId);
      if (!known) return undefined;
      return db.tx(async (tx) => {
        await lockRuns(tx, [runId]);
        const open = await openWhole(tx, known, hasArrived);
        if (!open) {
          runCache.forget(runId);
          return undefined;
        }
        const changed = change(open);
        tx.afterCommit(() => {
          // A claim meanwhile has skipped the nodes that were locked.
          wake.hint(READY_TOPIC);
          wake.hint(READY_IN_POOL_TOPIC);
          if (!changed.dry) wake.hint(HELD_TOPIC); // A person or a timer may have revoked leases.
        });
        await refuseIfFull(tx, open, known);
        if (changed.dry) return changed.answer;
        const written = writeBooks(tx, [open], null);
        await notifier.notify(tx, { books: [open], known: new Map([[runId, known]]) }, written);
        await written;
        await changed.also?.(tx);
        return changed.answer;
      });
    },

    admit: (limit) =>
      writeAndAdopt(async (tx) => {
        const picked = await pickAdmissible(tx, limit);
        await lockRuns(tx, picked);
        const known = new Map<string, KnownRun>();
        const pending = picked.length > 0 ? await stillPending(tx, picked) : [];
        let nodes = 0;
        while (nodes < NODES_ADMITTED_MAX && known.size < pending.length) {
          const some = pending.slice(known.size, known.size + RUNS_READ_AT_ONCE);
          for (const [runId, run] of await runCache.get(tx, some)) {
            if (nodes >= NODES_ADMITTED_MAX) break;
            nodes += run.graph.nodes.length;
            known.set(runId, run);
          }
        }
        const books = await admitFresh(tx, known);
        return { books, known, adoptMax: ADOPTED_AT_ADMISSION_MAX, answer: books.length };
      }),

    onEndCommitted: notifier.onEndCommitted,
    setLocalWorker(worker) {
      localWorker = worker;
    },
    drain: async () => void (await Promise.all(reportLanes.map((lane) => lane.drain()))),
  };
}

const NO_RUNS: ReadonlySet<string> = new Set();

/** The child run of an earlier attempt that the node goes on with. */
function continuedChild({ event, child }: Report): string | undefined {
  return event.kind === "parked" && !child ? event.childRunId : undefined;
}

function blocked(event: NodeEvent): NodeEvent {
  return event.kind === "parked" ? { ...event, kind: "blocked" } : event;
}

/** The end of a run's id is random. */
function laneOf({ runId }: Report): number {
  return Number.parseInt(runId.slice(-2), 16) % REPORT_LANES;
}

/** The run that a parked node waits for has ended, or took too long. */
function endsWait(book: Book | undefined, { kind, nodeId }: NodeEvent): boolean {
  const isEnd = kind === "child ended" || kind === "child timed out";
  return isEnd && book?.nodes.get(nodeId)?.live?.state === "parked";
}

/** By `keyOf`, how long the nodes of these reports have been running. */
async function secondsOf(tx: Queryable, reports: readonly Report[]): Promise<ReadonlyMap<string, number>> {
  if (reports.length === 0) return new Map();
  const keys = reports.map(({ runId, event }) => ({ run_id: runId, node_id: event.nodeId }));
  const rows = await secondsRunning(tx, keys);
  return new Map(rows.map(({ run_id, node_id, seconds }) => [`${run_id}/${node_id}`, seconds]));
}

function keyOf({ runId, event }: Report): string {
  return `${runId}/${event.nodeId}`;
}

/** The nodes that a batch can change. */
function keysOf(batch: readonly Report[], known: ReadonlyMap<string, KnownRun>): NodeKey[] {
  const keys = new Map<string, NodeKey>();
  for (const report of batch) {
    const { runId, event } = report;
    const run = known.get(runId);
    const largest = continuedChild(report) === undefined ? event : blocked(event);
    for (const nodeId of run ? affectedNodes(run.graph, largest) : []) {
      keys.set(`${runId}/${nodeId}`, { run_id: runId, node_id: nodeId });
    }
  }
  return [...keys.values()];
}

async function satisfiedWaits(tx: Queryable, batch: readonly Report[]): Promise<Set<string>> {
  const waits = batch.flatMap(({ runId, event }) =>
    event.kind === "arrived" ? [{ run_id: runId, node_id: event.nodeId, table_name: event.table }] : [],
  );
  const satisfied = waits.length > 0 ? await satisfyWaits(tx, waits) : [];
  return new Set(satisfied.map(({ run_id, node_id }) => `${run_id}/${node_id}`));
}

/** In the transaction that parks the node for it. */
async function startChild(tx: Queryable, { run, own }: ChildStart): Promise<void> {
  if (own) await insertDagRun(tx, run, own.dag, own.name);
  else await insertChainRuns(tx, [run]);
}

/** A revived run counts toward `maxActiveRuns` of its chain like any other, unless it is a child run. */
async function refuseIfFull(tx: Queryable, { was, status }: Book, { facts }: KnownRun): Promise<void> {
  const revived = ENDED_RUN.has(was.status) && status === "RUNNING";
  if (!revived || facts.chain_id === null || facts.parent_run_id !== null) return;
  const full = await fullChain(tx, facts.chain_id);
  if (full) throw chainsError("CHAIN_FULL", full);
}

/** Nodes that became ready and may be adopted. Nodes in pools must be counted, so they wait for a claim. */
function becameReady(books: readonly Book[], limit: number): [Book, NodeEntry, Live][] {
  const ready: [Book, NodeEntry, Live][] = [];
  for (const book of books) {
    for (const entry of book.nodes.values()) {
      if (ready.length >= limit) return ready;
      const { live, was, node } = entry;
      if (live?.state !== "ready" || (was.live !== null && was.live.state !== "waiting")) continue;
      if (node.def.pool === undefined) ready.push([book, entry, live]);
    }
  }
  return ready;
}
