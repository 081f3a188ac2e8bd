/** Data of the sizes that the console must show, for tests and `npm run bench -- console`. */

/** Runs one statement. */
export type Query = (text: string, values?: unknown[]) => Promise<unknown>;

/** A graph in which every node waits for one or two others. */
export function manyNodes(count: number) {
  return Array.from({ length: count }, (_, at) => ({
    id: `n${at}`,
    type: "noop",
    dependsOn: [...new Set([Math.floor(at / 2), at - 7])]
      .filter((from) => from >= 0 && from < at)
      .map((from) => `n${from}`),
  }));
}

/** Ended runs of a chain, one a second, with the opTimes `run-1` to `run-<count>`. */
export async function addRuns(query: Query, chainId: string, count: number): Promise<void> {
  await query(
    `insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, dag_json, op_time, trigger, triggered_by,
                                 created_at, started_at, ended_at)
     select gen_random_uuid(), $1::uuid, 1, 'often', 'SUCCESS', '{"nodes": []}', 'run-' || n, 'api', 'me',
            '2020-01-01'::timestamptz + n * '1 second'::interval, '2020-01-01', '2020-01-02'
     from generate_series(1, $2::int) n`,
    [chainId, count],
  );
}

/** Models `m0001` and so on that wait for tables on each day from 2025-01-01, or on one in `every`: 400,000 rows take 15 s. */
export async function addModels(query: Query, models: number, days: number, every = 1): Promise<void> {
  await query(
    `with m as (insert into arrivals.metrics_model (model_id, name, state, engine, sql, grain, time_zone, rerun, timeout_seconds)
       select 'm' || to_char(n, 'FM0000'), 'm', 1, 'duckdb', 'select 1', 'day', 'UTC', 'auto', 60 from generate_series(1, $1::int) n
       returning model_id)
     insert into arrivals.model_instance (model_id, op_time, state)
     select model_id, to_char(date '2025-01-01' + d, 'YYYYMMDD'), 'waiting' from m, generate_series(0, $2::int - 1, $3::int) d`,
    [models, days, every],
  );
}

/** Statements `refresh_1` and so on that read an asset. */
export async function addReaders(query: Query, tenantId: number, asset: string, count: number): Promise<void> {
  await query(
    `with made as (
       insert into lineage.node (tenant_id, kind, key, path, name)
       select $1::int, 'SQL', gen_random_uuid(), array['spark', 'refresh_' || n, 'h'], 'refresh_' || n
       from generate_series(1, $3::int) n returning id
     )
     insert into lineage.edge (tenant_id, src, kind, dst, first_at) select $1::int, $2::bigint, 'INPUT_OF', id, 1 from made`,
    [tenantId, asset, count],
  );
}

/** Lines `line 1` and so on in the log of the first attempt of a node. */
export async function addLog(query: Query, runId: string, nodeId: string, lines: number): Promise<void> {
  await query(
    `insert into chains.job_run_log (run_id, node_id, attempt, at, level, line)
     select $1::uuid, $2, 1, now(), 'info', 'line ' || n from generate_series(1, $3::int) n`,
    [runId, nodeId, lines],
  );
}
