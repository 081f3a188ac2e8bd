/**
 * The engine: brings every change to a run through the transition function and writes it in one transaction. What workers
 * report is gathered into batches over all runs; what people and timers ask for goes run by run, with the whole run on the
 * desk. After the commit it tells those who wait: workers, watchers, and the run that waits for this one.
 */
import type { Db, Queryable } from "../kernel/db.ts";
import { createGroupCommit } from "../kernel/group-commit.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";
import type { Wake } from "../kernel/wake.ts";
import { type Book, enter, moveNode, openBook } from "./book.ts";
import type { Dag } from "./dag.ts";
import { admit } from "./revive.ts";
import type { KnownRun, RunCache } from "./run-cache.ts";
import { ENDED_NODE, ENDED_RUN, type RunStatus } from "./states.ts";
import { saveCheckpoints } from "./store/history.ts";
import { type ClaimedNode, type LiveRow, lockRuns, type NodeKey, readLive, readWholeLive } from "./store/live.ts";
import {
  insertChainRuns,
  insertDagRun,
  type NewRun,
  pickAdmissible,
  readNodeStatuses,
  readStatus,
  stillPending,
} from "./store/runs.ts";
import { holdArrivals, meetWaits, readWaits } from "./store/waits.ts";
import { type NodeEvent, onNodeEvent, reach } from "./transition.ts";
import { writeBooks } from "./write-books.ts";

/** Work is ready to be claimed. */
export const READY_TOPIC = "chains.ready";
export const READY_IN_POOL_TOPIC = "chains.ready_in_pool";
/** A run waits to be admitted, or something has become due. */
export const TIMER_TOPIC = "chains.timer";
/** Something changed that a live view shows. */
export const PROGRESS_TOPIC = "chains.progress";
/** A run is stopping, or a node was taken away from its worker. */
export const LET_GO_TOPIC = "chains.let_go";

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
  /** Made in the same transaction, if the event counts: the run that the node is parked for. */
  child?: ChildStart;
}

/** Which of the tables that nodes wait for are here already. The module `arrivals` answers it. */
export type HasArrived = (db: Queryable, tables: readonly string[], opTime: string) => Promise<ReadonlySet<string>>;

export interface Engine {
  /** What a worker, a timer or another run has to say about a node. Answers whether it counted; resolves after COMMIT. */
  report(report: Report): Promise<boolean>;
  /** Opens a whole run under its lock, lets `change` work on it, and writes what it changed unless it answers `dry`. */
  change<T>(runId: string, change: (book: Book, known: KnownRun) => Changed<T>): Promise<T | undefined>;
  /** Turns runs that wait into work, as far as their chains have room. */
  admit(limit: number): Promise<number>;
  /** Called with each run that ended, after the commit. */
  onEnded(listener: (known: KnownRun, status: RunStatus) => void): void;
  /** Lets a worker go on with what its reports make ready, without a claim in between. */
  handOverTo(taker: Taker): void;
  drain(): Promise<void>;
}

/** A worker of this process that may be given nodes directly. */
export interface Taker {
  session(): string;
  /** This process, for people. */
  name: string;
  /** How many nodes it can take now; it keeps room for as many as it says, until `take` is called. */
  reserve(wanted: number): number;
  take(nodes: ClaimedNode[], reserved: number): void;
}

export type Changed<T> = { answer: T; dry?: boolean };

export interface EngineDeps {
  db: Db;
  wake: Wake;
  metrics: Metrics;
  runs: RunCache;
  hasArrived: HasArrived;
  random: () => number;
}

const REPORTS_AT_ONCE = 500;

export function createEngine({ db, wake, metrics, runs, hasArrived, random }: EngineDeps): Engine {
  let taker: Taker | undefined;
  const endedListeners: ((known: KnownRun, status: RunStatus) => void)[] = [];

  const reports = createGroupCommit<Report, boolean>({
    identity: ({ runId, event }) => `${runId}/${event.nodeId}`,
    write: writeReports,
    itemsMax: REPORTS_AT_ONCE,
    waitingMax: 100_000, // Bounded already: a worker reports as many as it has slots.
  });

  async function writeReports(batch: readonly Report[]): Promise<boolean[]> {
    const runIds = [...new Set(batch.map(({ runId }) => runId))];
    const known = await runs.get(db, runIds);
    const keys = new Map<string, NodeKey>();
    for (const { runId, event } of batch) {
      const run = known.get(runId);
      for (const nodeId of run ? reach(run.graph, event) : []) {
        keys.set(`${runId}/${nodeId}`, { run_id: runId, node_id: nodeId });
      }
    }
    // As many as it has just ended: what else becomes ready is for whoever is free.
    const ends = batch.filter(({ event }) => event.kind === "succeeded" || event.kind === "skipped").length;
    const reserved = taker?.reserve(ends) ?? 0;
    let taken: ClaimedNode[] = [];
    try {
      const written = await writeBatch(batch, runIds, keys, known, reserved);
      taken = written.taken;
      if (batch.some(({ child }, index) => child && written.counted[index])) wake.hint(TIMER_TOPIC);
      afterCommit(written.books, known);
      return written.counted;
    } finally {
      taker?.take(taken, reserved);
    }
  }

  async function writeBatch(
    batch: readonly Report[],
    runIds: readonly string[],
    keys: ReadonlyMap<string, NodeKey>,
    known: ReadonlyMap<string, KnownRun>,
    reserved: number,
  ) {
    return db.tx(async (tx) => {
      await lockRuns(tx, runIds);
      const open = await openLive(tx, [...keys.values()], known);
      const met = await takeArrivals(tx, batch);
      const verdicts = batch.map((report) => {
        const book = open.get(report.runId);
        if (!book || (report.event.kind === "arrived" && !met.has(arrivalKey(report)))) return false;
        return onNodeEvent(book, report.event, random);
      });
      const effective = batch.filter((_, index) => verdicts[index]);
      const checkpoints = effective.flatMap(({ runId, event, checkpoint }) =>
        checkpoint === undefined ? [] : [{ run_id: runId, node_id: event.nodeId, checkpoint }],
      );
      await saveCheckpoints(tx, checkpoints);
      for (const { child } of effective) if (child) await startChild(tx, child);
      const books = [...open.values()];
      if (taker) handOver(books, reserved, taker.session());
      const taken = await writeBooks(tx, books, taker?.name ?? null);
      return { books, counted: verdicts, taken };
    });
  }

  async function takeArrivals(tx: Queryable, batch: readonly Report[]): Promise<Set<string>> {
    const waits = batch.flatMap(({ runId, event }) =>
      event.kind === "arrived" ? [{ run_id: runId, node_id: event.nodeId, table_name: event.table }] : [],
    );
    const met = waits.length > 0 ? await meetWaits(tx, waits) : [];
    return new Set(met.map(({ run_id, node_id }) => `${run_id}/${node_id}`));
  }

  async function openWhole(tx: Queryable, { facts, graph }: KnownRun): Promise<Book> {
    const [status, nodes, live] = [
      await readStatus(tx, facts.run_id),
      await readNodeStatuses(tx, facts.run_id),
      await readWholeLive(tx, facts.run_id),
    ];
    const count = (wanted: string) => nodes.filter((node) => node.status === wanted).length;
    const book = openBook({
      runId: facts.run_id,
      graph,
      status: status as RunStatus,
      open: nodes.filter((node) => !ENDED_NODE.has(node.status)).length,
      failed: count("FAILED"),
      stopped: count("STOPPED"),
      timedOut: live.run?.timed_out ?? false,
      missingTables: await stillMissing(tx, { facts, graph }, live.nodes),
    });
    const liveById = new Map(live.nodes.map((row) => [row.node_id, row]));
    for (const { node_id, status: nodeStatus, attempt } of nodes) {
      const row = liveById.get(node_id);
      enter(book, node_id, { status: nodeStatus, attempt, live: row ? liveOf(row) : null });
    }
    return book;
  }

  /** What is under way waits for what it was found to wait for, until it is told; what begins anew asks again. */
  async function stillMissing(
    tx: Queryable,
    known: KnownRun,
    live: readonly NodeKey[],
  ): Promise<Map<string, string[]>> {
    const missing = await missingTables(tx, known);
    if (!known.graph.usesTables) return missing;
    for (const { node_id } of live) missing.delete(node_id);
    for (const { node_id, tables } of await readWaits(tx, known.facts.run_id)) missing.set(node_id, tables);
    return missing;
  }

  async function missingTables(tx: Queryable, { facts, graph }: KnownRun): Promise<Map<string, string[]>> {
    if (!graph.usesTables || facts.op_time === null) return new Map();
    await holdArrivals(tx, facts.op_time);
    const tables = [...new Set(graph.nodes.flatMap(({ waitsFor }) => waitsFor))];
    const here = await hasArrived(tx, tables, facts.op_time);
    const missing = graph.nodes.map(({ id, waitsFor }) => [id, waitsFor.filter((table) => !here.has(table))] as const);
    return new Map(missing.filter(([, names]) => names.length > 0).map(([id, names]) => [id, [...names]]));
  }

  function afterCommit(books: readonly Book[], known: ReadonlyMap<string, KnownRun>): void {
    if (books.length === 0) return;
    wake.hint(PROGRESS_TOPIC);
    for (const topic of new Set(books.flatMap(topicsOf))) wake.hint(topic);
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
        const open = await openWhole(tx, known);
        const changed = change(open, known);
        if (!changed.dry) await writeBooks(tx, [open], null);
        return { answer: changed.answer, book: changed.dry ? undefined : open };
      });
      if (book) {
        wake.hint(LET_GO_TOPIC); // A person or a timer may have taken nodes away from their workers.
        afterCommit([book], new Map([[runId, known]]));
      }
      return answer;
    },

    async admit(limit) {
      const { books, known } = await db.tx(async (tx) => {
        const runIds = await pickAdmissible(tx, limit);
        if (runIds.length === 0) return { books: [], known: new Map<string, KnownRun>() };
        await lockRuns(tx, runIds);
        const found = await runs.get(tx, runIds);
        const open: Book[] = [];
        for (const runId of await stillPending(tx, runIds)) {
          const run = found.get(runId);
          if (run) open.push(await openFresh(tx, run));
        }
        for (const book of open) admit(book);
        await writeBooks(tx, open, null);
        return { books: open, known: found };
      });
      metrics.count("millrace_chains_runs_total", { outcome: "started" }, books.length);
      afterCommit(books, known);
      return books.length;
    },

    onEnded: (listener) => void endedListeners.push(listener),
    handOverTo(worker) {
      taker = worker;
    },
    drain: () => reports.drain(),
  };

  /** A run that nobody has touched yet needs no reading. */
  async function openFresh(tx: Queryable, known: KnownRun): Promise<Book> {
    const { facts, graph } = known;
    const book = openBook({
      runId: facts.run_id,
      graph,
      status: "PENDING",
      open: graph.nodes.length,
      failed: 0,
      stopped: 0,
      timedOut: false,
      missingTables: await missingTables(tx, known),
    });
    for (const { id } of graph.nodes) enter(book, id, { status: "PENDING", attempt: 0, live: null });
    return book;
  }
}

const OUTCOMES: Partial<Record<RunStatus, string>> = { SUCCESS: "succeeded", FAILED: "failed", STOPPED: "stopped" };

/** Whom a change concerns. */
function topicsOf({ nodes, status, was }: Book): string[] {
  const topics = new Set<string>();
  for (const { live, was: before, node } of nodes.values()) {
    const inPool = node.def.pool !== undefined;
    const letGo = before.live?.state === "leased" && live?.state !== "leased";
    if (live?.state === "ready" && before.live?.state !== "ready")
      topics.add(inPool ? READY_IN_POOL_TOPIC : READY_TOPIC);
    if (letGo && inPool) topics.add(READY_IN_POOL_TOPIC); // There is room for another.
    if (live?.state === "delayed" && before.live?.state !== "delayed") topics.add(TIMER_TOPIC);
  }
  if (status === was.status) return [...topics];
  if (status === "STOPPING") topics.add(LET_GO_TOPIC).add(TIMER_TOPIC);
  if (ENDED_RUN.has(status)) topics.add(TIMER_TOPIC); // There may be room for another run.
  return [...topics];
}

function arrivalKey({ runId, event }: Report): string {
  return `${runId}/${event.nodeId}`;
}

/** In the transaction that parks the node which waits for it. */
async function startChild(tx: Queryable, { run, own }: ChildStart): Promise<void> {
  if (own) await insertDagRun(tx, run, own.dag, own.name);
  else await insertChainRuns(tx, [run]);
}

/** Leases nodes that have just become ready to the worker that made them so. Nodes in pools must be counted, so they wait. */
function handOver(books: readonly Book[], limit: number, session: string): void {
  let left = limit;
  for (const book of books) {
    for (const entry of book.nodes.values()) {
      if (left === 0) return;
      const { live, was, node } = entry;
      if (live?.state !== "ready" || was.live?.state !== "waiting" || node.def.pool !== undefined) continue;
      moveNode(book, entry, "RUNNING");
      entry.attempt = live.attempt;
      live.state = "leased";
      live.takenBy = session;
      left -= 1;
    }
  }
}

/** Only the named nodes, with the counts of their runs. */
async function openLive(
  tx: Queryable,
  keys: readonly NodeKey[],
  known: ReadonlyMap<string, KnownRun>,
): Promise<Map<string, Book>> {
  const books = new Map<string, Book>();
  for (const row of await readLive(tx, keys)) {
    const { run_id: runId } = row;
    const graph = known.get(runId)?.graph;
    if (!graph) throw new Error(`run ${runId} has live nodes but does not exist`);
    let book = books.get(runId);
    if (!book) {
      const { run_status: status, open, run_failed: failed, stopped, timed_out: timedOut } = row;
      book = openBook({ runId, graph, status, open, failed, stopped, timedOut });
      books.set(runId, book);
    }
    const running = row.state === "leased" || row.state === "parked";
    // Whether one that does not run is PENDING or RETRYING makes no difference to any move.
    enter(book, row.node_id, {
      status: running ? "RUNNING" : "PENDING",
      attempt: running ? row.attempt : row.attempt - 1,
      live: liveOf(row),
    });
  }
  return books;
}

function liveOf({ state, waiting, failed, skipped, attempt, tries, lost, fence, child_run_id }: LiveRow) {
  const counts = { waiting, failed, skipped, attempt, tries, lost };
  return { state, ...counts, fence, delayMs: null, childRunId: child_run_id, takenBy: null };
}
