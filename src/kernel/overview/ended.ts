/**
 * Work of one kind that has ended in a range of time, counted in buckets and in lanes: by chain, by model, by source. Modules name
 * their table and columns; the statement is the same for all. It needs an index on the time of the end that includes what it reads.
 */
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { Range } from "./range.ts";
import type * as replies from "./replies.ts";

export interface EndedSpec {
  /** Of the statement. */
  name: string;
  /** Of hints: `run`. */
  kind: string;
  /** A table with the alias `t`. */
  table: string;
  /** The condition of the index. */
  where: string;
  id: string;
  endedAt: string;
  /** When it was asked for. */
  since: string;
  succeeded: string;
  failed: string;
  /** What it is counted by, as text. */
  lane: string;
  /** The name of `l.lane`, for people. */
  laneName?: string;
  /** A query for the `lane` of each that is under way. */
  underWay: string;
}

type Ended = replies.Ended<Date>;
type Lane = replies.Lane;

const LANES_MAX = 10;
/** The newest are counted. */
const ENDED_MAX = 50_000;

interface EndedRow {
  lanes: Omit<Lane, "cells">[];
  cells: (Lane["cells"][number] & { lane: string })[];
  buckets: Ended["buckets"];
  all_lanes: number;
  counted: number;
  first: Date | null;
}

export type ReadEnded = (db: Db, range: Range, endedMax?: number) => Promise<Ended>;

export function endedOf(spec: EndedSpec): ReadEnded {
  const counts = (row: string) =>
    `count(*)::int as ended, count(*) filter (where ${row}.failed)::int as failed,
     count(*) filter (where not (${row}.failed or ${row}.succeeded))::int as stopped`;
  const read = statement<EndedRow>(
    spec.name,
    `with ended as materialized (
       select ${spec.lane} as lane, ${spec.id} as id, ${spec.endedAt} as ended_at, ${spec.succeeded} as succeeded, ${spec.failed} as failed,
              extract(epoch from ${spec.endedAt} - ${spec.since}) * 1000 as ms,
              floor(extract(epoch from ${spec.endedAt} - $1::timestamptz) * 1000 / $3::float8)::int as bucket
       from ${spec.table} where ${spec.where} and ${spec.endedAt} >= $1 and ${spec.endedAt} < $2
       order by ${spec.endedAt} desc limit $4
     ), lane as materialized (
       select w.lane, sum(w.under_way)::int as under_way, sum(w.n) as n, sum(w.failed) as failed
       from (select lane, 0 as under_way, count(*) as n, count(*) filter (where failed) as failed from ended group by lane
             union all
             select u.lane, count(*), count(*), 0 from (${spec.underWay} limit $4) u group by u.lane) w
       group by w.lane
     ), shown as materialized (
       select lane, under_way from lane order by (failed > 0) desc, n desc, lane limit $5
     )
     select
       coalesce((select json_agg(json_build_object('id', l.lane, 'name', coalesce(${spec.laneName ?? "l.lane"}, l.lane), 'underWay', l.under_way))
                 from shown l), '[]') as lanes,
       coalesce((select json_agg(c) from (
         select e.lane, e.bucket, ${counts("e")},
                (array_agg(e.id order by e.ended_at desc) filter (where e.failed))[1] as "failedId"
         from ended e join shown s on s.lane = e.lane group by e.lane, e.bucket order by e.bucket) c), '[]') as cells,
       coalesce((select json_agg(b) from (
         select e.bucket, ${counts("e")}, round(percentile_disc(0.95) within group (order by e.ms)) as "p95Ms"
         from ended e group by e.bucket order by e.bucket) b), '[]') as buckets,
       (select count(*)::int from lane) as all_lanes, (select count(*)::int from ended) as counted,
       (select min(ended_at) from ended) as first`,
  );

  return async (db, { from, to, bucketMs }, endedMax = ENDED_MAX) => {
    const [row] = await db.read(read, [from, to, bucketMs, endedMax, LANES_MAX]);
    if (!row) throw new Error("the statement of what has ended returned no row");
    return {
      kind: spec.kind,
      lanes: row.lanes.map((one) => ({
        ...one,
        cells: row.cells.flatMap(({ lane, ...cell }) => (lane === one.id ? [cell] : [])),
      })),
      moreLanes: row.all_lanes - row.lanes.length,
      buckets: row.buckets,
      countedFrom: row.counted === endedMax ? row.first : null,
    };
  };
}
