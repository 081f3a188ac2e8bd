/**
 * SQL of updates that ask again for what was quarantined. An id is open until a record of it has come since: by an update, which says so
 * in the row, or by a harvest, which shows in the record.
 */
import { toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Quarantined } from "./batches.ts";
import type { Namespace } from "./plans.ts";
import type { RecordOrigin } from "./records.ts";

/** A record of this row's id was written since: by a later slice, or a later page of the same one. */
export function hasComeSince(row: string): string {
  return `exists (select from harvest.record c where c.endpoint_id = ${row}.endpoint_id and c.item_key = ${row}.item_key
            and (c.slice_id, c.generation, c.batch_no) > (${row}.slice_id, ${row}.generation, ${row}.batch_no))`;
}

// The newest row of each id decides. With $3, only those that another expression has read, and that are not left alone.
const OPEN = statement<{ item_key: string }>(
  "harvest.quarantine.open_keys",
  `select q.item_key
   from (select distinct on (item_key) endpoint_id, item_key, slice_id, generation, batch_no from harvest.quarantine
         where endpoint_id = $1 and resolved_at is null and item_key is not null order by item_key, quarantine_id desc) q
   join harvest.ing_plan_slice s on s.slice_id = q.slice_id
   join harvest.ing_plan p on p.plan_id = s.plan_id
   where p.namespace_key = $2 and not ${hasComeSince("q")}
     and ($3::text is null or p.expr_proto_hash <> $3 and not exists (
       select from harvest.bad_id b where b.endpoint_id = $1 and b.item_id = q.item_key and b.expires_at > now()))
   order by q.item_key limit $4`,
);

/** The ids that are quarantined and have not come since; with `exprProtoHash`, those that another expression has read. */
export async function quarantinedKeys(
  reader: Queryable,
  { endpointId, key }: Pick<Namespace, "endpointId" | "key">,
  { exprProtoHash, limit }: { exprProtoHash: string | null; limit: number },
): Promise<string[]> {
  return (await reader.rows(OPEN, [endpointId, key, exprProtoHash, limit])).map(({ item_key }) => item_key);
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

const RESOLVE_CAME = statement(
  "harvest.quarantine.resolve_came",
  `update harvest.quarantine q set resolved_at = now()
   where q.endpoint_id = $1 and q.resolved_at is null and q.item_key is not null and ${hasComeSince("q")}`,
);

/** What harvests have brought since is looked at once, and not again by every update. */
export async function resolveCame(tx: Queryable, endpointId: number): Promise<void> {
  await tx.rows(RESOLVE_CAME, [endpointId]);
}

const QUARANTINED = { item_key: "text", reason_code: "text", reason: "text", expression: "text", fragment: "text" };
const KNOWN = statement<{ no: number }>(
  "harvest.quarantine.known",
  `select i.no::int4
   from (select *, row_number() over () as no from ${unnest(QUARANTINED, "u", 3)}) i
   cross join lateral (
     select q.* from harvest.quarantine q where q.endpoint_id = $1 and q.item_key = i.item_key and q.resolved_at is null
     order by q.quarantine_id desc limit 1
   ) q
   join harvest.ing_plan_slice s on s.slice_id = q.slice_id
   join harvest.ing_plan p on p.plan_id = s.plan_id
   where p.expr_proto_hash = $2 and (q.reason_code, q.reason, q.fragment) = (i.reason_code, i.reason, i.fragment)`,
);

/** Without those that are quarantined already, by the same expression and for the same reason. */
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
