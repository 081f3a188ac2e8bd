/** SQL for the list of chains with their last runs. It reads a fixed number of runs of each chain, whatever its history. */
import type { Db } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { RunStatus } from "../engine/states.ts";

export interface ChainOverviewRow {
  chain_id: string;
  name: string;
  description: string | null;
  enabled: boolean;
  version: number;
  node_count: number;
  /** Newest first. */
  runs: {
    runId: string;
    status: RunStatus;
    reason: string | null;
    opTime: string | null;
    createdAt: string;
    startedAt: string | null;
    endedAt: string | null;
  }[];
  next_at: Date | null;
  next_name: string | null;
  waits_for: string[];
  /** p50 and p95 in milliseconds. */
  percentiles: number[] | null;
}

const RUNS_SHOWN = 20;
const RUNS_MEASURED = 100;
const TABLES_SHOWN = 20;
const REASON_LETTERS_MAX = 500;

const lastRuns = (limit: number) =>
  `(select * from chains.job_run where chain_id = d.chain_id order by created_at desc limit ${limit}) r`;
const MATCHING =
  "($1 = '' or strpos(lower(name), lower($1)) > 0 or strpos(lower(coalesce(description, '')), lower($1)) > 0)";
const PAGE = statement<ChainOverviewRow>(
  "chains.summary.page",
  `select d.chain_id, d.name, d.description, d.enabled, d.version::float8 as version,
          jsonb_array_length(d.dag_json -> 'nodes') as node_count,
          coalesce((select json_agg(json_build_object(
              'runId', r.run_id, 'status', r.status, 'reason', left(r.reason, ${REASON_LETTERS_MAX}), 'opTime', r.op_time,
              'createdAt', r.created_at, 'startedAt', r.started_at, 'endedAt', r.ended_at) order by r.created_at desc)
            from ${lastRuns(RUNS_SHOWN)}), '[]') as runs,
          s.next_at, s.name as next_name,
          array(select distinct t #>> '{}' from jsonb_path_query(d.dag_json, '$.nodes[*].waitsFor[*]') t
                order by 1 limit ${TABLES_SHOWN}) as waits_for,
          (select percentile_cont(array[0.5, 0.95]) within group (
                    order by extract(epoch from r.ended_at - r.started_at)::float8 * 1000)
           from ${lastRuns(RUNS_MEASURED)} where r.status = 'SUCCESS') as percentiles
   from (select * from chains.job_chain_definition where ${MATCHING} order by name limit $2 offset $3) d
   left join lateral (
     select next_at, name from chains.schedule
     where chain_id = d.chain_id and not paused and next_at is not null order by next_at limit 1
   ) s on d.enabled
   order by d.name`,
);
const TOTAL = statement<{ total: number }>(
  "chains.summary.total",
  `select count(*)::int as total from chains.job_chain_definition where ${MATCHING}`,
);

/** Chains whose name or description contains the keyword, by name. */
export async function listOverviews(
  db: Db,
  keyword: string,
  page: { size: number; offset: number },
): Promise<{ items: ChainOverviewRow[]; total: number }> {
  const [items, [count]] = await Promise.all([
    db.read(PAGE, [keyword, page.size, page.offset]),
    db.read(TOTAL, [keyword]),
  ]);
  return { items, total: count?.total ?? 0 };
}
