/** SQL for what a running node says: its log and its progress. Both count only from whoever holds the node. */
import { toArrays, unnest } from "../../kernel/batch.ts";
import type { Db } from "../../kernel/db.ts";
import { statement } from "../../kernel/statement.ts";
import type { NodeKey } from "./live.ts";

export interface LogLine extends NodeKey {
  fence: string;
  attempt: number;
  at: Date;
  level: string;
  line: string;
}
const HELD = { run_id: "uuid", node_id: "text", fence: "int8" };
const LINE = { ...HELD, attempt: "int4", at: "timestamptz", level: "text", line: "text" };
const IS_HELD = "n.run_id = i.run_id and n.node_id = i.node_id and n.fence = i.fence and n.state = 'leased'";

const WRITE_LINES = statement(
  "chains.log.write",
  `insert into chains.job_run_log (run_id, node_id, attempt, at, level, line)
   select i.run_id, i.node_id, i.attempt, i.at, i.level, i.line
   from ${unnest(LINE, "i")} join chains.live_node n on ${IS_HELD}`,
);

export async function writeLines(db: Db, lines: readonly LogLine[]): Promise<void> {
  await db.rows(WRITE_LINES, toArrays(LINE, lines));
}

export interface ProgressWrite extends NodeKey {
  fence: string;
  progress: number;
  note: string | null;
}
const PROGRESS = { ...HELD, progress: "float8", note: "text" };
const WRITE_PROGRESS = statement(
  "chains.node.progress",
  `update chains.job_run_node t set progress = i.progress, progress_note = i.note, updated_at = now()
   from ${unnest(PROGRESS, "i")} join chains.live_node n on ${IS_HELD}
   where t.run_id = i.run_id and t.node_id = i.node_id`,
);

export async function writeProgress(db: Db, items: readonly ProgressWrite[]): Promise<void> {
  await db.rows(WRITE_PROGRESS, toArrays(PROGRESS, items));
}

export interface LogRow {
  id: string;
  node_id: string;
  at: Date;
  attempt: number;
  level: string;
  line: string;
}
const READ = statement<LogRow>(
  "chains.log.read",
  `select id, node_id, at, attempt, level, line from chains.job_run_log
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
