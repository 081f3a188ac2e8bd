/** What waits, as the statements of modules answer it. */
import { isServed } from "../work/session.ts";
import type { Waiting } from "./part.ts";
import type { Cause } from "./replies.ts";

export interface WaitingRow {
  cause: Cause;
  kind: string;
  subject: string | null;
  about_kind: string | null;
  about_id: string | null;
  count: number;
  oldest_at: Date | null;
  next_at: Date | null;
}

/** Cause and subject of what is ready: a free slot of a worker, or a process with the role `worker` if none is alive. */
export const SLOT_OR_PROCESS = `case when ${isServed("worker")} then 'slot' else 'process' end as cause,
     case when ${isServed("worker")} then null else 'worker' end as subject`;

export function waitingOf(rows: readonly WaitingRow[]): Waiting[] {
  return rows.map(({ cause, kind, subject, about_kind, about_id, count, oldest_at, next_at }) => ({
    cause,
    kind,
    subject,
    about: about_kind === null || about_id === null ? null : { kind: about_kind, id: about_id },
    count,
    oldestAt: oldest_at,
    nextAt: next_at,
  }));
}
