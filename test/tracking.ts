/** Sets up and reads rows of tracking directly in the database, for tests that need a certain state. */
import { randomBytes } from "node:crypto";
import { statement } from "../src/kernel/data/statement.ts";
import { STAGES, type Stage, type Status } from "../src/tracking/states.ts";
import type { TestDatabase } from "./database.ts";

/** One row of `tracking.pipeline_tracking`, times left out. */
export interface Row {
  filename: string;
  shard: number;
  event_ingest_status: Status;
  shard_splitter_status: Status;
  shard_worker_status: Status;
  mysql_sender_status: Status;
  shard_splitter_fence: string | null;
  shard_worker_fence: string | null;
  mysql_sender_fence: string | null;
  leased: boolean;
  worker: string | null;
  lost_count: number;
  last_error: string | null;
}

export type Statuses = readonly [Status, Status, Status, Status];

/** The statuses of a shard that has reached `status` in `stage`. */
export function reached(stage: Stage, status: Status): Statuses {
  const at = STAGES.indexOf(stage);
  return STAGES.map((_, i) =>
    i < at ? "done" : i === at ? status : i === 0 ? "started" : "new",
  ) as unknown as Statuses;
}

/** A name that no other test uses. */
export function newFilename(): string {
  return randomBytes(7).toString("hex");
}

export interface TrackingTable {
  /** Inserts a file whose shards all have these statuses; answers its name. */
  put(statuses: Statuses, options?: { filename?: string; shards?: readonly number[] }): Promise<string>;
  row(filename: string, shard?: number): Promise<Row>;
  rows(): Promise<Row[]>;
  /** Expires the leases on a file. */
  expire(filename: string): Promise<void>;
  /** Deletes all files, for tests of a whole queue. */
  clear(): Promise<void>;
}

const COLUMNS = `filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status,
  shard_splitter_fence, shard_worker_fence, mysql_sender_fence, leased_until is not null as leased, worker, lost_count, last_error`;
const PUT = statement(
  "test.tracking.put",
  `with file as (insert into tracking.pipeline_file (filename) values ($1))
   insert into tracking.pipeline_tracking
     (filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status)
   select $1, shard, $3, $4, $5, $6 from unnest($2::int[]) as s(shard)`,
);
const ROW = statement<Row>(
  "test.tracking.row",
  `select ${COLUMNS} from tracking.pipeline_tracking where filename = $1 and shard = $2`,
);
const ROWS = statement<Row>(
  "test.tracking.rows",
  `select ${COLUMNS} from tracking.pipeline_tracking order by filename, shard`,
);
const EXPIRE = statement(
  "test.tracking.expire",
  `update tracking.pipeline_tracking set leased_until = now() - interval '1 s'
   where filename = $1 and leased_until is not null`,
);
const CLEAR = statement(
  "test.tracking.clear",
  "truncate tracking.pipeline_file, tracking.pipeline_tracking, tracking.status_tally, tracking.shard_tally",
);

export function trackingTable(database: TestDatabase): TrackingTable {
  return {
    async put(statuses, { filename = newFilename(), shards = [0] } = {}) {
      await database.db.rows(PUT, [filename, shards, ...statuses]);
      return filename;
    },
    async row(filename, shard = 0) {
      const [row] = await database.db.rows(ROW, [filename, shard]);
      if (!row) throw new Error(`there is no ${filename}, shard ${shard}`);
      return row;
    },
    rows: () => database.db.rows(ROWS),
    async expire(filename) {
      await database.db.rows(EXPIRE, [filename]);
    },
    async clear() {
      await database.db.rows(CLEAR);
    },
  };
}
