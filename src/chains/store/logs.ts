/** SQL for the log and the progress of running nodes. Only the holder of the lease can write them. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { NodeKey } from "./live.ts";

export interface LogLine extends NodeKey {
  fence: string;
  attempt: number;
  at: Date;
  level: string;
  line: string;
}
const HELD_KEY = { run_id: "uuid", node_id: "text" };
// `no` keeps the lines of one node in order.
const LINE_KEY = { ...HELD_KEY, no: "int4" };
const LINE = { fence: "int8", attempt: "int4", at: "timestamptz", level: "text", line: "text" };
// The share lock makes a transaction that ends the lease wait until this is written. A row that is locked in another way is
// about to lose its lease: it is skipped, since waiting for it could deadlock.
const HELD = `join chains.live_node n on n.run_id = i.run_id and n.node_id = i.node_id
     where n.fence = i.fence and n.state = 'leased' for share of n skip locked`;

const WRITE_LINES = statement(
  "chains.log.write",
  `with held as materialized (select i.* from ${itemsByKey(LINE_KEY, LINE)} ${HELD})
   insert into chains.job_run_log (run_id, node_id, attempt, at, level, line)
   select run_id, node_id, attempt, at, level, line from held order by run_id, node_id, no`,
);

export async function writeLines(db: Db, lines: readonly LogLine[]): Promise<void> {
  const numbered = lines.map((line, no) => ({ ...line, no }));
  await db.rows(WRITE_LINES, toArrays({ ...LINE_KEY, ...LINE }, numbered));
}

export interface ProgressWrite extends NodeKey {
  fence: string;
  progress: number;
  note: string | null;
}
const PROGRESS = { fence: "int8", progress: "float8", note: "text" };
const WRITE_PROGRESS = statement(
  "chains.node.progress",
  `with held as materialized (select i.* from ${itemsByKey(HELD_KEY, PROGRESS)} ${HELD})
   update chains.job_run_node t set progress = held.progress, progress_note = held.note, updated_at = now()
   from held where t.run_id = held.run_id and t.node_id = held.node_id`,
);

export async function writeProgress(db: Db, items: readonly ProgressWrite[]): Promise<void> {
  await db.rows(WRITE_PROGRESS, toArrays({ ...HELD_KEY, ...PROGRESS }, items));
}

export interface LogRow {
  id: string;
  at: Date;
  attempt: number;
  level: string;
  line: string;
}
const READ = statement<LogRow>(
  "chains.log.read",
  `select id, at, attempt, level, line from chains.job_run_log
   where run_id = $1 and node_id = $2 and id > $3 and ($4::int is null or attempt = $4)
   order by id limit $5`,
);

export interface LogPage {
  runId: string;
  nodeId: string;
  attempt: number | null;
  after: string;
  limit: number;
}

export function readLog(db: Db, { runId, nodeId, attempt, after, limit }: LogPage): Promise<LogRow[]> {
  return db.read(READ, [runId, nodeId, after, attempt, limit]);
}
