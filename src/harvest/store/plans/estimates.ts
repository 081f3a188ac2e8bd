/** SQL of the sizes of slices: what is expected of one, and what earlier ones had. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Estimate, EstimateBasis } from "../../slice/estimate.ts";
import type { Namespace } from "./plans.ts";

/** As `slice_spec` has it. */
export function telemetryOf({ records, basis }: Estimate): {
  telemetry: { totalEstimated: number; basis: EstimateBasis };
} {
  return { telemetry: { totalEstimated: records, basis } };
}

const SET = statement<{ records: number | null; basis: EstimateBasis | null }>(
  "harvest.slice.set_estimate",
  `update harvest.ing_plan_slice s set slice_spec = s.slice_spec || $3::jsonb
   from harvest.ing_plan_slice o
   left join harvest.ing_plan_slice p on p.slice_id = o.parent_slice_id
   where o.slice_id = s.slice_id and s.slice_id = $1 and s.generation = $2 and s.status_code = 'READY'
   returning (p.slice_spec #>> '{telemetry,totalEstimated}')::float8 as records, p.slice_spec #>> '{telemetry,basis}' as basis`,
);

/** Answers what was expected of the slice that was cut into this one. The caller holds the fence of its task. */
export async function setEstimate(
  tx: Queryable,
  { sliceId, generation }: { sliceId: string; generation: number },
  estimate: Estimate,
): Promise<Estimate | undefined> {
  const [row] = await tx.rows(SET, [sliceId, generation, JSON.stringify(telemetryOf(estimate))]);
  return row?.records != null && row.basis !== null ? { records: row.records, basis: row.basis } : undefined;
}

/** Slices on each side of a window that are looked at, however many there are. */
const NEAR = 100;
const SIDES = (["HARVEST/EXPR", "BACKFILL/CUSTOM"] as const).flatMap((name) => {
  const [operation, scope] = name.split("/");
  const side = (isBefore: boolean) => `(
     select ${isBefore} as is_before, * from harvest.ing_plan_slice
     where endpoint_id = $1 and operation_code = '${operation}' and namespace_scope_code = '${scope}' and namespace_key = $2
       and window_from ${isBefore ? "<" : ">="} $3 order by window_from ${isBefore ? "desc" : "asc"} limit ${NEAR})`;
  return [side(true), side(false)];
});
// Each side is a range of the index of the timeline, which stops after so many slices.
const NEAREST = statement<{ is_before: boolean; records: number; ms: number }>(
  "harvest.slice.nearest_sizes",
  `select s.is_before, sum(s.received + s.quarantined + s.missing)::float8 as records,
          sum(extract(epoch from s.window_to - s.window_from) * 1000)::float8 as ms
   from (${SIDES.join(" union all ")}) s
   where s.status_code = 'COMPLETE' group by s.is_before order by s.is_before desc`,
);

/** How many records a millisecond had in complete slices before this time, or else after it. Undefined if there is none. */
export async function recordsPerMs(
  reader: Queryable,
  { endpointId, key }: Pick<Namespace, "endpointId" | "key">,
  before: Date,
): Promise<number | undefined> {
  const [row] = await reader.rows(NEAREST, [endpointId, key, before]);
  return row && row.ms > 0 ? row.records / row.ms : undefined;
}

/** An earlier slice of the same window. */
export interface EarlierSlice {
  /** The place of the window in the question, from 1 on. */
  no: number;
  records: number;
  /** How it was divided, if it was: its first parts in their order. */
  parts: { part: object; records: number | null }[] | null;
  parts_count: number;
}

/** Of each slice that was divided. */
const PARTS_SHOWN = 20;
const EARLIER = statement<EarlierSlice>(
  "harvest.slice.earlier",
  `select i.no::int4, s.records::float8, p.parts, coalesce(p.parts_count, 0)::int4 as parts_count
   from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as i(window_from, window_to, no)
   cross join lateral (
     select s.slice_id, s.is_parted, coalesce(s.expected, t.total, s.received + s.quarantined + s.missing) as records
     from harvest.ing_plan_slice s
     cross join lateral (select case when s.slice_spec #>> '{telemetry,basis}' = 'TOTAL'
                                     then (s.slice_spec #>> '{telemetry,totalEstimated}')::int8 end as total) t
     where s.endpoint_id = $1 and s.namespace_key = $2 and s.window_from = i.window_from and s.window_to = i.window_to
       and (s.status_code = 'COMPLETE' or s.expected is not null or t.total is not null)
     order by s.slice_id desc limit 1
   ) s
   left join lateral (
     select jsonb_agg(jsonb_build_object('part', q.part, 'records', q.expected) order by q.slice_no)
              filter (where q.n <= ${PARTS_SHOWN}) as parts, count(*) as parts_count
     from (select part, expected, slice_no, row_number() over (order by slice_no) as n
           from harvest.ing_plan_slice where root_slice_id = s.slice_id and status_code <> 'SPLIT') q
   ) p on s.is_parted`,
);

/** What the newest slice of each of these windows had, of those that are known. */
export function earlierSlices(
  reader: Queryable,
  { endpointId, key }: Pick<Namespace, "endpointId" | "key">,
  windows: readonly { from: Date; to: Date }[],
): Promise<EarlierSlice[]> {
  if (windows.length === 0) return Promise.resolve([]);
  const [from, to] = [windows.map((window) => window.from), windows.map((window) => window.to)];
  return reader.rows(EARLIER, [endpointId, key, from, to]);
}
