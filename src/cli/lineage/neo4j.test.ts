/** `millrace lineage neo4j` and `rebuild-neo4j`: a rebuild is followed to its end and sets the exit code. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { cliFor } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { createGraph } from "../../lineage/graph/graph.fixture.ts";
import { type ProjectionServer, startProjectionServer } from "../../lineage/neo4j/server.fixture.ts";

const database = useDatabase();
const without = useMillrace(database);
let server: ProjectionServer;
const millrace = (...words: string[]) => cliFor(server)("lineage", ...words);

beforeAll(async () => {
  server = await startProjectionServer(database);
  const graph = await createGraph(database, "7");
  await graph.flow([await graph.table("shop.orders")], [await graph.table("shop.daily")]);
});
afterAll(() => server.stop());
beforeEach(() => {
  server.before = async () => {};
});

test("a rebuild is followed to its end", async () => {
  const { exit, stdout, stderr } = await millrace("rebuild-neo4j");
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  expect(stdout).toMatch(/^The graph in Neo4j was rebuilt: 1 tenant, 5 nodes, 5 edges, in [\d.]+m?s\.\n$/);
  const one = await millrace("rebuild-neo4j", "--tenant", "7", "--json");
  expect(JSON.parse(one.stdout)).toMatchObject({ status: "SUCCESS", tenantId: 7, nodes: 5, edges: 5, deleted: 5 });
  expect((await millrace("rebuild-neo4j", "--tenant", "8")).exit).toBe(4);
});

test("one that is running is shown, and refuses a second one", async () => {
  const gate = signal();
  const held = signal();
  server.before = async () => {
    held.resolve();
    await gate.promise;
  };
  expect((await millrace("rebuild-neo4j", "--no-wait")).stdout).toMatch(
    /^The graph in Neo4j has been rebuilding since \S+Z: 0 tenants, 0 nodes, 0 edges so far\.\n$/,
  );
  await held.promise;
  expect(await millrace("rebuild-neo4j")).toMatchObject({
    exit: 3,
    stderr: expect.stringContaining("[REBUILD_RUNNING]"),
  });
  expect((await millrace("neo4j")).stdout).toMatch(/^\S+ answers\.\nThe graph in Neo4j has been rebuilding since /);
  gate.resolve();
  await until(async () => (await millrace("neo4j")).stdout.includes("was rebuilt"), "the end of the rebuild");
});

test("one that fails is exit code 1, with the reason", async () => {
  server.before = () => Promise.reject(new Error("the disk of the graph is full"));
  const { exit, stdout } = await millrace("rebuild-neo4j");
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /^The graph in Neo4j could not be rebuilt: the disk of the graph is full\nIt is incomplete until a rebuild succeeds; /,
  );
  expect((await millrace("neo4j")).stdout).toContain("could not be rebuilt");
});

test("what waits and what was refused is shown, and a graph that needs a rebuild is exit code 1", async () => {
  await database.query(
    `insert into kernel.outbox (event_id, consumer, topic, payload, attempt, last_error)
     values (gen_random_uuid(), 'neo4j', 'lineage.graph', '{}', 7, 'no server')`,
  );
  const waiting = await millrace("neo4j");
  expect(waiting.exit).toBe(0);
  expect(waiting.stdout).toMatch(/^\S+ answers\.\nChanges that wait: 1, the oldest for \d+ s\. no server\n/);
  await database.query("insert into lineage.mirror_gap (tenant_id, changes, error) values (7, 3, 'not a value')");
  const { exit, stdout } = await millrace("neo4j");
  expect(exit).toBe(1);
  expect(stdout).toMatch(
    /\nTenant 7: 3 changes refused since \S+Z: not a value\nIts graph is incomplete until `millrace lineage rebuild-neo4j`/,
  );
  await database.query("delete from lineage.mirror_gap");
  await database.query("delete from kernel.outbox");
});

test("without Neo4j both commands say what to do", async () => {
  const own = cliFor(without);
  expect(await own("lineage", "neo4j")).toMatchObject({
    exit: 0,
    stdout: "The graph is not projected to Neo4j: set `lineage.neo4j` in the configuration file.\n",
  });
  expect(await own("lineage", "rebuild-neo4j")).toMatchObject({
    exit: 3,
    stderr: expect.stringContaining("Name one under `lineage.neo4j`"),
  });
});
