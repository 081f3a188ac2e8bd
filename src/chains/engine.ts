/**
 * The engine: brings every change to a run through the transition function and writes it in one transaction. What workers
 * report is gathered into batches over all runs; what people and timers ask for goes run by run, with the whole run on the
 * desk. After the commit it tells those who wait: workers, watchers, and the run that waits for this one.
 */
import { type Db, Lastly, type Queryable } from "../kernel/db.ts";
import { ApiError } from "../kernel/errors.ts";
import { createGroupCommit } from "../kernel/group-commit.ts";
import { OUTBOX_TOPIC } from "../kernel/outbox.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";
import type { Wake } from "../kernel/wake.ts";
import type { Book } from "./book.ts";
import type { Dag } from "./dag.ts";
import { type HasArrived, openFresh, openLive, openWhole } from "./open-books.ts";
import type { Progress } from "./progress.ts";
import { admit } from "./revive.ts";
import type { KnownRun, RunCache } from "./run-cache.ts";
import { ENDED_RUN, type RunStatus } from "./states.ts";
import { saveCheckpoints } from "./store/history.ts";
import { type ClaimedNode, lockRuns, type NodeKey } from "./store/live.ts";
import { fullChain, insertChainRuns, insertDagRun, type NewRun, pickAdmissible, stillPending } from "./store/runs.ts";
import { meetWaits } from "./store/waits.ts";
import { LET_GO_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "./topics.ts";
import { type NodeEvent, onNodeEvent, reach, take } from "./transition.ts";
import { writeBooks } from "./write-books.ts";

/** A run that a node starts and then waits for. */
export interface ChildStart {
  run: NewRun;
  /** For one without a chain. */
  own?: { dag: Dag; name: string };
}

export interface Report {
  runId: string;
  event: NodeEvent;
  /** For the next attempt, if it comes to that. */
  checkpoint?: unknown;
  /** Made in the same transaction, if the node is parked for it. */
  child?: ChildStart;
}

export interface Engine {
  /** What a worker, a timer or another run has to say about a node. Answers whether it counted; resolves after COMMIT. */
  report(report: Report): Promise<boolean>;
  /** Opens a whole run under its lock, lets `change` work on it, and writes what it changed unless it answers `dry`. */
  change<T>(runId: string, change: (book: Book) => Changed<T>): Promise<T | undefined>;
  /** Turns runs that wait into work, as far as their chains have room; answers how many. */
  admit(limit: number): Promise<number>;
  /** Called with each run that ended, after the commit. */
  onEnded(listener: (known: KnownRun, status: RunStatus) => void): void;
  /** Lets a worker go on with what its reports make ready, without a claim in between. */
  handOverTo(taker: Taker): void;
  drain(): Promise<void>;
}

export interface Changed<T> {
  answer: T;
  /** It was only tried: nothing is written. */
  dry?: boolean;
  /** Further writes of the same transaction. */
  also?: (tx: Queryable) => Promise<void>;
}

/** A worker of this process that may be given nodes directly. */
export interface Taker {
  session(): string;
  /** This process, for people. */
  name: string;
  /** How many nodes it can take now; it keeps room for as many as it says, until `take` is called. */
  reserve(wanted: number): number;
  take(nodes: ClaimedNode[], reserved: number): void;
  /** The answer was lost: nodes may have become its own without its knowing. */
  unsure(): void;
}

export interface EngineDeps {
  db: Db;
  wake: Wake;
  progress: Progress;
  metrics: Metrics;
  runs: RunCache;
  hasArrived: HasArrived;
  tellEnded?: TellEnded;
  random: () => number;
}

/** Tells the world, in the transaction, of runs that end. */
export interface TellEnded {
  /** How they must end to be told of. */
  of: ReadonlySet<RunStatus>;
  tell(tx: Queryable, ended: readonly EndedRun[]): Promise<void>;
}

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

const REPORTS_AT_ONCE = 500;
const REPORTS_WAITING_MAX = 100_000;
/** As many nodes are admitted in one transaction; building more of them would block the process for seconds. */
const NODES_ADMITTED_MAX = 20_000;
const RUNS_READ_AT_ONCE = 50;
/** What a process begins of the runs that it has admitted; the rest is for whoever is free. */
const ADMITTED_TO_ONESELF_MAX = 100;

/**
 * Writes books and leases up to so many nodes that became ready to the worker of this process. Nothing can be read or written
 * after it: the transaction is committed without waiting for its answer.
 */
type WriteAndLease = (books: readonly Book[], known: ReadonlyMap<string, KnownRun>, nodesMax: number) => Promise<void>;

export function createEngine(deps: EngineDeps): Engine {
  const { db, wake, progress, metrics, runs, hasArrived, tellEnded, random } = deps;
  let taker: Taker | undefined;
  const endedListeners: ((known: KnownRun, status: RunStatus) => void)[] = [];

  const reports = createGroupCommit<Report, boolean>({
    identity: keyOf,
    write: writeReports,
    itemsMax: REPORTS_AT_ONCE,
    waitingMax: REPORTS_WAITING_MAX,
  });

  async function writeReports(batch: readonly Report[]): Promise<boolean[]> {
    const runIds = [...new Set(batch.map(({ runId }) => runId))];
    const known = await runs.get(db, runIds);
    const { books, counted } = await handingOver((tx, writeAndLease) => writeBatch(tx, batch, known, writeAndLease));
    if (batch.some(({ event }, index) => event.kind === "parked" && counted[index])) wake.hint(TIMER_TOPIC);
    // What did not count has locked rows for a moment, and a claim may have passed over them.
    if (counted.includes(false)) wake.hint(READY_TOPIC);
    afterCommit(books, known);
    return counted;
  }

  /** A transaction that writes books and leases nodes which became ready by it to the worker of this process. */
  async function handingOver<T>(work: (tx: Queryable, writeAndLease: WriteAndLease) => Promise<T>): Promise<T> {
    let reserved = 0;
    let taken: ClaimedNode[] = [];
    try {
      return await db.tx(async (tx) => {
        let written: Promise<ClaimedNode[]> = Promise.resolve([]);
        const answer = await work(tx, async (books, known, nodesMax) => {
          // The transaction may be repeated, and keeps the room that it has.
          if (nodesMax > reserved) reserved += taker?.reserve(nodesMax - reserved) ?? 0;
          if (taker) handOver(books, Math.min(reserved, nodesMax), taker.session());
          written = writeBooks(tx, books, taker?.name ?? null);
          await tellOf(tx, books, known, written);
        });
        return new Lastly(
          written.then((nodes) => {
            taken = nodes;
            return answer;
          }),
        );
      });
    } catch (error) {
      taken = [];
      if (reserved > 0) taker?.unsure();
      throw error;
    } finally {
      taker?.take(taken, reserved);
    }
  }

  async function writeBatch(
    tx: Queryable,
    batch: readonly Report[],
    known: ReadonlyMap<string, KnownRun>,
    writeAndLease: WriteAndLease,
  ) {
    const open = await openLive(tx, keysOf(batch, known), known);
    const met = await takeArrivals(tx, batch);
    const counted = batch.map((report) => {
      const book = open.get(report.runId);
      if (!book || (report.event.kind === "arrived" && !met.has(keyOf(report)))) return false;
      return onNodeEvent(book, report.event, random);
    });
    const effective = batch.filter((_, index) => counted[index]);
    const checkpoints = effective.flatMap(({ runId, event, checkpoint }) =>
      checkpoint === undefined ? [] : [{ run_id: runId, node_id: event.nodeId, checkpoint }],
    );
    await saveCheckpoints(tx, checkpoints);
    for (const { runId, event, child } of effective) {
      // Not in a run that is being stopped, where it was not parked after all.
      if (child && open.get(runId)?.nodes.get(event.nodeId)?.live?.state === "parked") await startChild(tx, child);
    }
    const books = [...open.values()];
    // As many as it has just ended: what else becomes ready is for whoever is free.
    await writeAndLease(
      books,
      known,
      effective.filter(({ event }) => event.kind === "succeeded" || event.kind === "skipped").length,
    );
    return { books, counted };
  }

  function isToldOf({ status, was }: Book): boolean {
    return status !== was.status && (tellEnded?.of.has(status) ?? false);
  }

  /** Once they are written: what is told of a run that ended is read from its rows. */
  async function tellOf(
    tx: Queryable,
    books: readonly Book[],
    known: ReadonlyMap<string, KnownRun>,
    written: Promise<unknown>,
  ): Promise<void> {
    const ended = books.flatMap((book) => (isToldOf(book) ? endOf(book, known.get(book.runId)) : []));
    if (ended.length === 0 || !tellEnded) return;
    await written;
    await tellEnded.tell(tx, ended);
  }

  function afterCommit(books: readonly Book[], known: ReadonlyMap<string, KnownRun>): void {
    const topics = new Set<string>();
    for (const book of books) addTopics(book, topics);
    for (const topic of topics) wake.hint(topic);
    progress.changed(books.map(({ runId }) => runId));
    if (books.some(isToldOf)) wake.hint(OUTBOX_TOPIC);
    for (const book of books) {
      const run = known.get(book.runId);
      if (!run || !ENDED_RUN.has(book.status) || ENDED_RUN.has(book.was.status)) continue;
      metrics.count("millrace_chains_runs_total", { outcome: OUTCOMES[book.status] ?? book.status });
      for (const listener of endedListeners) listener(run, book.status);
    }
  }

  return {
    report: (report) => reports.add(report),

    async change(runId, change) {
      const known = (await runs.get(db, [runId])).get(runId);
      if (!known) return undefined;
      const { answer, book } = await db.tx(async (tx) => {
        await lockRuns(tx, [runId]);
        const open = await openWhole(tx, known, hasArrived);
        const changed = change(open);
        if (changed.dry) return { answer: changed.answer, book: undefined };
        await refuseIfFull(tx, open, known);
        const written = writeBooks(tx, [open], null);
        await tellOf(tx, [open], new Map([[runId, known]]), written);
        await written;
        await changed.also?.(tx);
        return { answer: changed.answer, book: open };
      });
      // A claim that came meanwhile has passed over the nodes that were locked.
      wake.hint(READY_TOPIC);
      wake.hint(READY_IN_POOL_TOPIC);
      if (book) {
        wake.hint(LET_GO_TOPIC); // A person or a timer may have taken nodes away from their workers.
        afterCommit([book], new Map([[runId, known]]));
      }
      return answer;
    },

    async admit(limit) {
      const admission = await handingOver(async (tx, writeAndLease) => {
        const picked = await pickAdmissible(tx, limit);
        await lockRuns(tx, picked);
        const books: Book[] = [];
        const known = new Map<string, KnownRun>();
        const pending = picked.length > 0 ? await stillPending(tx, picked) : [];
        let nodes = 0;
        while (nodes < NODES_ADMITTED_MAX && books.length < pending.length) {
          const some = pending.slice(books.length, books.length + RUNS_READ_AT_ONCE);
          for (const [runId, run] of await runs.get(tx, some)) {
            if (nodes >= NODES_ADMITTED_MAX) break;
            nodes += run.graph.nodes.length;
            known.set(runId, run);
            const book = await openFresh(tx, run, hasArrived);
            admit(book);
            books.push(book);
          }
        }
        if (books.length > 0) await writeAndLease(books, known, ADMITTED_TO_ONESELF_MAX);
        return { books, known };
      });
      const { length: admitted } = admission.books;
      metrics.count("millrace_chains_runs_total", { outcome: "started" }, admitted);
      afterCommit(admission.books, admission.known);
      return admitted;
    },

    onEnded: (listener) => void endedListeners.push(listener),
    handOverTo(worker) {
      taker = worker;
    },
    drain: () => reports.drain(),
  };
}

const OUTCOMES: Partial<Record<RunStatus, string>> = { SUCCESS: "succeeded", FAILED: "failed", STOPPED: "stopped" };

function keyOf({ runId, event }: Report): string {
  return `${runId}/${event.nodeId}`;
}

/** The nodes that a batch can change. */
function keysOf(batch: readonly Report[], known: ReadonlyMap<string, KnownRun>): NodeKey[] {
  const keys = new Map<string, NodeKey>();
  for (const { runId, event } of batch) {
    const run = known.get(runId);
    for (const nodeId of run ? reach(run.graph, event) : []) {
      keys.set(`${runId}/${nodeId}`, { run_id: runId, node_id: nodeId });
    }
  }
  return [...keys.values()];
}

async function takeArrivals(tx: Queryable, batch: readonly Report[]): Promise<Set<string>> {
  const waits = batch.flatMap(({ runId, event }) =>
    event.kind === "arrived" ? [{ run_id: runId, node_id: event.nodeId, table_name: event.table }] : [],
  );
  const met = waits.length > 0 ? await meetWaits(tx, waits) : [];
  return new Set(met.map(({ run_id, node_id }) => `${run_id}/${node_id}`));
}

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

/** In the transaction that parks the node which waits for it. */
async function startChild(tx: Queryable, { run, own }: ChildStart): Promise<void> {
  if (own) await insertDagRun(tx, run, own.dag, own.name);
  else await insertChainRuns(tx, [run]);
}

/** A run that comes back to life takes up its chain's room like any other, unless another run waits for it. */
async function refuseIfFull(tx: Queryable, { was, status }: Book, { facts }: KnownRun): Promise<void> {
  const revived = ENDED_RUN.has(was.status) && status === "RUNNING";
  if (!revived || facts.chain_id === null || facts.parent_run_id !== null) return;
  const full = await fullChain(tx, facts.chain_id);
  if (full) throw new ApiError("CHAIN_FULL", full);
}

/** Leases nodes that have just become ready to the worker that made them so. Nodes in pools must be counted, so they wait. */
function handOver(books: readonly Book[], limit: number, session: string): void {
  let left = limit;
  for (const book of books) {
    for (const entry of book.nodes.values()) {
      if (left === 0) return;
      const { live, was, node } = entry;
      const becameReady = live?.state === "ready" && (was.live === null || was.live.state === "waiting");
      if (!becameReady || node.def.pool !== undefined) continue;
      take(book, entry, live, session);
      left -= 1;
    }
  }
}

/** Whom a change concerns. */
function addTopics({ nodes, status, was }: Book, topics: Set<string>): void {
  for (const { live, was: before, node } of nodes.values()) {
    const [from, to] = [before.live?.state, live?.state];
    if (from === to) continue;
    const inPool = node.def.pool !== undefined;
    if (to === "ready") topics.add(inPool ? READY_IN_POOL_TOPIC : READY_TOPIC);
    if (from === "leased" && inPool) topics.add(READY_IN_POOL_TOPIC); // There is room for another.
    if (to === "delayed" || to === "parked" || from === "parked") topics.add(TIMER_TOPIC);
  }
  if (status === was.status) return;
  if (status === "STOPPING") topics.add(LET_GO_TOPIC).add(TIMER_TOPIC);
  if (ENDED_RUN.has(status)) topics.add(TIMER_TOPIC); // There may be room for another run.
}
