/** Writes the difference of open books, in the transaction that holds the runs' locks. */
import type { Queryable } from "../../kernel/data/db.ts";
import { keepAttempts, moveRuns, type RunMove, writeEvents } from "../store/history.ts";
import {
  type ClaimedNode,
  deleteLiveRuns,
  insertLive,
  insertLiveRuns,
  type LiveWrite,
  type NodeKey,
  type NodeWrite,
  type RunWrite,
  writeLive,
} from "../store/live.ts";
import { dropWaits, insertWaits } from "../store/waits.ts";
import type { Book, Live, NodeEntry } from "./book.ts";

export interface WrittenBooks {
  /** The nodes that were leased to the worker of this process. */
  leased: ClaimedNode[];
  /** By run id, the stored reasons of runs whose status or reason changed. */
  reasons: ReadonlyMap<string, string | null>;
}

export async function writeBooks(tx: Queryable, books: readonly Book[], worker: string | null): Promise<WrittenBooks> {
  const difference = { deleted: [] as NodeKey[], updated: [] as LiveWrite[], nodes: [] as NodeWrite[] };
  const endedAttempts: EndedAttempt[] = [];
  const inserted: InsertedNode[] = [];
  const droppedWaits: NodeKey[] = [];
  for (const book of books) {
    for (const entry of book.nodes.values()) collect(book, entry);
  }
  const started = books.filter((book) => isLive(book) && !wasLive(book));
  const continuing = books.filter((book) => isLive(book) && wasLive(book));
  const ended = books.filter((book) => !isLive(book) && wasLive(book));

  const isNothing = Object.values(difference).every((rows) => rows.length === 0) && continuing.length === 0;
  const waits = inserted.filter(({ tables }) => tables.length > 0);
  const moved = books.filter(({ status, was, reason }) => status !== was.status || reason);
  const events = books.flatMap(({ runId, events: added }) =>
    added.map(({ kind, nodeId, actor, detail }) => ({ run_id: runId, kind, node_id: nodeId, actor, detail })),
  );
  // One round trip, in this order: some statements need what earlier ones have written.
  const [, , leasedUpdated, leasedInserted, , , , movedRuns] = await Promise.all([
    endedAttempts.length > 0 && keepAttempts(tx, endedAttempts),
    started.length > 0 && insertLiveRuns(tx, started.map(runWrite)),
    isNothing ? [] : writeLive(tx, { ...difference, runs: continuing.map(runWrite), worker }),
    inserted.length > 0 ? insertLive(tx, inserted) : [],
    droppedWaits.length > 0 && dropWaits(tx, droppedWaits),
    waits.length > 0 && insertWaits(tx, waits),
    ended.length > 0 &&
      deleteLiveRuns(
        tx,
        ended.map(({ runId }) => runId),
      ),
    moved.length > 0 ? moveRuns(tx, moved.map(runMove)) : [],
    events.length > 0 && writeEvents(tx, events),
  ]);
  const reasons = new Map(movedRuns.map(({ run_id, reason }) => [run_id, reason]));
  return { leased: [...leasedUpdated, ...leasedInserted], reasons };

  // Called for thousands of nodes a second, so it visits each once.
  function collect(book: Book, entry: NodeEntry): void {
    const { live, was, node, status, attempt, error, artifact } = entry;
    const run_id = book.runId;
    const node_id = node.id;
    if (entry.endedAttempt) endedAttempts.push({ run_id, node_id, ...entry.endedAttempt });
    if (status !== was.status || entry.endedAttempt || artifact !== null) {
      difference.nodes.push({ run_id, node_id, status, attempt, error, artifact: artifact ?? null });
    }
    if (was.live && !live) difference.deleted.push({ run_id, node_id });
    if (was.live && !live && node.waitsFor.length > 0) droppedWaits.push({ run_id, node_id });
    if (was.live && live && differs(was.live, live)) difference.updated.push(liveWrite(book, node_id, live));
    if (!was.live && live) {
      const { pool = null } = node.def;
      inserted.push({ ...liveWrite(book, node_id, live), pool, tables: book.missingTables.get(node_id) ?? [] });
    }
  }
}

type EndedAttempt = NodeKey & NonNullable<NodeEntry["endedAttempt"]>;
type InsertedNode = LiveWrite & { pool: string | null; tables: readonly string[] };

function isLive({ status }: Book): boolean {
  return status === "RUNNING" || status === "STOPPING";
}

function wasLive({ was }: Book): boolean {
  return was.status === "RUNNING" || was.status === "STOPPING";
}

function differs(before: Readonly<Live>, now: Live): boolean {
  return (
    before.state !== now.state ||
    before.waiting !== now.waiting ||
    before.failed !== now.failed ||
    before.skipped !== now.skipped ||
    before.attempt !== now.attempt ||
    before.tries !== now.tries ||
    before.lost !== now.lost ||
    before.returned !== now.returned ||
    before.childRunId !== now.childRunId
  );
}

function liveWrite({ runId }: Book, nodeId: string, live: Live): LiveWrite {
  return {
    run_id: runId,
    node_id: nodeId,
    state: live.state,
    waiting: live.waiting,
    failed: live.failed,
    skipped: live.skipped,
    attempt: live.attempt,
    tries: live.tries,
    lost: live.lost,
    returned: live.returned,
    delay_ms: live.delayMs,
    child_run_id: live.childRunId,
    session_id: live.leaseTo,
  };
}

function runWrite({ runId, status, open, failed, stopped, timedOut, graceMs }: Book): RunWrite {
  const live = status === "STOPPING" ? "STOPPING" : "RUNNING";
  return { run_id: runId, status: live, open, failed, stopped, timed_out: timedOut, grace_ms: graceMs };
}

function runMove({ runId, status, reason }: Book): RunMove {
  const move = { run_id: runId, status, reason: null };
  if (reason === null) return { ...move, reason_from: "stored" };
  return reason === "failure"
    ? { ...move, reason_from: "failure" }
    : { ...move, reason_from: "text", reason: reason.text };
}
