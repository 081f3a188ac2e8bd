/**
 * How long the graph of a table takes to read where tables have many readers and some have thousands, beside the query that
 * comes to mind first: a recursive one that carries its path along to stop at circles, and so counts ways and not tables.
 */
import { pathToFileURL } from "node:url";
import { sqlState } from "../../src/kernel/data/db.ts";
import { tableGraph } from "../../src/lineage/reads/graph-reply.ts";
import { atLeast, atMost, printMarkdown, times, withGoal } from "../chains/report.ts";
import { type Contender, formatNumber, interleave, median, percentile } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";

const TENANT = "7001";
const TABLES = 38_000;
const STATEMENTS = 60_000;
const LAYERS = 10;
const BIG_HUBS = 20;
const HUBS = 200;
const METRICS = 1_000;
const DEPTH = 8;
const QUERIES = 100;
const STOP_AFTER_MS = 30_000;
const QUERY_CANCELED = "57014";

const now = () => performance.now();
/** Evenly spread and the same in every run. */
const spread = (of: string, among: number) => `(abs(hashint8(${of})::int8) % ${among})`;

/**
 * Ten layers of tables, from raw to report. A statement reads five tables of one layer and writes one or two of the next;
 * each also reads one of twenty tables that all need (some 3,000 readers each), and most one of two hundred others.
 */
const MAKE = [
  `insert into lineage.tenant (id, code, name, state) values (${TENANT}, 'bench-graph', 'bench', 'READY')`,
  `create temp table asset as
   select n::int8 as id, 'TABLE' as kind, array['external', 'lake', 'layer' || (n - 1) % ${LAYERS}, 'table_' || n] as path
   from generate_series(1, ${TABLES}) n
   union all
   select n, 'SQL', array['spark', 'job_' || n, md5(n::text)] from generate_series(${TABLES} + 1, ${TABLES + STATEMENTS}) n`,
  `insert into lineage.node (tenant_id, id, kind, key, path, name, attributes) overriding system value
   select ${TENANT}, 1000000 + id, kind, md5(kind || path::text)::uuid, path, path[cardinality(path)],
          case kind when 'SQL' then jsonb_build_object('content', repeat('select a, b from c join d using (e) ', 10))
                    else jsonb_build_object('description', 'What ' || path[4] || ' is about', 'owners', '["team"]'::jsonb) end
   from asset`,
  // Columns that metrics measure, so that the walk has to look for them.
  `insert into lineage.node (tenant_id, id, kind, key, path, name, parent_id) overriding system value
   select ${TENANT}, 2000000 + n, 'COLUMN', md5('c' || n)::uuid, t.path || 'amount'::text, 'amount', t.id
   from generate_series(1, ${METRICS}) n
   join lineage.node t on t.tenant_id = ${TENANT} and t.id = 1000000 + 1 + ${spread("n", TABLES)}`,
  `insert into lineage.node (tenant_id, id, kind, key, path, name) overriding system value
   select ${TENANT}, 3000000 + n, 'METRIC', md5('m' || n)::uuid, array['external', 'lake', 'kpi', 'metric_' || n], 'metric_' || n
   from generate_series(1, ${METRICS}) n`,
  `insert into lineage.edge (tenant_id, src, kind, dst, first_at)
   select ${TENANT}, 3000000 + n, 'MEASURES', 2000000 + n, 1 from generate_series(1, ${METRICS}) n`,
  `insert into lineage.edge (tenant_id, src, kind, dst, first_at)
   select ${TENANT}, 1000000 + e.tbl, 'INPUT_OF', 1000000 + s.id, 1 from asset s
   cross join lateral (
     select 1 + s.id % (${LAYERS} - 1) + ${LAYERS} * ${spread("s.id * 31 + k", TABLES / LAYERS)} from generate_series(1, 5) k
     union select 1 + ${spread("s.id * 37", BIG_HUBS)}
     union select 1 + ${BIG_HUBS} + ${spread("s.id * 41", HUBS)} where s.id % 6 <> 0
   ) e(tbl) where s.kind = 'SQL'`,
  `insert into lineage.edge (tenant_id, src, kind, dst, first_at)
   select ${TENANT}, 1000000 + s.id, 'OUTPUT_TO', 1000000 + e.tbl, 1 from asset s
   cross join lateral (
     select 2 + s.id % (${LAYERS} - 1) + ${LAYERS} * ${spread("s.id * 43 + k", TABLES / LAYERS)}
     from generate_series(1, 1 + (s.id % 2)::int) k
     group by 1
   ) e(tbl) where s.kind = 'SQL'`,
  "drop table asset",
  "vacuum analyze lineage.node, lineage.edge",
];

/** Every way from a table to another, down to the same depth; the circles are why it must carry them along. */
const WITH_PATHS = `
  with recursive walk as (
    select $1::int8 as id, 0 as depth, array[$1::int8] as path
    union all
    select o.dst, w.depth + 1, w.path || o.dst from walk w
    join lineage.edge i on i.tenant_id = ${TENANT} and i.src = w.id and i.kind = 'INPUT_OF'
    join lineage.edge o on o.tenant_id = ${TENANT} and o.src = i.dst and o.kind = 'OUTPUT_TO'
    where w.depth < ${DEPTH} and not o.dst = any(w.path)
  )
  select distinct id from walk`;

export async function graphFigures({ db, sql }: BenchPostgres, rounds: number): Promise<void> {
  console.error("making a graph of 100,000 assets");
  await sql(...MAKE);
  const counts = await db.exclusive(async (client) => {
    const { rows } = await client.query<{ nodes: string; edges: string; readers: string }>(
      `select (select count(*) from lineage.node where tenant_id = ${TENANT}) as nodes,
              (select count(*) from lineage.edge where tenant_id = ${TENANT}) as edges,
              (select max(n) from (select count(*) as n from lineage.edge where tenant_id = ${TENANT} group by src) x) as readers`,
    );
    return rows[0];
  });

  let next = 0;
  let partial = 0;
  /** One in ten is a hub; the directions take turns. */
  const startOf = (n: number) => 1_000_001 + (n % 10 === 0 ? n % (BIG_HUBS + HUBS) : (n * 7_919) % TABLES);
  const query = (name: string, nodesMax: number, edgesMax: number): Contender => ({
    name,
    async round() {
      const took: number[] = [];
      for (let n = 0; n < QUERIES; n += 1) {
        next += 1;
        const direction = (["down", "up", "both"] as const)[next % 3] ?? "both";
        const asked = { node: String(startOf(next)), direction, depth: DEPTH, nodesMax, edgesMax };
        const started = now();
        const answer = await tableGraph(db, TENANT, asked, now);
        took.push(now() - started);
        if (answer.partial) partial += 1;
        if (answer.nodes.length > nodesMax || answer.edges.length > edgesMax) throw new Error("a limit was passed");
      }
      return percentile(took, 0.95);
    },
  });
  const usual = query(`Millrace, 500 nodes at most: p95 of ${QUERIES}`, 500, 5_000);
  const most = query(`Millrace, 2,000 nodes at most: p95 of ${QUERIES}`, 2_000, 10_000);
  /** Raw tables, from which everything comes. */
  let turn = 0;
  const rawTable = () => 1_000_001 + LAYERS * ((turn * 7_919) % (TABLES / LAYERS));
  const same: Contender = {
    name: "Millrace, 2,000 nodes at most, down from a raw table",
    async round() {
      turn += 1;
      const asked = {
        node: String(rawTable()),
        direction: "down",
        depth: DEPTH,
        nodesMax: 2_000,
        edgesMax: 10_000,
      } as const;
      const started = now();
      await tableGraph(db, TENANT, asked, now);
      return now() - started;
    },
  };
  const paths: Contender = {
    name: "recursive query with paths, down from the same table",
    round: () =>
      db.exclusive(async (client) => {
        await client.query(`set statement_timeout = ${STOP_AFTER_MS}`);
        const started = now();
        try {
          await client.query(WITH_PATHS, [rawTable()]);
        } catch (error) {
          if (sqlState(error) !== QUERY_CANCELED) throw error;
        }
        return now() - started;
      }),
  };
  const figures = await interleave([usual, most, same, paths], Math.min(rounds, 3), console.error);
  const of = ({ name }: Contender) => median(figures.get(name) ?? []);
  const ratio = of(paths) / of(same);
  const stopped = of(paths) >= STOP_AFTER_MS ? ", stopped" : "";
  const number = (text: string | undefined) => Number(text).toLocaleString("en");
  printMarkdown(
    `Graph of a table, depth ${DEPTH}, among ${number(counts?.nodes)} assets and ${number(counts?.edges)} edges, up to ${number(
      counts?.readers,
    )} readers of one table; ${partial} of ${next} answers were cut, and said so`,
    ["", "median", "goal"],
    [
      [usual.name, `${formatNumber(of(usual))} ms`, withGoal(of(usual), atMost(200, "ms"))],
      [most.name, `${formatNumber(of(most))} ms`, ""],
      [same.name, `${formatNumber(of(same))} ms, ${times(ratio)} as fast as:`, withGoal(ratio, atLeast(10))],
      [paths.name, `${formatNumber(of(paths))} ms${stopped}`, ""],
    ],
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await withPostgres((postgres) => graphFigures(postgres, Number(process.argv[2] ?? 3)));
}
