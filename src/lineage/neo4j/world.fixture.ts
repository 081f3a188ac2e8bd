/** Tenants, assets and edges in Postgres, for tests of the projection: written by SQL, without the events that would make them. */
import { randomInt } from "node:crypto";
import type { TestDatabase } from "../../../test/database.ts";
import type { Attributes } from "../graph/facts.ts";
import { keyOf, type NodeKind } from "../graph/names.ts";
import type { EdgeKey, EdgeKind } from "./store/projection.ts";

export interface NewNode {
  kind: NodeKind;
  path: string[];
  attributes?: Attributes;
  parent?: string;
  /** To have the same id in two tenants. */
  id?: string;
}

/** More than JS numbers hold exactly, so that a tenant which lost digits on its way would show. */
const newTenantId = (): string => String(2n ** 60n + BigInt(randomInt(2 ** 47)));

export function createWorld(database: TestDatabase) {
  const tenants: string[] = [];
  return {
    tenants,
    async tenant(): Promise<string> {
      const id = newTenantId();
      tenants.push(id);
      await database.query("insert into lineage.tenant (id, code, name) values ($1, $2, $3)", [
        id,
        `t${id}`,
        `Tenant ${id}`,
      ]);
      return id;
    },
    async node(tenantId: string, { kind, path, attributes = {}, parent, id }: NewNode): Promise<string> {
      const [row] = await database.query<{ id: string }>(
        `insert into lineage.node (tenant_id, id, kind, key, path, name, parent_id, attributes) overriding system value
         values ($1, coalesce($2::int8, nextval(pg_get_serial_sequence('lineage.node', 'id'))), $3, $4, $5, $6, $7, $8)
         returning id::text`,
        [tenantId, id, kind, keyOf({ kind, path }), path, path.at(-1), parent, attributes],
      );
      if (!row) throw new Error("nothing was inserted");
      return row.id;
    },
    async edge(
      tenantId: string,
      src: string,
      kind: EdgeKind,
      dst: string,
      transformations: string[] = [],
    ): Promise<EdgeKey> {
      await database.query(
        "insert into lineage.edge (tenant_id, src, kind, dst, transformations, first_at) values ($1, $2, $3, $4, $5, 0)",
        [tenantId, src, kind, dst, transformations],
      );
      return { src, kind, dst };
    },
    async removeEdge(tenantId: string, { src, kind, dst }: EdgeKey): Promise<void> {
      await database.query("delete from lineage.edge where tenant_id = $1 and src = $2 and kind = $3 and dst = $4", [
        tenantId,
        src,
        kind,
        dst,
      ]);
    },
    async describe(tenantId: string, id: string, attributes: Attributes): Promise<void> {
      await database.query("update lineage.node set attributes = $3 where tenant_id = $1 and id = $2", [
        tenantId,
        id,
        attributes,
      ]);
    },
    async setGone(tenantId: string, id: string, gone: boolean): Promise<void> {
      await database.query(
        "update lineage.node set deleted_at = case when $3 then now() end where tenant_id = $1 and id = $2",
        [tenantId, id, gone],
      );
    },
    /** Ids and edges as they should be in Neo4j, what the tenant owns left out. */
    async expected(tenantId: string): Promise<{ ids: string[]; edges: string[] }> {
      const nodes = await database.query<{ id: string }>(
        "select id::text from lineage.node where tenant_id = $1 and deleted_at is null",
        [tenantId],
      );
      const edges = await database.query<EdgeKey>(
        `select r.src::text, r.kind, r.dst::text from lineage.relationship r
         where r.tenant_id = $1 and not exists (
           select from lineage.node n where n.tenant_id = $1 and n.id in (r.src, r.dst) and n.deleted_at is not null)`,
        [tenantId],
      );
      return {
        ids: nodes.map(({ id }) => id).sort(),
        edges: edges.map(({ src, kind, dst }) => `${src} ${kind} ${dst}`).sort(),
      };
    },
  };
}
export type World = ReturnType<typeof createWorld>;

/** A catalog with a schema, two tables and a statement between them, a metric, tags and the rest: one of each kind and edge. */
export async function plantOneOfEach(world: World, tenantId: string) {
  const add = (node: NewNode) => world.node(tenantId, node);
  const catalog = await add({ kind: "CATALOG", path: ["gravitino", "hive"], attributes: { metalake: "lake" } });
  const schema = await add({ kind: "SCHEMA", path: ["gravitino", "hive", "shop"], parent: catalog });
  const inSchema = ["gravitino", "hive", "shop"];
  const orders = await add({
    kind: "TABLE",
    path: [...inSchema, "orders"],
    parent: schema,
    attributes: {
      description: "all orders",
      properties: { format: "orc" },
      partitions: [{ by: "day" }],
      tags: ["a", "b"],
    },
  });
  const daily = await add({ kind: "TABLE", path: [...inSchema, "daily"], parent: schema });
  const file = await add({ kind: "TABLE", path: ["external", "s3://b", "", "in/x.csv"], parent: catalog });
  const amount = await add({
    kind: "COLUMN",
    path: [...inSchema, "orders", "amount"],
    parent: orders,
    attributes: { dataType: "decimal(10,2)", nullable: false, position: 3, indexes: [] },
  });
  const total = await add({ kind: "COLUMN", path: [...inSchema, "daily", "total"], parent: daily });
  const sql = await add({ kind: "SQL", path: ["ns", "daily_job", "h1"], attributes: { content: "insert into daily" } });
  const job = await add({ kind: "JOB", path: ["ns", "loader"], attributes: { jobName: "loader" } });
  const revenue = await add({
    kind: "METRIC",
    path: [...inSchema, "REV"],
    parent: schema,
    attributes: { metricType: "ATOMIC", name: "Revenue" },
  });
  const derived = await add({
    kind: "METRIC",
    path: [...inSchema, "REV_D"],
    parent: schema,
    attributes: { metricType: "DERIVED" },
  });
  const composite = await add({
    kind: "METRIC",
    path: [...inSchema, "REV_C"],
    parent: schema,
    attributes: { metricType: "COMPOSITE" },
  });
  const root = await add({ kind: "WORDROOT", path: ["amt"], attributes: { name: "amount" } });
  const modifier = await add({ kind: "MODIFIER", path: ["last7d"] });
  const unit = await add({ kind: "UNIT", path: ["EUR"], attributes: { symbol: "€" } });
  const domain = await add({ kind: "VALUEDOMAIN", path: ["money"], attributes: { items: [{ value: "1" }] } });
  const tag = await add({ kind: "TAG", path: ["pii"] });
  const nodes = { catalog, schema, orders, daily, file, amount, total, sql, job, revenue, derived, composite };
  const words = { root, modifier, unit, domain, tag };
  const edges = [
    await world.edge(tenantId, orders, "INPUT_OF", sql),
    await world.edge(tenantId, sql, "OUTPUT_TO", daily),
    await world.edge(tenantId, file, "INPUT_OF", job),
    await world.edge(tenantId, total, "DERIVES_FROM", amount, ['{"type":"DIRECT"}', '{"type":"INDIRECT"}']),
    await world.edge(tenantId, revenue, "MEASURES", amount),
    await world.edge(tenantId, revenue, "FILTERS_BY", amount),
    await world.edge(tenantId, derived, "DERIVED_FROM", revenue),
    await world.edge(tenantId, composite, "COMPUTED_FROM", revenue),
    await world.edge(tenantId, amount, "HAS_VALUE_DOMAIN", domain),
    await world.edge(tenantId, orders, "HAS_TAG", tag),
  ];
  return { ids: { ...nodes, ...words }, nodes: Object.values({ ...nodes, ...words }), edges };
}
