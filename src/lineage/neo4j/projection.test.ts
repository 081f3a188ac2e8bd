/** What stands in Neo4j after events: in a graph in memory, and on a real server if there is one. */
import { randomUUID } from "node:crypto";
import { Neo4jError } from "neo4j-driver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { signal, until } from "../../../test/until.ts";
import type { GraphDriver } from "./driver.ts";
import { noServer, openMemoryGraph, openServerGraph, type TestGraph, watched } from "./graph.fixture.ts";
import { createProjection, GRAPH_TOPIC, type GraphChanged, type Projection } from "./index.ts";
import { createWorld, plantOneOfEach } from "./world.fixture.ts";

const database = useDatabase();
const world = createWorld(database);

function projectionInto(driver: GraphDriver, batchRows = 1_000): Projection {
  return createProjection({ db: database.db, log: silentLog, driver, settings: { batchRows } });
}

function send(projection: Projection, changed: Partial<GraphChanged> & { tenantId: string }): Promise<void> {
  const payload: GraphChanged = { nodes: [], edges: [], ...changed };
  return projection.consumer.deliver(
    { eventId: randomUUID(), topic: GRAPH_TOPIC, payload },
    new AbortController().signal,
  );
}

const places = [
  { place: "in memory", open: async () => openMemoryGraph(), skip: false },
  { place: "on a server", open: openServerGraph, skip: noServer !== false },
];

for (const { place, open, skip } of places) {
  describe.skipIf(skip)(`the graph ${place}`, () => {
    let graph: TestGraph;
    let projection: Projection;
    beforeAll(async () => {
      graph = await open();
      projection = projectionInto(graph.driver);
    });
    afterAll(() => graph.close(world.tenants));

    /** Whether it holds what Postgres does, no more and no less. */
    async function expectSame(tenantId: string): Promise<void> {
      const { nodes, edges } = await graph.look(tenantId);
      const inside = edges.filter((edge) => !edge.startsWith("tenant "));
      expect({ ids: Object.keys(nodes).sort(), edges: inside }).toEqual(await world.expected(tenantId));
    }

    test("has one node of each kind with its labels, and all edges", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes, edges });
      const picture = await graph.look(tenantId);
      const labels = Object.entries(ids).map(([name, id]) => [name, picture.nodes[id]?.labels.join(":")]);
      expect(Object.fromEntries(labels)).toEqual({
        catalog: "Catalog:Knowledge",
        schema: "Knowledge:Schema",
        orders: "Knowledge:Table",
        daily: "Knowledge:Table",
        file: "Knowledge:Table",
        amount: "Column:Knowledge",
        total: "Column:Knowledge",
        sql: "Knowledge:SQL",
        job: "Job:Knowledge",
        revenue: "AtomicMetric:Knowledge",
        derived: "DerivedMetric:Knowledge",
        composite: "CompositeMetric:Knowledge",
        root: "Knowledge:WordRoot",
        modifier: "Knowledge:Modifier",
        unit: "Knowledge:Unit",
        domain: "Knowledge:ValueDomain",
        tag: "Knowledge:Tag",
      });
      const owned = (type: string, ...of: string[]) => of.map((id) => `tenant ${type} ${id}`);
      expect(picture.edges.filter((edge) => edge.startsWith("tenant "))).toEqual(
        [
          ...owned("OWNS_CATALOG", ids.catalog),
          ...owned("OWNS_SQL", ids.sql),
          ...owned("OWNS_JOB", ids.job),
          ...owned("OWNS_TAG", ids.tag),
          ...owned("OWNS_METRIC", ids.revenue, ids.derived, ids.composite),
          ...owned("OWNS_WORDROOT", ids.root),
          ...owned("OWNS_MODIFIER", ids.modifier),
          ...owned("OWNS_UNIT", ids.unit),
          ...owned("OWNS_VALUEDOMAIN", ids.domain),
        ].sort(),
      );
      expect(picture.edges).toContain(`${ids.catalog} HAS_TABLE ${ids.file}`);
      expect(picture.transformations).toEqual({
        [`${ids.total} DERIVES_FROM ${ids.amount}`]: ['{"type":"DIRECT"}', '{"type":"INDIRECT"}'],
      });
      expect(picture.tenant).toEqual({ id: BigInt(tenantId), code: `t${tenantId}`, name: `Tenant ${tenantId}` });
      await expectSame(tenantId);
    });

    test("holds attributes as properties, of the type that they have", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await database.query(
        `insert into lineage.embedding (tenant_id, node_id, model_fingerprint, content_hash, dimension, vector, provider, updated_at)
         values ($1, $2, 'm', 'h', 3, '{0.5,-1,0.25}', 'local:small', '2026-01-02T03:04:05.678Z')`,
        [tenantId, ids.sql],
      );
      await database.query(
        `insert into lineage.summary (tenant_id, node_id, model_fingerprint, content_hash, summary, tags, generated_at)
         values ($1, $2, 'm', 'h', 'Adds up', '{sum,day}', '2026-01-02T03:04:06Z')`,
        [tenantId, ids.sql],
      );
      await database.query(
        "insert into lineage.execution_count (tenant_id, node_id, executions, last_at) values ($1, $2, 7, 0)",
        [tenantId, ids.sql],
      );
      await send(projection, { tenantId, nodes, edges });
      const { nodes: seen } = await graph.look(tenantId);
      const always = { tenantId: BigInt(tenantId), createdAt: expect.any(String), updatedAt: expect.any(String) };
      expect(seen[ids.orders]?.properties).toEqual({
        ...always,
        id: ids.orders,
        name: "orders",
        description: "all orders",
        properties: '{"format":"orc"}',
        partitions: '[{"by":"day"}]',
        tags: ["a", "b"],
      });
      expect(seen[ids.amount]?.properties).toEqual({
        ...always,
        id: ids.amount,
        name: "amount",
        dataType: "decimal(10,2)",
        nullable: false,
        position: 3n,
      });
      expect(seen[ids.sql]?.properties).toEqual({
        ...always,
        id: ids.sql,
        content: "insert into daily",
        summary: "Adds up",
        tags: ["sum", "day"],
        summaryGeneratedAt: "2026-01-02T03:04:06.000Z",
        embedding: [0.5, -1, 0.25],
        embeddingProvider: "local:small",
        embeddingUpdatedAt: "2026-01-02T03:04:05.678Z",
        executionCount: 7n,
      });
      expect(seen[ids.revenue]?.properties).toMatchObject({ code: "REV", name: "Revenue" });
      expect(seen[ids.domain]?.properties).toMatchObject({ code: "money", name: "money", items: '[{"value":"1"}]' });
    });

    test("loses an attribute that is gone", async () => {
      const tenantId = await world.tenant();
      const tag = await world.node(tenantId, { kind: "TAG", path: ["pii"], attributes: { description: "personal" } });
      await send(projection, { tenantId, nodes: [tag] });
      await world.describe(tenantId, tag, { properties: { a: 1 } });
      await send(projection, { tenantId, nodes: [tag] });
      const { nodes } = await graph.look(tenantId);
      expect(nodes[tag]?.properties).not.toHaveProperty("description");
      expect(nodes[tag]?.properties).toMatchObject({ properties: '{"a":1}' });
    });

    test("gives a metric the label of its new type, and it stays the same node", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes, edges });
      await world.describe(tenantId, ids.revenue, { metricType: "COMPOSITE" });
      await send(projection, { tenantId, nodes: [ids.revenue] });
      expect((await graph.look(tenantId)).nodes[ids.revenue]?.labels).toEqual(["CompositeMetric", "Knowledge"]);
      await expectSame(tenantId);
    });

    test("loses what is gone: assets with their edges, and edges by themselves", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes, edges });
      await world.setGone(tenantId, ids.sql, true);
      const [tagged] = edges.filter(({ kind }) => kind === "HAS_TAG");
      if (!tagged) throw new Error("no tag");
      await world.removeEdge(tenantId, tagged);
      await send(projection, { tenantId, nodes: [ids.sql], edges: [tagged] });
      const { edges: left } = await graph.look(tenantId);
      expect(left).not.toContain(`${ids.orders} HAS_TAG ${ids.tag}`);
      await expectSame(tenantId);
    });

    test("has no edge to an asset that is gone, even before the asset itself is told", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes, edges });
      await world.setGone(tenantId, ids.sql, true);
      await world.setGone(tenantId, ids.schema, true);
      await send(projection, { tenantId, nodes: [ids.orders], edges });
      const picture = await graph.look(tenantId);
      expect(Object.keys(picture.nodes)).toHaveLength(nodes.length);
      expect(picture.edges).toContain(`${ids.schema} HAS_TABLE ${ids.daily}`);
      expect(picture.edges).not.toContain(`${ids.schema} HAS_TABLE ${ids.orders}`);
      expect(picture.edges.filter((edge) => / (INPUT_OF|OUTPUT_TO) /.test(edge))).toEqual([
        `${ids.file} INPUT_OF ${ids.job}`,
      ]);
    });

    test("is the same whatever the order of events, each told alone and some twice", async () => {
      const tenantId = await world.tenant();
      const { nodes, edges } = await plantOneOfEach(world, tenantId);
      const events = [
        ...nodes.map((id) => ({ tenantId, nodes: [id] })),
        ...edges.map((edge) => ({ tenantId, edges: [edge] })),
      ];
      // Backwards every edge comes before its ends and every child before its parent.
      for (const event of [...events.toReversed(), ...events.slice(0, 5)]) await send(projection, event);
      await expectSame(tenantId);
    });

    test("has the edges and children of an asset that is here again, of which only the asset is told", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes, edges });
      await world.setGone(tenantId, ids.orders, true);
      await send(projection, { tenantId, nodes: [ids.orders] });
      expect((await graph.look(tenantId)).nodes).not.toHaveProperty(ids.orders);
      await world.setGone(tenantId, ids.orders, false);
      await send(projection, { tenantId, nodes: [ids.orders] });
      await expectSame(tenantId);
    });

    test("is whole after a write that broke off between a new node and its edges", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes: nodes.filter((id) => id !== ids.orders), edges });
      let broken = 0;
      const breaking = projectionInto(
        watched(graph.driver, (cypher) => {
          if (!cypher.includes("[r:INPUT_OF]") || broken > 0) return;
          broken += 1;
          throw new Error("the process ended");
        }),
      );
      await expect(send(breaking, { tenantId, nodes: [ids.orders] })).rejects.toThrow("the process ended");
      expect((await graph.look(tenantId)).nodes).not.toHaveProperty(ids.orders);
      await send(breaking, { tenantId, nodes: [ids.orders] });
      await expectSame(tenantId);
    });

    test("is written once more, with what Postgres holds then, after a deadlock", async () => {
      const tenantId = await world.tenant();
      const tag = await world.node(tenantId, { kind: "TAG", path: ["pii"], attributes: { description: "old" } });
      let deadlocks = 0;
      const unlucky = projectionInto(
        watched(graph.driver, async (cypher) => {
          if (!cypher.includes("SET n = row.properties") || deadlocks > 0) return;
          deadlocks += 1;
          await world.describe(tenantId, tag, { description: "new" });
          throw new Neo4jError("a deadlock", "Neo.TransientError.Transaction.DeadlockDetected", "", "");
        }),
      );
      await send(unlucky, { tenantId, nodes: [tag] });
      expect(deadlocks).toBe(1);
      expect((await graph.look(tenantId)).nodes[tag]?.properties).toMatchObject({ description: "new" });
    });

    test("has a table under the schema that it was moved to, and no longer under the former", async () => {
      const tenantId = await world.tenant();
      const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
      await send(projection, { tenantId, nodes, edges });
      const other = await world.node(tenantId, {
        kind: "SCHEMA",
        path: ["gravitino", "hive", "archive"],
        parent: ids.catalog,
      });
      await database.query("update lineage.node set parent_id = $3 where tenant_id = $1 and id = $2", [
        tenantId,
        ids.orders,
        other,
      ]);
      await send(projection, { tenantId, nodes: [ids.orders] });
      await send(projection, { tenantId, nodes: [other] });
      await expectSame(tenantId);
    });

    test("keeps tenants with the same ids apart", async () => {
      const [one, two] = [await world.tenant(), await world.tenant()];
      const first = await plantOneOfEach(world, one);
      await world.node(two, { kind: "TAG", path: ["pii"], id: first.ids.tag });
      await world.node(two, { kind: "CATALOG", path: ["gravitino", "hive"], id: first.ids.orders });
      const whole = { tenantId: one, nodes: first.nodes, edges: first.edges };
      await Promise.all([
        send(projection, whole),
        // The second tenant is told of everything that the first one has, and of edges which it does not have.
        send(projection, { tenantId: two, nodes: first.nodes, edges: first.edges }),
      ]);
      await expectSame(one);
      await expectSame(two);
      await world.setGone(two, first.ids.tag, true);
      await world.setGone(two, first.ids.orders, true);
      await send(projection, { tenantId: two, nodes: first.nodes, edges: first.edges });
      await expectSame(one);
      expect((await graph.look(two)).edges).toEqual([]);
    });

    test("does not go back to an older state when two processes write at once", async () => {
      const tenantId = await world.tenant();
      const tag = await world.node(tenantId, { kind: "TAG", path: ["pii"], attributes: { description: "old" } });
      await send(projection, { tenantId, nodes: [tag] });
      const read = signal();
      const goOn = signal();
      const slow = projectionInto(
        watched(graph.driver, async (cypher) => {
          if (!cypher.includes("SET n = row.properties")) return;
          read.resolve();
          await goOn.promise;
        }),
      );
      const first = send(slow, { tenantId, nodes: [tag] });
      await read.promise;
      await world.describe(tenantId, tag, { description: "new" });
      const second = send(projection, { tenantId, nodes: [tag] });
      await Promise.race([second, until(() => graph.isWaiting(), "the second to be held back")]);
      goOn.resolve();
      await Promise.all([first, second]);
      expect((await graph.look(tenantId)).nodes[tag]?.properties).toMatchObject({ description: "new" });
    });

    describe("when it is rebuilt", () => {
      test("loses what Postgres does not know and has everything else, page by page, with events in between", async () => {
        const tenantId = await world.tenant();
        const { ids, nodes, edges } = await plantOneOfEach(world, tenantId);
        await send(projection, { tenantId, nodes, edges });
        await world.setGone(tenantId, ids.modifier, true); // Nobody tells of it.
        await world.setGone(tenantId, ids.job, true);
        await send(projection, { tenantId, nodes: [ids.tag] });
        const small = projectionInto(graph.driver, 3);
        const told: Promise<void>[] = [];
        let steps = 0;
        const rebuilt = await small.rebuild(tenantId, () => {
          steps += 1;
          told.push(send(projection, { tenantId, nodes: nodes.slice(steps % 5, 9), edges: edges.slice(steps % 7) }));
        });
        await Promise.all(told);
        await expectSame(tenantId);
        const { ids: left, edges: leftEdges } = await world.expected(tenantId);
        expect(rebuilt.get(tenantId)).toMatchObject({ nodes: left.length, edges: leftEdges.length });
        expect(steps).toBeGreaterThan(10);
      });

      test("touches no other tenant", async () => {
        const [one, two] = [await world.tenant(), await world.tenant()];
        const other = await plantOneOfEach(world, two);
        await send(projection, { tenantId: two, nodes: other.nodes, edges: other.edges });
        await plantOneOfEach(world, one);
        await projection.rebuild(one, () => {});
        await expectSame(one);
        await expectSame(two);
      });

      test("asks for a tenant that exists", async () => {
        await expect(projection.rebuild("404", () => {})).rejects.toThrow("There is no tenant 404");
      });
    });

    test("tells which server it is", async () => {
      expect(await projection.health()).toEqual({ server: expect.stringMatching(/^(Neo4j\/|memory)/) });
    });

    test("gets its constraints and indexes twice without a complaint", async () => {
      const log = recordingLog();
      for (const _ of [1, 2]) {
        const deps = { db: database.db, log, driver: graph.driver, settings: { batchRows: 10 } };
        await createProjection(deps).prepare();
      }
      expect(log.lines).toEqual([]);
    });
  });
}
