/** Writes what changed in open books, in the transaction that holds their locks: the difference, table by table. */
import type { Queryable } from "../../kernel/data/db.ts";
import { keepAttempts, moveRuns, writeEvents } from "../store/history.ts";
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

/** Answers the nodes that this leased to `worker`. */
export async function writeBooks(tx: Queryable, books: readonly Book[], worker: string | null): Promise<ClaimedNode[]> {
  const difference = { gone: [] as NodeKey[], kept: [] as LiveWrite[], told: [] as NodeWrite[] };
  const followed: Followed[] = [];
  const fresh: FreshNode[] = [];
  const waitNoMore: NodeKey[] = [];
  for (const book of books) {
    for (const entry of book.nodes.values()) collect(book, entry);
  }
  const born = books.filter((book) => isLive(book) && !wasLive(book));
  const lasting = books.filter((book) => isLive(book) && wasLive(book));
  const over = books.filter((book) => !isLive(book) && wasLive(book));

  const isNothing = Object.values(difference).every((rows) => rows.length === 0) && lasting.length === 0;
  const waits = fresh.filter(({ tables }) => tables.length > 0);
  const ended = over.map(({ runId }) => runId);
  const moved = books.filter(({ status, was, reason }) => status !== was.status || reason);
  const events = books.flatMap(({ runId, events: said }) =>
    said.map(({ kind, nodeId, actor, detail }) => ({ run_id: runId, kind, node_id: nodeId, actor, detail })),
  );
  // In one round trip, and in this order: some need what others have written before them.
  const [, , kept, begun] = await Promise.all([
    followed.length > 0 && keepAttempts(tx, followed),
    born.length > 0 && insertLiveRuns(tx, born.map(runWrite)),
    isNothing ? [] : writeLive(tx, { ...difference, runs: lasting.map(runWrite), worker }),
    fresh.length > 0 ? insertLive(tx, fresh) : [],
    waitNoMore.length > 0 && dropWaits(tx, waitNoMore),
    waits.length > 0 && insertWaits(tx, waits),
    ended.length > 0 && deleteLiveRuns(tx, ended),
    moved.length > 0 && moveRuns(tx, moved.map(runMove)),
    events.length > 0 && writeEvents(tx, events),
  ]);
  return [...kept, ...begun];

  // Thousands a second pass here, so it goes through them once.
  function collect(book: Book, entry: NodeEntry): void {
    const { live, was, node, status, attempt, error, artifact } = entry;
    const run_id = book.runId;
    const node_id = node.id;
    if (entry.followed) followed.push({ run_id, node_id, ...entry.followed });
    if (status !== was.status || entry.followed) {
      difference.told.push({ run_id, node_id, status, attempt, error, artifact: artifact ?? null });
    }
    if (was.live && !live) difference.gone.push({ run_id, node_id });
    if (was.live && !live && node.waitsFor.length > 0) waitNoMore.push({ run_id, node_id });
    if (was.live && live && differs(was.live, live)) difference.kept.push(liveWrite(book, node_id, live));
    if (!was.live && live) {
      const { pool = null } = node.def;
      fresh.push({ ...liveWrite(book, node_id, live), pool, tables: book.missingTables.get(node_id) ?? [] });
    }
  }
}

type Followed = NodeKey & NonNullable<NodeEntry["followed"]>;
type FreshNode = LiveWrite & { pool: string | null; tables: readonly string[] };

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
    session_id: live.takenBy,
  };
}

function runWrite({ runId, status, open, failed, stopped, timedOut, graceMs }: Book): RunWrite {
  const live = status === "STOPPING" ? "STOPPING" : "RUNNING";
  return { run_id: runId, status: live, open, failed, stopped, timed_out: timedOut, grace_ms: graceMs };
}

function runMove({ runId, status, reason }: Book) {
  return {
    run_id: runId,
    status,
    has_reason: reason !== null,
    reason: reason?.text ?? null,
    first: reason?.first ?? false,
  };
}
