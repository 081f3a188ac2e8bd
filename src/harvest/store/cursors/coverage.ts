/** SQL for the time that a source is harvested for: what is complete, what is missing, what is under way. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Operation, WindowSpec } from "../../spec/snapshot.ts";
import { isShownGap } from "../plans/gaps.ts";

export interface NamespaceRow {
  endpoint_id: number;
  endpoint_name: string;
  operation_code: Operation;
  namespace_scope_code: string;
  namespace_key: string;
  window: WindowSpec;
  /** Null before the first. */
  watermark: Date | null;
  /** Slices up to this one were made before the last rewind. */
  slices_after: string;
  moved_at: Date | null;
  /** The beginning of the earliest slice. */
  first_from: Date | null;
}

// Those with a watermark, and those of the newest plans: a source whose first window fails has none yet.
const NAMESPACES = statement<NamespaceRow>(
  "harvest.coverage.namespaces",
  `with known as (
     select p.endpoint_id, p.endpoint_name, c.operation_code, c.namespace_scope_code, c.namespace_key, p.spec_fingerprint,
            c.normalized_instant as watermark, c.slices_after, c.updated_at as moved_at
     from harvest.ing_cursor c join harvest.ing_plan p on p.plan_id = c.plan_id where c.provenance_code = $1 and c.operation_code <> 'UPDATE'
     union all
     select p.endpoint_id, p.endpoint_name, p.operation_code, p.namespace_scope_code, p.namespace_key, p.spec_fingerprint, null, 0, null
     from harvest.reg_prov_endpoint_def e
     cross join lateral (select * from harvest.ing_plan p where p.endpoint_id = e.endpoint_id and p.operation_code <> 'UPDATE'
                         order by p.plan_id desc limit 1) p
     where e.provenance_code = $1 and e.removed_at is null and not exists (
       select from harvest.ing_cursor c where c.provenance_code = $1 and c.operation_code = p.operation_code
         and c.namespace_scope_code = p.namespace_scope_code and c.namespace_key = p.namespace_key)
   )
   select known.endpoint_id, known.endpoint_name, known.operation_code, known.namespace_scope_code, known.namespace_key,
          n.snapshot #> '{spec,window}' as window, known.watermark, known.slices_after::text, known.moved_at,
          (select min(s.window_from) from harvest.ing_plan_slice s
           where s.endpoint_id = known.endpoint_id and s.operation_code = known.operation_code
             and s.namespace_scope_code = known.namespace_scope_code and s.namespace_key = known.namespace_key
             and s.window_from is not null) as first_from
   from known join harvest.snapshot n on n.spec_fingerprint = known.spec_fingerprint
   where n.snapshot #> '{spec,window}' is not null
   order by known.moved_at desc nulls first, known.namespace_key limit $2`,
);

/** Of endpoints with windows; those that moved last come first. */
export function namespacesOf(db: Db, source: string, limit: number): Promise<NamespaceRow[]> {
  return db.read(NAMESPACES, [source, limit]);
}

export type CoverKind = "complete" | "accepted" | "open" | "gap";
export interface CoverRow {
  /** The place of its namespace among those asked for, from 1 on. */
  place: number;
  kind: CoverKind;
  from: Date;
  to: Date;
  /** Of one slice; null for what is complete. */
  plan_id: string | null;
  slice_id: string | null;
  reason: string | null;
}

// A slice that was made before the last rewind counts up to the watermark: what is behind that is to be harvested once more.
const UNTIL = "least(s.window_to, case when s.slice_id <= i.slices_after then i.watermark end)";
const OF_NAMESPACE = `s.endpoint_id = i.endpoint_id and s.operation_code = i.operation_code
       and s.namespace_scope_code = i.scope and s.namespace_key = i.key
       and s.window_from >= i.since - make_interval(secs => i.widest_sec) and s.window_to > i.since and s.window_from < ${UNTIL}`;
const COVER = statement<CoverRow>(
  "harvest.coverage.ranges",
  `with i as (
     select * from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::float8[], $8::timestamptz[], $9::int8[])
       with ordinality as i(endpoint_id, operation_code, scope, key, since, widest_sec, watermark, slices_after, place)
   )
   select i.place::int4, 'complete' as kind, lower(done.range) as "from", upper(done.range) as "to",
          null::uuid as plan_id, null as slice_id, null as reason
   from i cross join lateral (
     select unnest(range_agg(tstzrange(s.window_from, ${UNTIL}))) as range
     from harvest.ing_plan_slice s where ${OF_NAMESPACE} and s.status_code = 'COMPLETE'
   ) done
   union all
   select i.place::int4, case when one.accepted_at is not null then 'accepted' when one.status_code = 'READY' then 'open' else 'gap' end,
          one.window_from, one.until, one.plan_id, one.slice_id::text, one.reason
   from i cross join lateral (
     select s.*, ${UNTIL} as until from harvest.ing_plan_slice s
     where ${OF_NAMESPACE} and (s.status_code = 'READY' or ${isShownGap("s")}) order by s.window_from, s.slice_id limit $7
   ) one
   order by 1, 3`,
);

export interface Namespace {
  endpointId: number;
  operation: string;
  scope: string;
  key: string;
  /** The beginning of what is shown. */
  since: Date;
  /** The longest slice, which may begin before. */
  widestMs: number;
  watermark: Date | null;
  slicesAfter: string;
}

/** At most `limit` slices of each namespace that are not complete. */
export function coverOf(db: Db, namespaces: readonly Namespace[], limit: number): Promise<CoverRow[]> {
  return db.read(COVER, [
    namespaces.map(({ endpointId }) => endpointId),
    namespaces.map(({ operation }) => operation),
    namespaces.map(({ scope }) => scope),
    namespaces.map(({ key }) => key),
    namespaces.map(({ since }) => since),
    namespaces.map(({ widestMs }) => widestMs / 1_000),
    limit,
    namespaces.map(({ watermark }) => watermark),
    namespaces.map(({ slicesAfter }) => slicesAfter),
  ]);
}
