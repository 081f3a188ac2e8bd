/** SQL that reads what is quarantined. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { hasComeSince, isSuperseded } from "./quarantine-signals.ts";

export interface QuarantineRow {
  quarantine_id: string;
  item_key: string | null;
  reason_code: string;
  reason: string;
  expression: string | null;
  fragment: string;
  slice_id: string;
  generation: number;
  batch_no: number;
  created_at: Date;
  /** A record of the id has come since. */
  resolved: boolean;
}

/** What is asked for of an endpoint. Unset fields ask for all. */
export interface QuarantineFilter {
  /** A row: those that are older. */
  before: string | undefined;
  code: string | undefined;
  /** The path that failed; empty for rows without one. */
  expression: string | undefined;
  /** Without those whose records have come since, and of each id the newest. */
  isOpen: boolean;
}

const IS_RESOLVED = `q.resolved_at is not null or ${hasComeSince("q")}`;
// From the newest on, along the index by time. What matches the filters may be rare, so only so many rows are looked at.
const LIST = statement<QuarantineRow>(
  "harvest.quarantine.list",
  `select q.quarantine_id::text, q.item_key, q.reason_code, q.reason, q.expression, q.fragment, q.slice_id::text, q.generation,
          q.batch_no, q.created_at, w.resolved
   from (select i.* from harvest.quarantine i where i.endpoint_id = $1 and i.quarantine_id < $2 order by i.quarantine_id desc limit $7) q
   cross join lateral (select ${IS_RESOLVED} as resolved, case when $5 then ${isSuperseded("q")} end as is_superseded offset 0) w
   where ($3::text is null or q.reason_code = $3) and ($4::text is null or coalesce(q.expression, '') = $4)
     and not ($5 and (w.resolved or w.is_superseded))
   order by q.quarantine_id desc limit $6`,
);
const NEWEST = String(2n ** 63n - 1n);
/** To group them takes 50 ms. */
export const LOOKED_AT_MAX = 10_000;

export function listQuarantined(
  db: Db,
  endpointId: number,
  { before = NEWEST, code, expression, isOpen }: QuarantineFilter,
  limit: number,
): Promise<QuarantineRow[]> {
  return db.read(LIST, [endpointId, before, code ?? null, expression ?? null, isOpen, limit, LOOKED_AT_MAX]);
}

const LAST_LOOKED_AT = statement<{ quarantine_id: string }>(
  "harvest.quarantine.last_looked_at",
  `select q.quarantine_id::text from harvest.quarantine q
   where q.endpoint_id = $1 and q.quarantine_id < $2 order by q.quarantine_id desc offset $3 limit 1`,
);

/** The last row that `listQuarantined` looked at; undefined if there are no more. */
export async function lastLookedAt(db: Db, endpointId: number, before = NEWEST): Promise<string | undefined> {
  return (await db.read(LAST_LOOKED_AT, [endpointId, before, LOOKED_AT_MAX - 1]))[0]?.quarantine_id;
}

export interface QuarantineGroup {
  endpoint_name: string;
  reason_code: string;
  expression: string | null;
  records: number;
  /** Of the newest. */
  reason: string;
  created_at: Date;
}
// Of each id the newest row counts; a row without an id is a record of its own.
const GROUPS = statement<QuarantineGroup>(
  "harvest.quarantine.groups",
  `select e.endpoint_name, q.reason_code, q.expression, count(*)::int4 as records,
          (array_agg(q.reason order by q.quarantine_id desc))[1] as reason, max(q.created_at) as created_at
   from harvest.reg_prov_endpoint_def e
   cross join lateral (
     select distinct on (n.item_key, case when n.item_key is null then n.quarantine_id end) n.*
     from (select quarantine_id, endpoint_id, item_key, reason_code, reason, expression, slice_id, generation, batch_no, resolved_at, created_at
           from harvest.quarantine where endpoint_id = e.endpoint_id order by quarantine_id desc limit $2) n
     order by n.item_key, case when n.item_key is null then n.quarantine_id end, n.quarantine_id desc
   ) q
   cross join lateral (select ${IS_RESOLVED} as resolved offset 0) w
   where e.provenance_code = $1 and e.removed_at is null and not w.resolved
   group by e.endpoint_name, q.reason_code, q.expression
   order by records desc, e.endpoint_name, q.reason_code, q.expression limit $3`,
);

/** Groups of what has not come since, the largest first, of the newest `LOOKED_AT_MAX` rows of each endpoint. */
export function groupQuarantined(db: Db, source: string, limit: number): Promise<QuarantineGroup[]> {
  return db.read(GROUPS, [source, LOOKED_AT_MAX, limit]);
}

const HAS_MORE = statement<{ has_more: boolean }>(
  "harvest.quarantine.has_more",
  `select exists (
     select from harvest.reg_prov_endpoint_def e
     cross join lateral (select from harvest.quarantine where endpoint_id = e.endpoint_id order by quarantine_id desc offset $2 limit 1) q
     where e.provenance_code = $1 and e.removed_at is null) as has_more`,
);

/** Whether an endpoint has rows that no group counts. */
export async function hasMoreQuarantined(db: Db, source: string): Promise<boolean> {
  return (await db.read(HAS_MORE, [source, LOOKED_AT_MAX]))[0]?.has_more ?? false;
}
