/** The API of the projection to Neo4j: a rebuild in the background, and what is told of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { createGraph } from "../graph/graph.fixture.ts";
import { type ProjectionServer, startProjectionServer } from "./server.fixture.ts";

const database = useDatabase();
let server: ProjectionServer;

beforeAll(async () => {
  server = await startProjectionServer(database);
  for (const tenantId of ["7", "8"]) {
    const graph = await createGraph(database, tenantId); // Has a catalog.
    await graph.flow([await graph.table("shop.orders")], [await graph.table("shop.daily")]);
  }
});
afterAll(() => server.stop());
beforeEach(() => {
  server.before = async () => {};
});

/** Of one tenant: catalog, schema, two tables and a statement; three places and two flows. */
const ONE_TENANT = { nodes: 5, edges: 5 };
const show = async () => (await server.send("/api/v1/lineage/projection")).body;
const rebuild = (body?: Json) => server.send("/api/v1/lineage/projection:rebuild", { method: "POST", body });
const ended = () =>
  until(async () => {
    const last = (await show())["rebuild"] as Json;
    return last["status"] !== "RUNNING" && last;
  }, "the end of the rebuild");

test("a rebuild goes on behind its answer, tells how far it is, and is the only one", async () => {
  const gate = signal();
  const held = signal();
  server.before = async (cypher) => {
    if (!cypher.includes("HAS_SCHEMA")) return;
    held.resolve();
    await gate.promise;
  };
  const begun = await rebuild();
  expect(begun).toMatchObject({ status: 202, body: { status: "RUNNING", tenantId: null, endedAt: null } });
  await held.promise;
  const running = (await show())["rebuild"] as Json;
  expect(running).toMatchObject({ id: begun.body["id"], status: "RUNNING", currentTenantId: 7, tenants: 1 });
  expect(running).toMatchObject({ nodes: ONE_TENANT.nodes, edges: 0 });

  expect(await rebuild()).toMatchObject({
    status: 409,
    body: { code: "REBUILD_RUNNING", error: expect.stringContaining(String(running["startedAt"])) },
  });
  gate.resolve();
  const twice = { nodes: 2 * ONE_TENANT.nodes, edges: 2 * ONE_TENANT.edges };
  expect(await ended()).toMatchObject({ status: "SUCCESS", currentTenantId: 8, tenants: 2, deleted: 0, ...twice });
  expect(await show()).toMatchObject({ configured: true, error: null, rebuild: { error: null } });
});

test("one tenant is rebuilt alone, and one that is not there is not found", async () => {
  expect((await rebuild({ tenantId: 7 })).status).toBe(202);
  expect(await ended()).toMatchObject({
    status: "SUCCESS",
    tenantId: 7,
    currentTenantId: 7,
    tenants: 1,
    ...ONE_TENANT,
  });
  expect(await rebuild({ tenantId: 9 })).toMatchObject({ status: 404, body: { code: "TENANT_NOT_FOUND" } });
  expect((await rebuild({ tenant: 7 })).status).toBe(400);
  expect(
    await database.query("select target from kernel.audit_log where action = 'lineage.rebuild' order by id"),
  ).toEqual([{ target: "all" }, { target: "7" }]);
});

test("a rebuild that fails says why, and the next one may begin", async () => {
  server.before = () => Promise.reject(new Error("the disk of the graph is full"));
  await rebuild();
  expect(await ended()).toMatchObject({ status: "FAILED", error: "the disk of the graph is full" });
  server.before = async () => {};
  expect((await rebuild({ tenantId: 8 })).status).toBe(202);
  expect(await ended()).toMatchObject({ status: "SUCCESS", error: null });
});

test("what waits, and what Neo4j has refused, is told until a rebuild has made up for it", async () => {
  expect(await show()).toMatchObject({
    waiting: 0,
    oldestSeconds: 0,
    lastError: null,
    needsRebuild: false,
    refused: [],
  });
  await database.query(
    `insert into kernel.outbox (event_id, consumer, topic, payload, created_at, attempt, last_error)
     values (gen_random_uuid(), 'neo4j', 'lineage.graph', '{}', now() - interval '1 hour', 7, 'no server')`,
  );
  await database.query("insert into lineage.mirror_gap (tenant_id, changes, error) values (7, 3, 'not a value')");
  const { oldestSeconds, ...told } = await show();
  expect(told).toMatchObject({
    waiting: 1,
    lastError: "no server",
    needsRebuild: true,
    refused: [{ tenantId: 7, changes: 3, error: "not a value", since: expect.any(String) }],
  });
  expect(Math.floor(Number(oldestSeconds) / 100)).toBe(36);
  await rebuild({ tenantId: 7 });
  await ended();
  expect(await show()).toMatchObject({ waiting: 1, needsRebuild: false, refused: [] });
  await database.query("delete from kernel.outbox");
});

test("it is for admins", async () => {
  const { key } = await server.keys.create(
    database.db,
    { name: "reader", scopes: ["lineage:read", "lineage:write"] },
    "test",
  );
  const headers = { authorization: `Bearer ${key}` };
  expect((await server.send("/api/v1/lineage/projection", { headers })).status).toBe(403);
  expect((await server.send("/api/v1/lineage/projection:rebuild", { method: "POST", headers })).status).toBe(403);
});

describe("in a whole Millrace", () => {
  const without = useMillrace(database);
  const unreachable = useMillrace(database, {
    lineage: { neo4j: { url: "bolt://127.0.0.1:1", user: "neo4j", password: "secret", batchRows: 10 } },
  });

  test("without Neo4j nothing is rebuilt, and a sentence says what to do", async () => {
    expect((await without.api.get("/api/v1/lineage/projection")).body).toEqual({
      configured: false,
      server: null,
      error: null,
      waiting: 0,
      oldestSeconds: 0,
      lastError: null,
      needsRebuild: false,
      refused: [],
      rebuild: null,
    });
    expect(await without.api.post("/api/v1/lineage/projection:rebuild", {})).toMatchObject({
      status: 409,
      body: { code: "PROJECTION_NOT_CONFIGURED", error: expect.stringContaining("`lineage.neo4j`") },
    });
  });

  test("a server that does not answer is told, without the password", async () => {
    const { body } = await unreachable.api.get("/api/v1/lineage/projection");
    expect(body).toMatchObject({ configured: true, server: null, error: expect.stringContaining("127.0.0.1:1") });
    expect(JSON.stringify(body)).not.toContain("secret");
  });
});
