/** The definitions and data of the scenario: a shop's daily revenue and visits by region, and the publications that the sources list. */
import { SOURCES } from "./sources.ts";

/** A file that has passed all stages counts as the arrival of a table. */
export const ARRIVING_FILES = [{ pattern: "visits-(\\d{8})\\.jsonl", table: "VISITS", opTime: "$1" }];

/** The region of each visit, by shard. */
const VISITS = [
  ["EU", "EU", "US"],
  ["EU", "US", "US"],
  ["EU", "EU", "EU", "US"],
] as const;

export interface TrackedFile {
  filename: string;
  shards: number[];
}

export function visitsFile(opTime: string): TrackedFile {
  return { filename: `visits-${opTime}.jsonl`, shards: VISITS.map((_, shard) => shard) };
}

/** Tracked, but not the arrival of a table. `part` tells several of one day apart. */
export function clicksFile(opTime: string, part = ""): TrackedFile {
  return { filename: `clicks-${opTime}${part}.jsonl`, shards: [0, 1] };
}

export function visitsOf(shard: number): readonly string[] {
  return VISITS[shard] ?? [];
}

/** Fetches the orders of a day, loads them and announces the table. */
export function ordersChain(shopUrl: string) {
  const shape = JSON.stringify([{ id: "integer", region: "varchar", amount: "double" }]);
  return {
    name: "orders",
    dagJson: {
      nodes: [
        {
          id: "fetch",
          type: "http",
          cfg: { url: `${shopUrl}/orders?day=\${opTime}` },
          retry: { maxAttempts: 3, backoffMs: 100 },
        },
        {
          id: "load",
          type: "sql",
          dependsOn: ["fetch"],
          cfg: {
            sql: lines(
              "create table if not exists ORDERS (op_time varchar, id integer, region varchar, amount double);",
              "delete from ORDERS where op_time = $day;",
              "insert into ORDERS select $day, o.id, o.region, o.amount",
              `from (select unnest(from_json($orders, '${shape}')) as o)`,
            ),
            params: { day: "${opTime}", orders: "${nodes.fetch.artifact.body.orders}" },
          },
        },
        { id: "announce", type: "arrive", dependsOn: ["load"], cfg: { table: "ORDERS" } },
      ],
    },
  };
}

/** Writes the visits of one shard into the lake: a Parquet file in the partition of the day. */
export function visitsChain(tablesDir: string) {
  const folder = `${tablesDir}/VISITS`.replaceAll("'", "''");
  return {
    name: "visits",
    dagJson: {
      nodes: [
        {
          id: "write",
          type: "sql",
          cfg: {
            sql: lines(
              "copy (select unnest($visits) as region, $day as op_time)",
              `to '${folder}' (format parquet, partition_by (op_time), filename_pattern 'shard-\${params.shard}-',`,
              "overwrite_or_ignore)",
            ),
            params: { day: "${opTime}", visits: "${params.visits}" },
          },
        },
      ],
    },
  };
}

/** Loads the names of the regions. It does not announce the table: an API call does. */
export const REGIONS_CHAIN = {
  name: "regions",
  dagJson: {
    nodes: [
      {
        id: "load",
        type: "sql",
        cfg: {
          sql: "create or replace table REGIONS as from (values ('EU', 'Europe'), ('US', 'America')) as r (code, name)",
        },
      },
    ],
  },
};

/** Its only node gets a 403 on every attempt, so the run needs attention. */
export function exportChain(shopUrl: string) {
  const upload = { id: "upload", type: "http", cfg: { url: `${shopUrl}/export?day=\${opTime}` } };
  return { name: "export", dagJson: { nodes: [upload] } };
}

/** A table without data: its arrival approves a day. */
export const SIGN_OFF = "SIGN_OFF";

export const INDICATORS = {
  KD1001: { type: "EXTENDED", name: "Revenue" },
  KD1002: { type: "EXTENDED", name: "Visits" },
  KD1003: { type: "EXTENDED", name: "Works" },
  KD1004: { type: "EXTENDED", name: "Approved works" },
  KC2001: { type: "COMPUTED", name: "Revenue per visit", expression: "KD1001 / KD1002" },
} as const;
export type KpiId = keyof typeof INDICATORS;

export const MODELS = {
  SALES: {
    name: "Revenue by region",
    grain: "day",
    dependencies: [{ table: "ORDERS" }, { table: "REGIONS" }],
    kpis: ["KD1001"],
    sql: lines(
      "select 'KD1001' as kpi_id, sum(o.amount) as value, r.name as region",
      "from ORDERS o join REGIONS r on r.code = o.region where o.op_time = $op_time group by r.name",
    ),
  },
  TRAFFIC: {
    name: "Visits by region",
    grain: "day",
    dependencies: [{ table: "VISITS" }, { table: "REGIONS" }],
    kpis: ["KD1002"],
    sql: lines(
      "select 'KD1002' as kpi_id, count(*) as value, r.name as region",
      "from VISITS v join REGIONS r on r.code = v.region where v.op_time = $op_time group by r.name",
    ),
  },
  WORKS: {
    name: "Works per day by source",
    grain: "day",
    dependencies: Object.values(SOURCES).map(({ table }) => ({ table })),
    kpis: ["KD1003"],
    sql: lines(
      "select 'KD1003' as kpi_id, count(*) as value, 'Crossref' as source from crossref_works where op_time = $op_time",
      "union all",
      "select 'KD1003', count(*), 'PubMed' from pubmed_articles where op_time = $op_time",
      "union all",
      "select 'KD1003', count(*), 'arXiv' from arxiv_records where op_time = $op_time",
    ),
  },
  APPROVED: {
    name: "Approved works per day",
    grain: "day",
    dependencies: [{ table: "crossref_works" }, { table: SIGN_OFF }],
    kpis: ["KD1004"],
    sql: "select 'KD1004' as kpi_id, count(*) as value from crossref_works where op_time = $op_time",
  },
} as const;
export type ModelId = keyof typeof MODELS;

/** The two of growth have the same callback and secret, so an update of both KPIs is one delivery. */
export const SUBSCRIPTIONS = [
  { kpiId: "KD1001", team: "finance" },
  { kpiId: "KD1002", team: "growth" },
  { kpiId: "KC2001", team: "growth" },
  { kpiId: "KD1003", team: "research" },
  // Many retries, because this team is down for a while.
  { kpiId: "KD1003", team: "audit", retryNum: 20 },
] as const;

function lines(...texts: string[]): string {
  return texts.join("\n");
}
