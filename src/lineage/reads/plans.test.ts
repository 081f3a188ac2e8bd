/** What people read finds its rows by an index, however many assets and events a tenant, or its neighbour, has. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { explain } from "../../../test/plans.ts";
import { type Db, openDb } from "../../kernel/data/db.ts";
import type { Statement } from "../../kernel/data/statement.ts";
import { assetDetail, keysOf, listed } from "./asset.ts";
import { findAsset } from "./find.ts";
import { columnGraph, tableGraph } from "./graph-reply.ts";
import { neighboursOf } from "./neighbours.ts";
import { search } from "./search.ts";
import { createStatistics } from "./statistics.ts";
import { type EventFilter, listEvents, listEventsNaming, readEvent } from "./store/events.ts";
import { readTenant } from "./tenant.ts";

const TABLES = 8_000;
const EVENTS = 30_000;
const TENANT = "1";
const HUB = "1";

const database = useDatabase();
const calls: { name: string; values: readonly unknown[] }[] = [];
let plain: Db;
let db: Db;

beforeAll(async () => {
  // One connection, since each has its own plans, with the settings of the read-only pool.
  const settings = encodeURIComponent("-c plan_cache_mode=force_custom_plan");
  const separator = database.url.includes("?") ? "&" : "?";
  plain = openDb({ connection: { connectionString: `${database.url}${separator}options=${settings}` }, poolSize: 1 });
  db = {
    ...plain,
    read: (statement, values = []) => {
      calls.push({ name: statement.name, values });
      return plain.rows(statement as Statement<never>, values);
    },
  };
  await fill("1", 0);
  await fill("2", 1_000_000);
  await database.query(
    "insert into lineage.tenant (id, code, name) select n, 'c' || n, 'n' from generate_series(100, 5000) n",
  );
  await database.query("analyze");
});
afterAll(() => plain.close());

/** Tables with two columns, of which each is read and written by a statement; all are read by the statements of the first. */
async function fill(tenantId: string, base: number): Promise<void> {
  await database.query(
    "insert into lineage.tenant (id, code, name, state) values ($1::int8, 't' || $1::int8, 't', 'READY')",
    [tenantId],
  );
  const numbers = `generate_series(1, ${TABLES}) n`;
  const node = (select: string) =>
    database.query(
      `insert into lineage.node (tenant_id, id, kind, key, path, name, parent_id, attributes, words) overriding system value
       select $1::int8, $2::int8 + x.id, x.kind, md5(x.kind || x.id)::uuid, x.path, x.path[cardinality(x.path)], $2::int8 + x.parent, '{}',
              to_tsvector('simple', array_to_string(x.path, ' ') || case when x.id % 1000 = 77 then ' rare' else ' common' end)
       from (${select}) x(id, kind, path, parent)`,
      [tenantId, base],
    );
  await node(`select 900001, 'SCHEMA', array['external', 'lake', 'shop'], null::int`);
  await node(`select n, 'TABLE', array['external', 'lake', 'shop', 'table ' || n], 900001 from ${numbers}`);
  await node(
    `select 100000 * k + n, 'COLUMN', array['external', 'lake', 'shop', 'table ' || n, 'column ' || k], n from ${numbers}, generate_series(1, 2) k`,
  );
  await node(`select 300000 + n, 'SQL', array['spark', 'job ' || n, 'x'], null::int from ${numbers}`);
  await node(
    `select 400000 + n, 'METRIC', array['external', 'lake', 'shop', 'metric ' || n], 900001 from generate_series(1, 100) n`,
  );
  const edge = (select: string) =>
    database.query(
      `insert into lineage.edge (tenant_id, src, kind, dst, first_at)
       select $1, $2::int8 + x.src, x.kind, $2::int8 + x.dst, 1 from (${select}) x(src, kind, dst) on conflict do nothing`,
      [tenantId, base],
    );
  await edge(
    `select n, 'INPUT_OF', 300000 + n from ${numbers} union all select 1, 'INPUT_OF', 300000 + n from ${numbers}`,
  );
  await edge(`select 300000 + n, 'OUTPUT_TO', 1 + n % ${TABLES} from ${numbers}`);
  await edge(`select 100000 + n, 'DERIVES_FROM', 100000 + 1 + n % ${TABLES} from ${numbers}`);
  await edge(`select 400000 + n, 'MEASURES', 100000 + n * 7 from generate_series(1, 100) n`);
  await database.query(
    `insert into lineage.summary (tenant_id, node_id, model_fingerprint, content_hash, summary)
     select $1, $2::int8 + 300000 + n, 'm', 'h', 'Reads a table' from ${numbers}`,
    [tenantId, base],
  );
  await database.query(
    `insert into lineage.execution_count (tenant_id, node_id, executions, last_at) select $1, $2::int8 + 300000 + n, 1, 1 from ${numbers}`,
    [tenantId, base],
  );
  await database.query(
    `insert into lineage.embedding (tenant_id, node_id, model_fingerprint, content_hash, dimension, vector, provider)
     select $1, $2::int8 + n, 'm', 'h', 2, '{1,2}', 'p' from ${numbers}`,
    [tenantId, base],
  );
  await database.query(
    `insert into lineage.ending (tenant_id, key, at, kind, name_kind, path, to_path, to_key, subject)
     select $1, md5('e' || n)::uuid, n, 'renamed', 'TABLE', '{b}', '{a}', md5('f' || n)::uuid, md5('e' || n)::uuid from ${numbers}`,
    [tenantId],
  );
  await database.query(
    `insert into lineage.alias (tenant_id, key, to_path, to_key, at)
     select $1, md5('a' || n)::uuid, '{a}', md5('b' || n)::uuid, n from ${numbers}`,
    [tenantId],
  );
  await database.query(
    `insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint, status)
     select 'EMBEDDING', $1, 't', 'TABLE', n, md5(n::text), 'm', 'SUCCEEDED' from ${numbers}`,
    [tenantId],
  );
  await database.query(
    `insert into lineage.assertion (tenant_id, key, last_at, in_full)
     select $1, md5('t' || n)::uuid, n, false from generate_series(1, 2000) n`,
    [tenantId],
  );
  await database.query(
    `insert into lineage.mention (tenant_id, key, assertion)
     select $1, md5('TABLE' || 1 + n % 500)::uuid, md5('t' || n)::uuid from generate_series(1, 2000) n`,
    [tenantId],
  );
  await database.query(
    `insert into lineage.lineage_events (tenant_id, tenant_code, tenant_name, event_time, event_type, run_uuid, job_name,
       job_namespace, event, source, assertion, apply_state)
     select $1, 't', 't', now() - make_interval(secs => n), 'COMPLETE', md5('r' || n / 3)::uuid, 'job ' || n % 500, 'spark',
            '{}', 'COMPUTE_ENGINE', md5('t' || 1 + n % 2000)::uuid, case when n % 10000 = 0 then 'DEAD' else 'APPLIED' end
     from generate_series(1, ${EVENTS}) n`,
    [tenantId],
  );
}

const NO_FILTER: EventFilter = {
  run: null,
  job: null,
  kind: null,
  eventType: null,
  state: null,
  from: null,
  to: null,
  after: null,
};

/** Of each call of each statement: three times as many pages as were seen, or more. */
async function expectPages(read: () => Promise<unknown>, most: Record<string, number>): Promise<void> {
  calls.length = 0;
  await read();
  expect([...new Set(calls.map(({ name }) => name))].sort()).toEqual(Object.keys(most).sort());
  for (const { name, values } of calls) {
    const facts = await explain(plain, `"${name}"(${values.map(literal).join(", ")})`);
    expect(facts.nodes, name).not.toContain("Seq Scan");
    expect(facts.pages, `pages of ${name}`).toBeLessThan(most[name] ?? 0);
  }
}

const WIDE = { direction: "both", depth: 2, nodesMax: 100, edgesMax: 500 } as const;

test("a hub with thousands of readers is cut by the statement, not after it", async () => {
  const look = () => tableGraph(db, TENANT, { ...WIDE, node: HUB }, () => performance.now());
  await expectPages(look, {
    "lineage.read.assets": 120,
    "lineage.walk.has_metrics": 20,
    "lineage.walk.along": 1_100,
    "lineage.walk.against": 500,
    "lineage.walk.metrics_of_tables": 100,
  });
});

test("what a graph leaves out is counted by keys, and a page of it is read alone", async () => {
  const look = () => tableGraph(db, TENANT, { ...WIDE, node: "77", fanout: 10 }, () => performance.now());
  await expectPages(look, {
    "lineage.read.assets": 250,
    "lineage.walk.has_metrics": 20,
    "lineage.walk.along": 1_100,
    "lineage.walk.against": 500,
    "lineage.walk.metrics_of_tables": 100,
    "lineage.neighbours.count_along": 30_000,
    "lineage.neighbours.count_against": 2_000,
  });
  const page = { direction: "down", q: null, after: { kind: "INPUT_OF", id: "304000" }, limit: 20 } as const;
  await expectPages(() => neighboursOf(db, TENANT, HUB, page), {
    "lineage.read.assets": 30,
    "lineage.neighbours.list": 350,
  });
});

test("columns are walked by the keys of their edges", async () => {
  const look = () => columnGraph(db, TENANT, { ...WIDE, node: "100005" }, () => performance.now());
  await expectPages(look, {
    "lineage.read.assets": 100,
    "lineage.walk.columns_along": 50,
    "lineage.walk.columns_against": 50,
  });
});

test("a search reads what has the words, and not all of it where everything has them", async () => {
  for (const q of ["rare shop tab", "common"]) {
    const asked = { q, kind: null, limit: 20, mode: "text", dropped: true } as const;
    const most = {
      "lineage.search.text_of_dropped": 2_000,
      "lineage.search.text": q === "common" ? 25_000 : 2_000,
      "lineage.search.hits": 300,
    };
    await expectPages(() => search(db, undefined, TENANT, asked), most);
  }
});

test("an asset is found, shown and listed by keys", async () => {
  await expectPages(() => findAsset(db, TENANT, "table 77"), {
    "lineage.read.assets_by_key": 100,
    "lineage.read.assets_by_name": 100,
  });
  const ofNothing = "hdfs://nn.example.org:8020/w/of/nothing";
  await expectPages(() => expect(findAsset(db, TENANT, ofNothing)).rejects.toThrow(ofNothing), {
    "lineage.read.assets_by_key": 400,
    "lineage.aliases": 400,
    "lineage.endings": 800,
    "lineage.read.assets_by_name": 100,
  });
  await expectPages(() => assetDetail(db, TENANT, "77"), {
    "lineage.read.asset": 30,
    "lineage.read.above": 40,
    "lineage.read.columns": 40,
    "lineage.read.labels": 20,
    "lineage.read.neighbours": 200,
    "lineage.read.keys_of_names": 30,
    "lineage.read.events_naming": 350,
  });
  const page = { kind: null, name: null, parent: null, limit: 20, after: null };
  await expectPages(() => listed(db, TENANT, page), { "lineage.read.list": 60 });
  const after = { kind: "TABLE", name: "table 5", id: "5" };
  await expectPages(() => listed(db, TENANT, { ...page, kind: "TABLE", after }), { "lineage.read.list_kind": 60 });
});

test("events are read from the end of an index, whatever they are narrowed by", async () => {
  const [dead] = await database.query<{ id: string; run: string }>(
    "select id::text, run_uuid::text as run from lineage.lineage_events where apply_state = 'DEAD' and tenant_id = 1 limit 1",
  );
  const { id = "", run = "" } = dead ?? {};
  const narrowed: Partial<EventFilter>[] = [
    {},
    { run },
    { job: { namespace: "spark", name: "job 77" } },
    { kind: "RUN_EVENT" },
    { state: "DEAD" },
    { after: { at: String((Date.now() - 3_600_000) * 1_000), id: "1" } },
    { from: new Date(Date.now() - 3_600_000).toISOString(), to: new Date(Date.now() - 1_800_000).toISOString() },
  ];
  for (const filter of narrowed) {
    const read = () => listEvents(db, TENANT, { ...NO_FILTER, ...filter }, 20);
    await expectPages(read, { "lineage.read.events": 75 });
  }
  await expectPages(() => readEvent(db, TENANT, id), { "lineage.read.event": 20 });
  const keys = await keysOf(db, TENANT, "77");
  await expectPages(() => listEventsNaming(db, TENANT, keys, NO_FILTER, 20), { "lineage.read.events_naming": 350 });
});

test("statistics count by indexes", async () => {
  await database.query("vacuum lineage.node, lineage.edge, lineage.lineage_events, lineage.ol_async_task");
  const statistics = createStatistics(db, { now: () => 0 });
  await expectPages(() => statistics(TENANT), {
    "lineage.statistics.assets": 3_000,
    "lineage.statistics.edges": 3_000,
    "lineage.statistics.hours": 2_500,
    "lineage.statistics.newest": 20,
    "lineage.statistics.unapplied": 100,
    "lineage.statistics.tasks": 100,
  });
  const caller = { name: "t", keyId: null, scopes: [], tenantId: TENANT, source: null, rateLimitPerMinute: null };
  await expectPages(() => readTenant(db, caller, undefined), { "lineage.read.tenant": 10 });
});

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return quoted(`{${value.map((item) => JSON.stringify(String(item))).join(",")}}`);
  return quoted(typeof value === "string" ? value : JSON.stringify(value));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
