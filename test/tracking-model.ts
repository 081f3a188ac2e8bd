/** An in-memory model of the rules of tracking, which the module is compared with. */
import {
  type FileTransition,
  QUEUE_STAGES,
  type QueueStage,
  STATUSES,
  type Status,
  type Transition,
} from "../src/tracking/states.ts";
import type { Row, Statuses } from "./tracking.ts";

/** One shard of a file. Stages are counted from 0, event-ingest, which has no fence. */
export interface Cell {
  filename: string;
  shard: number;
  /** When it was registered: the order of the queues. */
  age: number;
  statuses: [Status, Status, Status, Status];
  fences: [null, string | null, string | null, string | null];
  /** Former fences, which must have no effect. */
  pastFences: string[];
  worker: string | null;
  leased: boolean;
  expired: boolean;
  lost: number;
  error: string | null;
}

export interface CellKey {
  filename: string;
  shard: number;
}
export type Outcome = { status: Status; changed: boolean } | string;

export const keyOf = ({ filename, shard }: CellKey) => `${filename}/${shard}`;
export const indexOf = (stage: QueueStage) => QUEUE_STAGES.indexOf(stage) + 1;

export function createModel({ lostLimit }: { lostLimit: number }) {
  const cells = new Map<string, Cell>();
  const ofFile = (filename: string) => [...cells.values()].filter((cell) => cell.filename === filename);

  function endLease(cell: Cell, stage: QueueStage, status: Status): void {
    cell.statuses[indexOf(stage)] = status;
    endFence(cell, stage);
    Object.assign(cell, { worker: null, leased: false, expired: false });
  }

  return {
    cells,
    get: (key: CellKey) => cells.get(keyOf(key)),

    register(filename: string, shards: readonly number[], age: number): { created: boolean } {
      const fresh = shards.filter((shard) => !cells.has(keyOf({ filename, shard })));
      for (const shard of fresh) cells.set(keyOf({ filename, shard }), newCell(filename, shard, age));
      return { created: fresh.length > 0 };
    },

    moveFile(transition: FileTransition, filename: string): { updatedRows: number } | string {
      const all = ofFile(filename);
      const count = (status: Status) => all.filter(({ statuses }) => statuses[0] === status).length;
      if (all.length === 0) return "FILE_NOT_FOUND";
      if (transition === "done" && count("failed") > 0) return "FILE_WRONG_STATUS";
      if (transition !== "done" && count("done") === all.length) return "FILE_WRONG_STATUS";
      const from = transition === "retry" ? "failed" : "started";
      const to = ({ done: "done", fail: "failed", retry: "started" } as const)[transition];
      const moved = all.filter(({ statuses }) => statuses[0] === from);
      for (const cell of moved) {
        cell.statuses[0] = to;
        cell.error = null;
      }
      return { updatedRows: moved.length };
    },

    move(stage: QueueStage, transition: Transition, key: CellKey & { worker?: string; fence?: string }): Outcome {
      const cell = cells.get(keyOf(key));
      if (!cell) return ofFile(key.filename).length > 0 ? "SHARD_NOT_FOUND" : "FILE_NOT_FOUND";
      const i = indexOf(stage);
      const status = cell.statuses[i] as Status;
      const finishes = transition === "done" || transition === "fail";
      if (finishes && (key.fence ?? null) !== cell.fences[i]) return "LEASE_LOST";
      const to = ({ start: "started", done: "done", fail: "failed", retry: "new" } as const)[transition];
      const mayRepeat =
        transition !== "start" || (cell.fences[i] === null && key.worker !== undefined && key.worker === cell.worker);
      if (status === to) return mayRepeat ? { status, changed: false } : "WRONG_STATUS";

      const legal = {
        start: status === "new" && cell.statuses[i - 1] === "done",
        done: status === "started",
        fail: status === "new" || status === "started",
        retry: status === "failed",
      };
      if (!legal[transition]) return "WRONG_STATUS";
      cell.statuses[i] = to;
      if (transition === "start") cell.worker = key.worker ?? null;
      if (finishes && status === "started") Object.assign(cell, { worker: null, leased: false, expired: false });
      if (transition === "done" || transition === "retry") cell.lost = 0;
      if (transition !== "start") cell.error = null;
      if (transition === "retry") endFence(cell, stage);
      return { status: to, changed: true };
    },

    /** The shards that a claim gets, in order. */
    ready(stage: QueueStage): Cell[] {
      const i = indexOf(stage);
      return [...cells.values()]
        .filter(({ statuses }) => statuses[i - 1] === "done" && statuses[i] === "new")
        .sort((a, b) => a.age - b.age || a.shard - b.shard);
    },

    claimed(stage: QueueStage, key: CellKey & { fence: string }, worker: string): void {
      const cell = cells.get(keyOf(key));
      if (!cell) throw new Error(`there is no ${keyOf(key)}`);
      cell.statuses[indexOf(stage)] = "started";
      cell.fences[indexOf(stage)] = key.fence;
      Object.assign(cell, { worker, leased: true, expired: false });
    },

    /** Whether the heartbeat, or the release, has an effect. */
    holding(stage: QueueStage, call: "heartbeat" | "release", key: CellKey & { fence: string }): boolean {
      const cell = cells.get(keyOf(key));
      if (cell?.statuses[indexOf(stage)] !== "started" || cell.fences[indexOf(stage)] !== key.fence) return false;
      if (call === "release") endLease(cell, stage, "new");
      else Object.assign(cell, { leased: true, expired: false });
      return true;
    },

    expire(filename: string): void {
      for (const cell of ofFile(filename)) cell.expired = cell.leased;
    },

    reclaim(): { reclaimed: number; failed: number } {
      const counts = { reclaimed: 0, failed: 0 };
      for (const cell of [...cells.values()].filter(({ expired }) => expired)) {
        const stage = QUEUE_STAGES.find((name) => cell.statuses[indexOf(name)] === "started") as QueueStage;
        cell.lost += 1;
        const tooOften = cell.lost >= lostLimit;
        counts[tooOften ? "failed" : "reclaimed"] += 1;
        endLease(cell, stage, tooOften ? "failed" : "new");
        if (tooOften) cell.error = `lost ${cell.lost} workers in a row`;
      }
      return counts;
    },

    /** Sets the statuses directly, as a start state. */
    put(key: CellKey, statuses: Statuses): void {
      const cell = cells.get(keyOf(key));
      if (cell) cell.statuses = [...statuses];
    },

    rows(): Row[] {
      return [...cells.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).map(rowOf);
    },

    summary() {
      const all = [...cells.values()];
      const counts = (i: number) =>
        Object.fromEntries(
          STATUSES.map((status) => [status, all.filter(({ statuses }) => statuses[i] === status).length]),
        );
      const shards = [...new Set(all.map(({ shard }) => shard))].sort((a, b) => a - b);
      return {
        total: all.length,
        by_stage: {
          event_ingest: counts(0),
          shard_splitter: counts(1),
          shard_worker: counts(2),
          mysql_sender: counts(3),
        },
        by_shard: shards.map((shard) => {
          const last = all.filter((cell) => cell.shard === shard).map(({ statuses }) => statuses[3]);
          const number = (wanted: Status) => last.filter((status) => status === wanted).length;
          return { shard, total: last.length, done: number("done"), failed: number("failed") };
        }),
      };
    },
  };
}

export type Model = ReturnType<typeof createModel>;

function newCell(filename: string, shard: number, age: number): Cell {
  return {
    filename,
    shard,
    age,
    statuses: ["started", "new", "new", "new"],
    fences: [null, null, null, null],
    pastFences: [],
    worker: null,
    leased: false,
    expired: false,
    lost: 0,
    error: null,
  };
}

function endFence(cell: Cell, stage: QueueStage): void {
  const fence = cell.fences[indexOf(stage)];
  if (fence) cell.pastFences.push(fence);
  cell.fences[indexOf(stage)] = null;
}

function rowOf({ filename, shard, statuses, fences, worker, leased, lost, error }: Cell): Row {
  return {
    filename,
    shard,
    event_ingest_status: statuses[0],
    shard_splitter_status: statuses[1],
    shard_worker_status: statuses[2],
    mysql_sender_status: statuses[3],
    shard_splitter_fence: fences[1],
    shard_worker_fence: fences[2],
    mysql_sender_fence: fences[3],
    leased,
    worker,
    lost_count: lost,
    last_error: error,
  };
}
