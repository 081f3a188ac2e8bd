/** SQL of the ids that a slice of two phases has listed, and of ids that a source lists but does not answer. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface IdSlice {
  sliceId: string;
  generation: number;
}

const LISTED = { ord: "int4", item_id: "text" };
// An id that the source did not answer before is not asked for again until its entry expires.
const INSERT = statement<{ state: string }>(
  "harvest.id_item.insert",
  `insert into harvest.slice_id_item (slice_id, generation, ord, item_id, state)
   select $1, $2, i.ord, i.item_id, case when b.item_id is null then 'NEW' else 'MISSING' end
   from ${unnest(LISTED, "i", 4)}
   left join harvest.bad_id b on b.endpoint_id = $3 and b.item_id = i.item_id and b.expires_at > now() and $6
   on conflict do nothing returning state`,
);

/** Answers how many of the ids are known not to be answered. */
export async function insertIds(
  tx: Queryable,
  { sliceId, generation, endpointId, skipsBadIds }: IdSlice & { endpointId: number; skipsBadIds: boolean },
  ids: readonly { ord: number; item_id: string }[],
): Promise<{ known: number }> {
  if (ids.length === 0) return { known: 0 };
  const rows = await tx.rows(INSERT, [sliceId, generation, endpointId, ...toArrays(LISTED, ids), skipsBadIds]);
  return { known: rows.filter(({ state }) => state === "MISSING").length };
}

const NEXT = statement<{ ord: number; item_id: string }>(
  "harvest.id_item.next",
  `select ord, item_id from harvest.slice_id_item
   where slice_id = $1 and generation = $2 and state = $3 and ord > $4 order by ord limit $5`,
);

/** The next ids in a state, behind `after`. */
export function nextIds(
  db: Queryable,
  { sliceId, generation }: IdSlice,
  state: "NEW" | "RETRY",
  { after, limit }: { after: number; limit: number },
): Promise<{ ord: number; item_id: string }[]> {
  return db.rows(NEXT, [sliceId, generation, state, after, limit]);
}

const MOVED = { ord: "int4", state: "text" };
const MOVE = statement(
  "harvest.id_item.move",
  `update harvest.slice_id_item t set state = i.state from ${unnest(MOVED, "i", 3)}
   where t.slice_id = $1 and t.generation = $2 and t.ord = i.ord`,
);

export async function moveIds(
  tx: Queryable,
  { sliceId, generation }: IdSlice,
  items: readonly { ord: number; state: "DONE" | "RETRY" | "MISSING" }[],
): Promise<void> {
  if (items.length > 0) await tx.rows(MOVE, [sliceId, generation, ...toArrays(MOVED, items)]);
}

const ADD_BAD = statement(
  "harvest.bad_id.add",
  `insert into harvest.bad_id as t (endpoint_id, item_id, reason, expires_at)
   select $1, i.item_id, $3, now() + make_interval(days => $4) from unnest($2::text[]) as i(item_id)
   on conflict (endpoint_id, item_id) do update set last_at = now(), reason = excluded.reason, expires_at = excluded.expires_at`,
);

export async function addBadIds(
  tx: Queryable,
  endpointId: number,
  ids: readonly string[],
  { reason, days }: { reason: string; days: number },
): Promise<void> {
  if (ids.length > 0) await tx.rows(ADD_BAD, [endpointId, ids, reason, days]);
}

const DELETE_EXPIRED = statement<{ item_id: string }>(
  "harvest.bad_id.delete_expired",
  `delete from harvest.bad_id where (endpoint_id, item_id) in
     (select endpoint_id, item_id from harvest.bad_id where expires_at <= now() order by expires_at limit $1)
   returning item_id`,
);

/** Answers how many have expired. */
export async function deleteExpiredIds(db: Queryable, limit: number): Promise<number> {
  return (await db.rows(DELETE_EXPIRED, [limit])).length;
}

const CLEAR = statement("harvest.id_item.clear", "delete from harvest.slice_id_item where slice_id = $1");

/** The ids of a slice that has ended. */
export async function clearIds(tx: Queryable, sliceId: string): Promise<void> {
  await tx.rows(CLEAR, [sliceId]);
}
