/** What waits, as the statements of the modules return it. */
import { isServed } from "../work/session.ts";
import type { Waiting } from "./part.ts";
import type { Cause } from "./replies.ts";

export interface WaitingRow {
  cause: Cause;
  kind: string;
  subject: string | null;
  about_kind: string | null;
  about_id: string | null;
  about_op_time?: string;
  count: number;
  oldest_at: Date | null;
  next_at: Date | null;
}

/** Cause and subject of what is ready: a free slot of a worker, or a process with the role `worker` if none is alive. */
export const SLOT_OR_PROCESS = `case when ${isServed("worker")} then 'slot' else 'process' end as cause,
     case when ${isServed("worker")} then null else 'worker' end as subject`;

export function waitingOf(rows: readonly WaitingRow[]): Waiting[] {
  return rows.map(({ cause, kind, subject, count, oldest_at, next_at, ...row }) => ({
    cause,
    kind,
    subject,
    about: aboutOf(row),
    count,
    oldestAt: oldest_at,
    nextAt: next_at,
  }));
}

function aboutOf({
  about_kind: kind,
  about_id: id,
  about_op_time: opTime,
}: Pick<WaitingRow, "about_kind" | "about_id" | "about_op_time">) {
  return kind === null || id === null ? null : { kind, id, ...(opTime !== undefined && { opTime }) };
}
