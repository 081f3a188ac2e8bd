/** Opens books: reads what a change can affect, under the runs' locks. Only `openLive` takes the locks itself. */
import type { Queryable } from "../../kernel/data/db.ts";
import { type LiveRow, type NodeKey, openLiveRows, readWholeLive } from "../store/live.ts";
import { readNodeStatuses, readStatus } from "../store/runs.ts";
import { holdArrivals, readWaits } from "../store/waits.ts";
import { addNode, type Book, freshBook, type Live, openBook } from "./book.ts";
import type { KnownRun } from "./run-cache.ts";
import { ENDED_NODE } from "./states.ts";

/** Which of these tables have arrived for the opTime. The module `arrivals` implements it. */
export type HasArrived = (db: Queryable, tables: readonly string[], opTime: string) => Promise<ReadonlySet<string>>;

/** Locks the runs and opens them with only the given nodes. Runs that are not live are left out; `others` are only locked. */
export async function openLive(
  tx: Queryable,
  keys: readonly NodeKey[],
  known: ReadonlyMap<string, KnownRun>,
  others: readonly string[],
): Promise<Map<string, Book>> {
  const books = new Map<string, Book>();
  for (const row of await openLiveRows(tx, [...new Set([...known.keys(), ...others])], keys)) {
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
    // PENDING and RETRYING have the same transitions, so one stands for both.
    addNode(book, row.node_id, {
      status: running ? "RUNNING" : "PENDING",
      attempt: running ? row.attempt : row.attempt - 1,
      live: liveOf(row),
    });
  }
  return books;
}

/** The whole run, in any state. Undefined if it was deleted. */
export async function openWhole(tx: Queryable, known: KnownRun, hasArrived: HasArrived): Promise<Book | undefined> {
  const { facts, graph } = known;
  // Live rows first: once they are locked, no claim can change a status before it is read.
  const live = await readWholeLive(tx, facts.run_id);
  const status = await readStatus(tx, facts.run_id);
  if (status === undefined) return undefined;
  const nodes = await readNodeStatuses(tx, facts.run_id);
  const count = (wanted: string) => nodes.filter((node) => node.status === wanted).length;
  const book = openBook({
    runId: facts.run_id,
    graph,
    status,
    open: nodes.filter((node) => !ENDED_NODE.has(node.status)).length,
    failed: count("FAILED"),
    stopped: count("STOPPED"),
    timedOut: live.run?.timed_out ?? false,
    missingTables: await stillMissing(tx, known, live.nodes, hasArrived),
  });
  const liveById = new Map(live.nodes.map((row) => [row.node_id, row]));
  for (const node of nodes) {
    const row = liveById.get(node.node_id);
    addNode(book, node.node_id, { status: node.status, attempt: node.attempt, live: row ? liveOf(row) : null });
  }
  return book;
}

/** Runs that have never run: only the tables that they wait for are read. */
export async function openFresh(tx: Queryable, known: readonly KnownRun[], hasArrived: HasArrived): Promise<Book[]> {
  const missing = await missingTables(tx, known, hasArrived);
  return known.map((run) => freshBook(run.facts.run_id, run.graph, missing(run)));
}

/** Live nodes keep the waits that are stored; for all others, the arrivals are read again. */
async function stillMissing(
  tx: Queryable,
  known: KnownRun,
  live: readonly NodeKey[],
  hasArrived: HasArrived,
): Promise<Map<string, string[]>> {
  const missing = (await missingTables(tx, [known], hasArrived))(known);
  if (!known.graph.usesTables) return missing;
  for (const { node_id } of live) missing.delete(node_id);
  for (const { node_id, tables } of await readWaits(tx, known.facts.run_id)) missing.set(node_id, tables);
  return missing;
}

/** Returns a function: run to missing tables by node. Each opTime is locked in one order and read once. */
async function missingTables(
  tx: Queryable,
  known: readonly KnownRun[],
  hasArrived: HasArrived,
): Promise<(run: KnownRun) => Map<string, string[]>> {
  const wanted = new Map<string, Set<string>>();
  for (const { graph, facts } of known) {
    if (!graph.usesTables || facts.op_time === null) continue;
    const tables = wanted.get(facts.op_time) ?? new Set();
    for (const { waitsFor } of graph.nodes) for (const table of waitsFor) tables.add(table);
    wanted.set(facts.op_time, tables);
  }
  if (wanted.size > 0) await holdArrivals(tx, [...wanted.keys()]);
  const arrivedAt = new Map<string, ReadonlySet<string>>();
  for (const [opTime, tables] of wanted) arrivedAt.set(opTime, await hasArrived(tx, [...tables], opTime));
  return ({ graph, facts }) => {
    const arrived = arrivedAt.get(facts.op_time ?? "");
    if (!graph.usesTables || !arrived) return new Map();
    const missing = graph.nodes.map(
      ({ id, waitsFor }) => [id, waitsFor.filter((table) => !arrived.has(table))] as const,
    );
    return new Map(missing.filter(([, names]) => names.length > 0).map(([id, names]) => [id, [...names]]));
  };
}

function liveOf(row: LiveRow): Live {
  const { state, waiting, failed, skipped, attempt, tries, lost, returned, fence, child_run_id } = row;
  const counts = { waiting, failed, skipped, attempt, tries, lost, returned };
  return { state, ...counts, fence, delayMs: null, childRunId: child_run_id, leaseTo: null };
}
