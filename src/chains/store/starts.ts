/** SQL for the Idempotency-Keys of starts. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";

const KEY_HOURS = 24;
// A key older than a day counts as new. Its row stays locked until the run is inserted, so a repeated start waits for the first.
const TAKE = statement<{ run_id: string }>(
  "chains.start_key.take",
  `insert into chains.start_key as k (chain_id, key, request, run_id) values ($1, $2, $3, $4)
   on conflict (chain_id, key) do update set request = excluded.request, run_id = excluded.run_id, created_at = now()
   where k.created_at < now() - interval '${KEY_HOURS} hours'
   returning run_id`,
);
const FIND = statement<{ run_id: string; request: string }>(
  "chains.start_key.find",
  "select run_id, request from chains.start_key where chain_id = $1 and key = $2",
);

export interface StartKey {
  chainId: string;
  key: string;
  /** A digest of the request. */
  request: string;
  runId: string;
}

/** Returns the earlier start with this key; undefined if there is none, and then the key is stored for this start. */
export async function takeStartKey(tx: Queryable, { chainId, key, request, runId }: StartKey) {
  const [taken] = await tx.rows(TAKE, [chainId, key, request, runId]);
  if (taken) return undefined;
  const [earlier] = await tx.rows(FIND, [chainId, key]);
  if (!earlier) throw new Error(`the start key ${key} is neither free nor taken`);
  return { runId: earlier.run_id, same: earlier.request === request };
}

const DELETE_OLD = statement<{ n: number }>(
  "chains.start_key.delete_old",
  `with old as (
     delete from chains.start_key where ctid = any(array(
       select ctid from chains.start_key where created_at < now() - interval '${KEY_HOURS} hours' limit $1
     )) returning 1
   ) select count(*)::int as n from old`,
);

export async function deleteOldStartKeys(db: Queryable, limit: number): Promise<number> {
  return (await db.rows(DELETE_OLD, [limit]))[0]?.n ?? 0;
}
