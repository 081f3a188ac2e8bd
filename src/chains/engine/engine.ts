/**
 * The engine: brings every change to a run through the transition function and writes it in one transaction. What workers
 * report is gathered into batches over all runs; what people and timers ask for goes run by run, with the whole run on the
 * desk.
 */
import { type Db, Lastly, type Queryable, type Tx } from "../../kernel/data/db.ts";
import { createGroupCommit } from "../../kernel/data/group-commit.ts";
import type { LeaseWorker } from "../../kernel/work/lease-worker.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ChainsMetrics, chainsError } from "../catalogue.ts";
import type { Dag } from "../definitions/dag.ts";
import type { Progress } from "../runs/progress.ts";
import { saveCheckpoints } from "../store/history.ts";
import { type ClaimedNode, lockRuns, type NodeKey } from "../store/live.ts";
import { fullChain, insertChainRuns, insertDagRun, type NewRun, pickAdmissible, stillPending } from "../store/runs.ts";
import { meetWaits } from "../store/waits.ts";
import { LET_GO_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { Book, Live, NodeEntry } from "./book.ts";
import { type HasArrived, openFresh, openLive, openWhole } from "./open-books.ts";
import { admit } from "./revive.ts";
import type { KnownRun, RunCache } from "./run-cache.ts";
import { ENDED_RUN } from "./states.ts";
import { type Changes, createTeller, type TellEnded, type Teller } from "./tell.ts";
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
  /**
   * Makes runs, and turns them into work in the same transaction if their chain has no limit and they are not too large. The
   * others wait to be admitted. Answers for each whether it was made.
   */
  start(runs: readonly NewRun[]): Promise<boolean[]>;
  /** Turns runs that wait into work, as far as their chains have room; answers how many. */
  admit(limit: number): Promise<number>;
  onEnded: Teller["onEnded"];
  /** Lets a worker run what its reports make ready, without a claim in between. */
  handOverTo(worker: Adopter): void;
  drain(): Promise<void>;
}

export interface Changed<T> {
  answer: T;
  /** It was only tried: nothing is written. */
  dry?: boolean;
  /** Further writes of the same transaction. */
  also?: (tx: Queryable) => Promise<void>;
}

/** A worker of this process that runs nodes without a claim in between. */
export interface Adopter extends Pick<LeaseWorker<ClaimedNode>, "reserve" | "adopt" | "answerLost"> {
  session(): string;
  /** This process, for people. */
  name: string;
}

export interface EngineDeps {
  db: Db;
  wake: Wake;
  progress: Progress;
  metrics: ChainsMetrics;
  runs: RunCache;
  hasArrived: HasArrived;
  tellEnded: TellEnded | undefined;
  random: () => number;
}

/**
 * Reports of one run go through one lane, since they would only wait for the run's lock. With two lanes, one batch is read and
 * worked on while the other is written.
 */
const REPORT_LANES = 2;
const REPORTS_AT_ONCE = 500;
const REPORTS_WAITING_MAX = 100_000;
/** As many nodes are admitted in one transaction; building more of them would block the process for seconds. */
const NODES_ADMITTED_MAX = 20_000;
const RUNS_READ_AT_ONCE = 50;
/** What is started together becomes work at once up to this many nodes: whoever starts a run waits for it. */
const NODES_STARTED_MAX = 2_000;
/** What a process begins of the runs that it has admitted; the rest is for whoever is free. */
const ADOPTED_AT_ADMISSION_MAX = 100;

/** Books that a transaction has changed and is about to write. */
interface Draft<Answer> extends Changes {
  /** Up to so many nodes that became ready are leased to the worker of this process. */
  adoptMax: number;
  /** What the caller is answered after the commit. */
  answer: Answer;
}

export function createEngine(deps: EngineDeps): Engine {
  const { db, wake, runs, hasArrived, random } = deps;
  let adopter: Adopter | undefined;
  const teller = createTeller(deps);

  const reportLanes = Array.from({ length: REPORT_LANES }, () =>
    createGroupCommit<Report, boolean>({
      identity: keyOf,
      write: writeReports,
      itemsMax: REPORTS_AT_ONCE,
      gathersAll: true,
      waitingMax: REPORTS_WAITING_MAX,
    }),
  );

  async function writeReports(batch: readonly Report[]): Promise<boolean[]> {
    const runIds = [...new Set(batch.map(({ runId }) => runId))];
    const known = await runs.get(db, runIds);
    return writeAndAdopt((tx) => draftOf(tx, batch, known));
  }

  /** One transaction that writes a draft; nodes that became ready by it go to the worker of this process without a claim. */
  async function writeAndAdopt<Answer>(draft: (tx: Tx) => Promise<Draft<Answer>>): Promise<Answer> {
    let reserved = 0;
    let leased: ClaimedNode[] = [];
    try {
      return await db.tx(async (tx) => {
        const { books, known, adoptMax, answer } = await draft(tx);
        if (books.length === 0) return answer;
        const ready = becameReady(books, adoptMax);
        // A transaction that is repeated keeps the slots that it has reserved.
        if (ready.length > reserved) reserved += adopter?.reserve(ready.length - reserved) ?? 0;
        for (const [book, entry, live] of ready.slice(0, reserved)) take(book, entry, live, adopter?.session() ?? "");
        const written = writeBooks(tx, books, adopter?.name ?? null);
        await teller.inTransaction(tx, { books, known }, written);
        // Committed together with the last statement, without waiting for its answer in between.
        return new Lastly(
          written.then((nodes) => {
            leased = nodes;
            return answer;
          }),
        );
      });
    } catch (error) {
      leased = [];
      if (reserved > 0) adopter?.answerLost();
      throw error;
    } finally {
      adopter?.adopt(leased, reserved);
    }
  }

  async function draftOf(
    tx: Tx,
    batch: readonly Report[],
    known: ReadonlyMap<string, KnownRun>,
  ): Promise<Draft<boolean[]>> {
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
    tx.afterCommit(() => {
      if (effective.some(({ event }) => event.kind === "parked")) wake.hint(TIMER_TOPIC);
      // What did not count has locked rows for a moment, and a claim may have passed over them.
      if (effective.length < batch.length) wake.hint(READY_TOPIC);
    });
    // As many as it has just ended: what else becomes ready is for whoever is free.
    const adoptMax = effective.filter(({ event }) => event.kind === "succeeded" || event.kind === "skipped").length;
    return { books: [...open.values()], known, adoptMax, answer: counted };
  }

  /** Opens runs that nobody has touched yet and turns them into work. */
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
        runs.learn(made);
        const known = await runs.get(
          tx,
          made.filter(({ has_limit }) => !has_limit).map(({ run_id }) => run_id),
        );
        let room = NODES_STARTED_MAX;
        for (const [runId, { graph }] of known) {
          if (graph.nodes.length <= room) room -= graph.nodes.length;
          else known.delete(runId);
        }
        // They need no lock: nobody knows of them before the commit. A limit that their chain is given meanwhile holds for others.
        const books = await admitFresh(tx, known);
        if (books.length < made.length) tx.afterCommit(() => wake.hint(TIMER_TOPIC));
        const answer = new Set(made.map(({ run_id }) => run_id));
        return { books, known, adoptMax: ADOPTED_AT_ADMISSION_MAX, answer };
      });
      return newRuns.map(({ run_id }) => started.has(run_id));
    },

    async change(runId, change) {
      const known = (await runs.get(db, [runId])).get(runId);
      if (!known) return undefined;
      return db.tx(async (tx) => {
        await lockRuns(tx, [runId]);
        const open = await openWhole(tx, known, hasArrived);
        const changed = change(open);
        tx.afterCommit(() => {
          // A claim that came meanwhile has passed over the nodes that were locked.
          wake.hint(READY_TOPIC);
          wake.hint(READY_IN_POOL_TOPIC);
          if (!changed.dry) wake.hint(LET_GO_TOPIC); // A person or a timer may have taken nodes away from their workers.
        });
        if (changed.dry) return changed.answer;
        await refuseIfFull(tx, open, known);
        const written = writeBooks(tx, [open], null);
        await teller.inTransaction(tx, { books: [open], known: new Map([[runId, known]]) }, written);
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
          for (const [runId, run] of await runs.get(tx, some)) {
            if (nodes >= NODES_ADMITTED_MAX) break;
            nodes += run.graph.nodes.length;
            known.set(runId, run);
          }
        }
        const books = await admitFresh(tx, known);
        return { books, known, adoptMax: ADOPTED_AT_ADMISSION_MAX, answer: books.length };
      }),

    onEnded: teller.onEnded,
    handOverTo(worker) {
      adopter = worker;
    },
    drain: async () => void (await Promise.all(reportLanes.map((lane) => lane.drain()))),
  };
}

/** The end of a run's id is random. */
function laneOf({ runId }: Report): number {
  return Number.parseInt(runId.slice(-2), 16) % REPORT_LANES;
}

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
  if (full) throw chainsError("CHAIN_FULL", full);
}

/** Nodes that may go to the worker that has just made them ready. Nodes in pools must be counted, so they wait for a claim. */
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
