/**
 * The use cases of tracking: register a file, move its shards through the stages, hand out work. Every move is one guarded
 * statement; only a refused move costs a second query, to explain why.
 */
import type { Db, Queryable, Tx } from "../kernel/data/db.ts";
import { createGroupCommit, type GroupCommit } from "../kernel/data/group-commit.ts";
import { ApiError } from "../kernel/errors.ts";
import { counted } from "../kernel/text/sentences.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { type TrackingHints, type TrackingMetrics, trackingError } from "./catalogue.ts";
import { explainRefusal, VERBS } from "./refusal.ts";
import type { TrackingSettings } from "./settings.ts";
import {
  type FileTransition,
  MOVES,
  QUEUE_STAGES,
  type QueueStage,
  type Stage,
  type Status,
  stageAfter,
  TRANSITIONS,
  type Transition,
} from "./states.ts";
import type { CellKey } from "./store.ts";
import * as store from "./store.ts";

/** A request to move one shard in one stage. */
export interface Move extends CellKey {
  worker?: string;
  fence?: string;
  error?: string;
}

/** The outcome: the present status, and whether this call changed it. */
export type Moved = CellKey & { status: Status; changed: boolean };

/** Per stage and run, so that after a long outage a reclaim does not hold its locks for long. */
export const RECLAIM_BATCH_MAX = 1_000;

/** A file is complete when this stage is done for all its shards. */
const LAST_STAGE: QueueStage = "mysql-sender";

export const queueTopic = (stage: QueueStage) => `tracking.${stage}`;

export interface Tracking {
  files(filter: store.FileFilter, page: { size: number; offset: number }): ReturnType<typeof store.listFiles>;
  /** The status of every shard of a file. */
  shards(filename: string): ReturnType<typeof store.shardsOfFile>;
  /** What is ready for a stage, the oldest first. */
  queue(stage: QueueStage, page: QueuePage): Promise<store.QueuedCell[]>;
  register(filename: string, shards: readonly number[]): Promise<{ created: boolean }>;
  moveFile(transition: FileTransition, filename: string, error?: string): Promise<{ updatedRows: number }>;
  /** One move. Those of concurrent callers are committed together. Throws the reason of a refusal. */
  move(stage: QueueStage, transition: Transition, move: Move): Promise<Moved>;
  /** Many moves at once, each with its own outcome. */
  moveAll(stage: QueueStage, transition: Transition, moves: readonly Move[]): Promise<(Moved | ApiError)[]>;
  claim(stage: QueueStage, request: { limit: number; worker: string; leaseSeconds: number }): Promise<ClaimedItem[]>;
  heartbeat(
    stage: QueueStage,
    items: readonly (CellKey & { fence: string })[],
    leaseSeconds: number,
  ): Promise<CellKey[]>;
  release(stage: QueueStage, items: readonly (CellKey & { fence: string })[]): Promise<CellKey[]>;
  /** Returns shards with expired leases to their queues. */
  reclaim(): Promise<{ reclaimed: number; failed: number }>;
  /** When the first lease expires, as of the last reclaim. */
  nextExpiryMs(): number;
  /** Waits for moves whose commit is in flight. */
  drain(): Promise<void>;
}

interface QueuePage {
  limit: number;
  offset: number;
  updatedAfter: Date | null;
}

/** The port for files whose last stage is done for all shards. */
export interface Completion {
  /** Whether the file counts as an arrival. */
  isArrival(filename: string): boolean;
  /** Called in the transaction that completes the files. */
  complete(tx: Tx, filenames: readonly string[]): Promise<void>;
}

export type ClaimedItem = store.ClaimedCell & { fence: string };

export interface TrackingDeps {
  db: Db;
  wake: Wake;
  hints: TrackingHints;
  metrics: TrackingMetrics;
  settings: TrackingSettings;
  completion?: Completion;
}

export function createTracking(deps: TrackingDeps): Tracking {
  const { db, wake, hints, metrics, settings, completion } = deps;
  let nextExpiryMs = Number.POSITIVE_INFINITY;

  function hintQueue(stage: QueueStage | undefined): void {
    if (stage) wake.hint(queueTopic(stage));
  }

  /** Sends a hint for the queue that a transition fills. */
  function hintAfter(stage: Stage, transition: Transition): void {
    if (transition === "done") hintQueue(stageAfter(stage));
    if (transition === "retry") hintQueue(stage as QueueStage);
  }

  /** Sends hints of the files of shards that a committed statement has moved. */
  function changed(cells: readonly CellKey[]): void {
    hints.changed(db, "file", new Set(cells.map(({ filename }) => filename)));
  }

  function write(stage: QueueStage, transition: Transition, moves: readonly Move[]): Promise<CellKey[]> {
    const { lease, start, fail, retry } = store.stageStores[stage];
    const held = () => moves.map((move) => ({ ...move, fence: move.fence ?? null, error: move.error ?? null }));
    switch (transition) {
      case "start": {
        const seconds = settings.stageTimeoutSeconds[stage] ?? null;
        return start(
          db,
          moves.map(({ filename, shard, worker }) => ({ filename, shard, worker: worker ?? null, seconds })),
        );
      }
      case "done": {
        const arrivals =
          completion && stage === LAST_STAGE ? moves.filter((move) => completion.isArrival(move.filename)) : [];
        if (!completion || arrivals.length === 0) return lease.finish(db, "done", held());
        const files = [...new Set(arrivals.map(({ filename }) => filename))];
        return finishFiles(completion, files, (tx) => lease.finish(tx, "done", held()));
      }
      case "fail":
        return fail(db, held());
      case "retry":
        return retry(db, moves);
    }
  }

  /** Finishes shards and, with the last shard of a file, completes the file in the same transaction. */
  function finishFiles(
    { complete }: Completion,
    files: readonly string[],
    finish: (tx: Queryable) => Promise<CellKey[]>,
  ): Promise<CellKey[]> {
    return db.tx(async (tx) => {
      await store.lockCompletion(tx, files);
      const moved = await finish(tx);
      const touched = new Set(moved.map(({ filename }) => filename));
      const done = await store.completeFiles(
        tx,
        files.filter((file) => touched.has(file)),
      );
      if (done.length > 0) await complete(tx, done);
      return moved;
    });
  }

  async function moveAll(
    stage: QueueStage,
    transition: Transition,
    moves: readonly Move[],
  ): Promise<(Moved | ApiError)[]> {
    const written = await write(stage, transition, moves);
    changed(written);
    const moved = new Set(written.map(identity));
    if (moved.size > 0) hintAfter(stage, transition);
    metrics.count("millrace_tracking_moves_total", { stage, transition, outcome: "moved" }, moved.size);
    const refused = moves.filter((move) => !moved.has(identity(move)));
    const explained = await explainAll(stage, transition, refused);
    for (const outcome of explained.values()) {
      const label = outcome instanceof ApiError ? outcome.code : "repeated";
      metrics.count("millrace_tracking_moves_total", { stage, transition, outcome: label });
    }
    return moves.map(
      (move) =>
        explained.get(identity(move)) ?? {
          filename: move.filename,
          shard: move.shard,
          status: MOVES[transition].to,
          changed: true,
        },
    );
  }

  async function explainAll(stage: QueueStage, transition: Transition, refused: readonly Move[]) {
    const outcomes = new Map<string, Moved | ApiError>();
    if (refused.length === 0) return outcomes;
    const present = new Map(
      (await store.stageStores[stage].present(db, refused)).map((cell) => [identity(cell), cell]),
    );
    const absent = refused.filter((move) => !present.has(identity(move)));
    const files =
      absent.length > 0 ? await store.knownFiles(db, [...new Set(absent.map(({ filename }) => filename))]) : new Set();
    for (const move of refused) {
      const { filename, shard } = move;
      const cell = present.get(identity(move));
      if (cell) outcomes.set(identity(move), explainRefusal(stage, transition, move, cell));
      else if (files.has(filename)) outcomes.set(identity(move), trackingError("SHARD_NOT_FOUND", { filename, shard }));
      else outcomes.set(identity(move), trackingError("FILE_NOT_FOUND", { filename }));
    }
    return outcomes;
  }

  const commits = new Map<string, GroupCommit<Move, Moved | ApiError>>(
    QUEUE_STAGES.flatMap((stage) =>
      TRANSITIONS.map((transition) => [
        `${stage}/${transition}`,
        createGroupCommit({ identity, write: (moves) => moveAll(stage, transition, moves) }),
      ]),
    ),
  );

  return {
    files: (filter, page) => store.listFiles(db, filter, page),

    async shards(filename) {
      const shards = await store.shardsOfFile(db, filename);
      if (shards.length === 0) throw trackingError("FILE_NOT_FOUND", { filename });
      return shards;
    },

    queue: (stage, page) => store.stageStores[stage].queue(db, page),

    async register(filename, shards) {
      const created = await store.register(db, filename, shards);
      if (created) hints.changed(db, "file", filename);
      return { created };
    },

    moveFile: (transition, filename, error) =>
      db.tx(async (tx) => {
        refuseFileMove(transition, filename, await store.lockFile(tx, filename));
        const updatedRows = await store.moveFile(tx, transition, filename, error ?? null);
        if (updatedRows > 0) {
          tx.afterCommit(() => hintAfter("event-ingest", transition));
          hints.changed(tx, "file", filename);
        }
        return { updatedRows };
      }),

    async move(stage, transition, move) {
      const outcome = await commits.get(`${stage}/${transition}`)?.add(move);
      if (outcome === undefined) throw new Error(`no group commit for ${stage}/${transition}`);
      if (outcome instanceof ApiError) throw outcome;
      return outcome;
    },

    moveAll,

    async claim(stage, { limit, worker, leaseSeconds }) {
      const items = await store.stageStores[stage].lease.claim(db, { limit, holder: worker, seconds: leaseSeconds });
      metrics.count("millrace_tracking_claimed_total", { stage }, items.length);
      changed(items);
      return items;
    },

    heartbeat: (stage, items, leaseSeconds) => store.stageStores[stage].lease.extend(db, items, leaseSeconds),

    async release(stage, items) {
      const released = await store.stageStores[stage].lease.release(db, items);
      if (released.length > 0) hintQueue(stage);
      changed(released);
      return released;
    },

    async reclaim() {
      const counts = { reclaimed: 0, failed: 0 };
      nextExpiryMs = await store.nextExpiryMs(db);
      if (nextExpiryMs > 0) return counts;
      for (const stage of QUEUE_STAGES) {
        const cells = await store.stageStores[stage].lease.reclaim(db, {
          limit: RECLAIM_BATCH_MAX,
          lostLimit: settings.lostLimit,
        });
        counts.reclaimed += cells.filter(({ state }) => state === "new").length;
        counts.failed += cells.filter(({ state }) => state === "failed").length;
        if (cells.length > 0) hintQueue(stage);
        changed(cells);
      }
      return counts;
    },

    nextExpiryMs: () => nextExpiryMs,

    async drain() {
      await Promise.all([...commits.values()].map((commit) => commit.drain()));
    },
  };
}

/** Shards in other statuses stay there, but a file is not done while a shard is failed, and done is final. */
function refuseFileMove(transition: FileTransition, filename: string, counts: store.FileCounts): void {
  const { started, done, failed } = counts;
  const shards = started + done + failed;
  if (shards === 0) throw trackingError("FILE_NOT_FOUND", { filename });
  const refuse = (because: string) =>
    trackingError("FILE_WRONG_STATUS", { transition, filename, ...counts }, { verb: VERBS[transition], because });
  if (transition === "done" && failed > 0) {
    throw refuse(`${failed} of ${counted(shards, "shard")} failed; retry them first`);
  }
  if (transition !== "done" && done === shards) throw refuse("all its shards are `done`");
}

export function identity({ filename, shard }: CellKey): string {
  return `${filename}/${shard}`; // A filename contains no slash, so this is unique.
}
