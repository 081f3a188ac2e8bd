/** How far one consumer of the outbox is behind, for whoever has to tell people. */
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";

export interface OutboxBacklog {
  waiting: number;
  /** Since the oldest of them was emitted; 0 if none waits. */
  oldest_seconds: number;
  /** Why the last that was tried is not delivered yet. */
  last_error: string | null;
  /** Given up, because processes were lost with them again and again. */
  dead: number;
}

const BACKLOG = statement<OutboxBacklog>(
  "kernel.outbox.backlog",
  `select count(*) filter (where state <> 'dead')::int as waiting, count(*) filter (where state = 'dead')::int as dead,
          coalesce(extract(epoch from now() - min(created_at) filter (where state <> 'dead')), 0)::float8 as oldest_seconds,
          (array_agg(last_error order by attempt desc, id) filter (where last_error is not null))[1] as last_error
   from kernel.outbox where consumer = $1`,
);

export async function backlogOf(db: Db, consumer: string): Promise<OutboxBacklog> {
  const [row] = await db.read(BACKLOG, [consumer]);
  if (!row) throw new Error("the query of the backlog returned no row");
  return row;
}

const DISCARD = statement(
  "kernel.outbox.discard_dead",
  `delete from kernel.outbox
   where consumer = $1 and state = 'dead' and payload @> $2::jsonb and created_at < $3::timestamptz`,
);
/** Deletes dead events whose payload contains this, emitted before a time: something else has made up for them. */
export async function discardDead(
  db: Db,
  { consumer, payload, before }: { consumer: string; payload: object; before: string },
): Promise<void> {
  await db.rows(DISCARD, [consumer, JSON.stringify(payload), before]);
}
