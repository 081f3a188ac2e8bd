/** A tenant's graph and events for tests, written row by row: what a read shows is then not what ingest makes of it. */
import type { TestDatabase } from "../../../test/database.ts";
import type { Attributes } from "./facts.ts";
import { type AssetName, catalogName, columnName, keyOf, ownName, parentOf, schemaName, tableName } from "./names.ts";
import { wordsOf } from "./words.ts";

export interface TestGraph {
  tenantId: string;
  /** The id of an asset, made with all above it unless it is there. */
  asset(name: AssetName, attributes?: Attributes): Promise<string>;
  /** `shop.orders` lies in the catalog `lake`. */
  table(name: string, attributes?: Attributes): Promise<string>;
  /** `shop.orders.amount` */
  column(name: string, attributes?: Attributes): Promise<string>;
  sql(job: string, content?: string): Promise<string>;
  metric(code: string, attributes?: Attributes): Promise<string>;
  tag(name: string): Promise<string>;
  edge(from: string, kind: string, to: string, transformations?: readonly object[]): Promise<void>;
  /** A statement that reads tables and writes tables; returns its id. */
  flow(from: readonly string[], to: readonly string[], job?: string): Promise<string>;
  drop(id: string): Promise<void>;
  /** Like that, with what is left when an event of this time drops it. */
  dropped(id: string, left: { at: string; attributes: Attributes }): Promise<void>;
  /** An event that names assets; returns its id. */
  event(event: TestEvent): Promise<string>;
  renamed(from: AssetName, to: AssetName): Promise<void>;
}

export interface TestEvent {
  time: string;
  names?: readonly AssetName[];
  kind?: string;
  type?: string | null;
  run?: string | null;
  job?: string;
  state?: string;
  error?: string;
  body?: string;
}

export const lakeTable = (name: string): AssetName => {
  const [schema = "", table = ""] = name.split(".");
  return tableName("gravitino", "lake", schema, table);
};

export async function createGraph(database: TestDatabase, tenantId: string): Promise<TestGraph> {
  await database.query("insert into lineage.tenant (id, code, name, state) values ($1, $2, $2, 'READY')", [
    tenantId,
    `t${tenantId}`,
  ]);
  let made = 0;

  async function insert(name: AssetName, attributes: Attributes): Promise<string> {
    const parent = parentOf(name);
    const parentId = parent ? await insert(parent, {}) : null;
    const [row] = await database.query<{ id: string }>(
      `insert into lineage.node (tenant_id, kind, key, path, name, parent_id, attributes, words)
       values ($1, $2, $3, $4, $5, $6, $7, to_tsvector('simple', $8))
       on conflict (tenant_id, key) do update set deleted_at = null returning id::text`,
      [
        tenantId,
        name.kind,
        keyOf(name),
        name.path,
        ownName(name),
        parentId,
        JSON.stringify(attributes),
        wordsOf(name, attributes),
      ],
    );
    return row?.id ?? "";
  }

  const graph: TestGraph = {
    tenantId,
    asset: (name, attributes = {}) => insert(name, attributes),
    table: (name, attributes = {}) => insert(lakeTable(name), attributes),
    column(name, attributes = {}) {
      const [table, column] = [name.slice(0, name.lastIndexOf(".")), name.slice(name.lastIndexOf(".") + 1)];
      return insert(columnName(lakeTable(table), column), attributes);
    },
    sql: (job, content = "select 1") =>
      insert({ kind: "SQL", path: ["spark", job, `h${content.length}`] }, { content }),
    metric: (code, attributes = {}) =>
      insert({ kind: "METRIC", path: [...schemaName("gravitino", "lake", "kpi").path, code] }, { code, ...attributes }),
    tag: (name) => insert({ kind: "TAG", path: [name] }, { name }),
    async edge(from, kind, to, transformations = []) {
      await database.query(
        "insert into lineage.edge (tenant_id, src, kind, dst, transformations, first_at) values ($1, $2, $3, $4, $5, 1)",
        [tenantId, from, kind, to, transformations.map((one) => JSON.stringify(one))],
      );
    },
    async flow(from, to, job) {
      made += 1;
      const process = await graph.sql(job ?? `job${made}`);
      for (const id of from) await graph.edge(id, "INPUT_OF", process);
      for (const id of to) await graph.edge(process, "OUTPUT_TO", id);
      return process;
    },
    async drop(id) {
      await database.query("update lineage.node set deleted_at = now() where tenant_id = $1 and id = $2", [
        tenantId,
        id,
      ]);
    },
    async dropped(id, { at, attributes }) {
      await graph.drop(id);
      await database.query(
        "update lineage.node set attributes = '{}', last_attributes = $3 where tenant_id = $1 and id = $2",
        [tenantId, id, JSON.stringify(attributes)],
      );
      await database.query(
        `insert into lineage.ending (tenant_id, key, at, kind, name_kind, path, subject)
         select tenant_id, key, $3, 'dropped', kind, path, key from lineage.node where tenant_id = $1 and id = $2`,
        [tenantId, id, Date.parse(at) * 1_000],
      );
    },
    async event({ time, names = [], kind = "RUN_EVENT", type = "COMPLETE", run = null, job = "daily", ...rest }) {
      const { state = "APPLIED", error = null, body = "{}" } = rest;
      const [assertion] = await database.query<{ key: string }>(
        "insert into lineage.assertion (tenant_id, key, last_at, in_full) values ($1, gen_random_uuid(), $2, false) returning key",
        [tenantId, Date.parse(time) * 1000],
      );
      for (const name of names) {
        await database.query("insert into lineage.mention (tenant_id, key, assertion) values ($1, $2, $3)", [
          tenantId,
          keyOf(name),
          assertion?.key,
        ]);
      }
      const [row] = await database.query<{ id: string }>(
        `insert into lineage.lineage_events (tenant_id, tenant_code, tenant_name, event_time, event_type, run_uuid, job_name,
           job_namespace, _event_type, event, source, assertion, apply_state, apply_error)
         values ($1, 't', 't', $2, $3, $4, $5, 'spark', $6, $7, 'COMPUTE_ENGINE', $8, $9, $10) returning id::text`,
        [tenantId, time, type, run, job, kind, body, assertion?.key, state, error],
      );
      return row?.id ?? "";
    },
    async renamed(from, to) {
      await database.query(
        `insert into lineage.ending (tenant_id, key, at, kind, name_kind, path, to_path, to_key, subject)
         values ($1, $2, 1, 'renamed', $3, $4, $5, $6, $2)`,
        [tenantId, keyOf(from), from.kind, from.path, to.path, keyOf(to)],
      );
    },
  };
  await graph.asset(catalogName("gravitino", "lake"));
  return graph;
}
