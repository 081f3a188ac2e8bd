/**
 * SQL of updates that ask again for what was quarantined. An id is open until a record of it has come since: by an update, which says so
 * in the row, or by a harvest, which shows in the record. What the present expression has read stays open, perhaps for ever, so an
 * update looks only at rows of other expressions: all 300,000 rows of a source took 2 to 4 s for each plan.
 */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Namespace } from "../plans/plans.ts";
import type { Quarantined } from "./batches.ts";
import type { RecordOrigin } from "./records.ts";

/** A record of this row's id was written since: by a later slice, or a later page of the same one. */
export function hasComeSince(row: string): string {
  return `exists (select from harvest.record c where c.endpoint_id = ${row}.endpoint_id and c.item_key = ${row}.item_key
            and (c.slice_id, c.generation, c.batch_no) > (${row}.slice_id, ${row}.generation, ${row}.batch_no))`;
}

/** A condition on a row that is open: a later one of its id decides. */
export function isSuperseded(row: string): string {
  return `exists (select from harvest.quarantine n where n.endpoint_id = ${row}.endpoint_id and n.item_key = ${row}.item_key
            and n.resolved_at is null and n.quarantine_id > ${row}.quarantine_id)`;
}

// In what follows, `offset 0` keeps the lookups for each row, and with them the limit, whatever the statistics say.
const WITH_PLAN = `from harvest.ing_plan_slice s join harvest.ing_plan p on p.plan_id = s.plan_id
     where s.slice_id = q.slice_id offset 0`;
const OPEN = statement<{ item_key: string }>(
  "harvest.quarantine.open_keys",
  `select q.item_key
   from (select distinct on (item_key) endpoint_id, item_key, slice_id, generation, batch_no from harvest.quarantine
         where endpoint_id = $1 and resolved_at is null and item_key is not null order by item_key, quarantine_id desc) q
   cross join lateral (select p.namespace_key = $2 and not ${hasComeSince("q")} as is_wanted ${WITH_PLAN}) w
   where w.is_wanted order by q.item_key limit $3`,
);

/** Rows that are not decided, by another expression than `hash`, or by one that nobody has looked up. */
function byOthers(hash: string): string {
  const rows = (compared: string) => `select * from harvest.quarantine
     where endpoint_id = $1 and resolved_at is null and item_key is not null and not is_superseded
       and coalesce(expr_proto_hash, '') ${compared} ${hash}`;
  return `(${rows("<")} union all ${rows(">")})`;
}
const OPEN_BY_OTHERS = statement<{ item_key: string }>(
  "harvest.quarantine.open_keys_by_others",
  `select w.item_key from (
     select q.item_key from ${byOthers("$3")} q
     cross join lateral (
       select p.namespace_key = $2 and p.expr_proto_hash <> $3 and not ${isSuperseded("q")} and not ${hasComeSince("q")}
              and not exists (select from harvest.bad_id b
                              where b.endpoint_id = $1 and b.item_id = q.item_key and b.expires_at > now()) as is_wanted
       ${WITH_PLAN}) w
     where w.is_wanted limit $4) w
   order by w.item_key`,
);

/**
 * The ids that are quarantined and have not come since; with `exprProtoHash`, those that another expression has read, and that are
 * not left alone. Of more than `limit`, any.
 */
export async function quarantinedKeys(
  reader: Queryable,
  { endpointId, key }: Pick<Namespace, "endpointId" | "key">,
  { exprProtoHash, limit }: { exprProtoHash: string | null; limit: number },
): Promise<string[]> {
  const rows =
    exprProtoHash === null
      ? await reader.rows(OPEN, [endpointId, key, limit])
      : await reader.rows(OPEN_BY_OTHERS, [endpointId, key, exprProtoHash, limit]);
  return rows.map(({ item_key }) => item_key);
}

const RESOLVE = statement<{ quarantine_id: string }>(
  "harvest.quarantine.resolve",
  `update harvest.quarantine q set resolved_at = now()
   from ${unnest({ item_key: "text" }, "i", 2)}
   where q.endpoint_id = $1 and q.item_key = i.item_key and q.resolved_at is null returning q.quarantine_id::text`,
);

/** The records of these ids have come. Nothing is written for ids that are not quarantined. */
export async function resolveQuarantined(tx: Queryable, endpointId: number, keys: readonly string[]): Promise<void> {
  if (keys.length > 0) await tx.rows(RESOLVE, [endpointId, keys]);
}

/**
 * Rows that one plan looks at to close them; the next plan goes on. More than `IDS_MAX` (plan/update.ts): otherwise the ids that one
 * plan asks for could fill it, and nothing behind them would be closed.
 */
const LOOKED_AT_MAX = 20_000;
const CLOSE = statement(
  "harvest.quarantine.close_decided",
  `update harvest.quarantine t
   set expr_proto_hash = c.hash, is_superseded = c.is_superseded, resolved_at = case when c.has_come then now() end
   from (
     select q.quarantine_id, w.* from (select * from ${byOthers("$2")} q limit $3) q
     cross join lateral (
       select p.expr_proto_hash as hash, ${isSuperseded("q")} as is_superseded, ${hasComeSince("q")} as has_come ${WITH_PLAN}) w
     where w.is_superseded or w.has_come or q.expr_proto_hash is null
   ) c
   where t.quarantine_id = c.quarantine_id and t.resolved_at is null`,
);

/** Marks rows of other expressions that no update needs to look at again. */
export async function closeDecided(tx: Queryable, endpointId: number, exprProtoHash: string): Promise<void> {
  await tx.rows(CLOSE, [endpointId, exprProtoHash, LOOKED_AT_MAX]);
}

const QUARANTINED = { item_key: "text", reason_code: "text", reason: "text", expression: "text", fragment: "text" };
const KNOWN = statement<{ no: number }>(
  "harvest.quarantine.known",
  `select i.no::int4
   from (select *, row_number() over () as no from ${unnest(QUARANTINED, "u", 3)}) i
   cross join lateral (
     select q.*, ${hasComeSince("q")} as has_come from harvest.quarantine q
     where q.endpoint_id = $1 and q.item_key = i.item_key and q.resolved_at is null
     order by q.quarantine_id desc limit 1
   ) q
   join harvest.ing_plan_slice s on s.slice_id = q.slice_id
   join harvest.ing_plan p on p.plan_id = s.plan_id
   where p.expr_proto_hash = $2 and (q.reason_code, q.reason, q.fragment) = (i.reason_code, i.reason, i.fragment)
     and not q.has_come`,
);

/** Without those that are quarantined already, by the same expression and for the same reason, and have not come since. */
export async function newlyQuarantined(
  tx: Queryable,
  { endpointId }: Pick<RecordOrigin, "endpointId">,
  exprProtoHash: string,
  items: readonly Quarantined[],
): Promise<readonly Quarantined[]> {
  if (items.length === 0) return items;
  const known = await tx.rows(KNOWN, [endpointId, exprProtoHash, ...toArrays(QUARANTINED, items)]);
  const places = new Set(known.map(({ no }) => no - 1));
  return items.filter((_, index) => !places.has(index));
}
