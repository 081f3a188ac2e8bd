/** How events become statements: merged, sorted, in batches, and again after failures. */
import { randomUUID } from "node:crypto";
import { Neo4jError } from "neo4j-driver";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { until } from "../../../test/until.ts";
import { createOutbox } from "../../kernel/work/outbox.ts";
import { openPulse } from "../../kernel/work/pulse.ts";
import { openSession } from "../../kernel/work/session.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { openDriver } from "./driver.ts";
import { openMemoryGraph, serverSettings, type TestGraph, watched } from "./graph.fixture.ts";
import { createProjection, GRAPH_TOPIC, type GraphChanged } from "./index.ts";
import { createWorld, plantOneOfEach } from "./world.fixture.ts";

const database = useDatabase();
const world = createWorld(database);
let graph: TestGraph;
/** What was sent, the constraints and indexes left out. */
let sent: { cypher: string; parameters: Record<string, unknown> }[];
/** Called before each statement. */
let before: (cypher: string) => void;

beforeEach(() => {
  graph = openMemoryGraph();
  sent = [];
  before = () => {};
});

function open(batchRows = 1_000) {
  const driver = watched(graph.driver, (cypher, parameters) => {
    before(cypher);
    if (!cypher.startsWith("CREATE ")) sent.push({ cypher, parameters: parameters as Record<string, unknown> });
  });
  const projection = createProjection({ db: database.db, log: silentLog, driver, settings: { batchRows } });
  return {
    ...projection,
    send: (changed: GraphChanged, stop = new AbortController().signal) => {
      return projection.consumer.deliver({ eventId: randomUUID(), topic: GRAPH_TOPIC, payload: changed }, stop);
    },
  };
}
const withRows = () => sent.filter(({ parameters }) => "rows" in parameters);
const rowsOf = ({ parameters }: (typeof sent)[number]) => parameters["rows"] as { id?: string; src?: string }[];

describe("events that wait", () => {
  test("are merged: what several of them name is written once", async () => {
    const { send } = open();
    const tenantId = await world.tenant();
    const { nodes, edges } = await plantOneOfEach(world, tenantId);
    await Promise.all([1, 2, 3].map(() => send({ tenantId, nodes, edges })));
    const written = withRows().filter(({ cypher }) => cypher.includes("SET n = row.properties"));
    expect(
      written
        .flatMap(rowsOf)
        .map(({ id }) => id ?? "")
        .sort(),
    ).toEqual(nodes.toSorted());
  });

  test("are written by one statement for each label and each type of edge, with rows in the order of ids", async () => {
    const { send } = open();
    const tenantId = await world.tenant();
    const { nodes, edges } = await plantOneOfEach(world, tenantId);
    await send({ tenantId, nodes: nodes.toReversed(), edges: [] });
    await send({ tenantId, nodes: [], edges: edges.toReversed() });
    const texts = sent.filter(({ cypher }) => cypher.includes("SET n = row.properties")).map(({ cypher }) => cypher);
    expect(new Set(texts).size).toBe(texts.length);
    const tables = withRows().find(({ cypher }) => cypher.includes("n:Table,"));
    expect(tables && rowsOf(tables)).toHaveLength(3);
    for (const statement of withRows()) {
      const ids = rowsOf(statement).map(({ id, src }) => BigInt(id ?? src ?? 0));
      expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)));
    }
  });

  test("are written in batches, each in a transaction that begins with the tenant's lock", async () => {
    const { send } = open(4);
    const tenantId = await world.tenant();
    const { nodes, edges } = await plantOneOfEach(world, tenantId);
    await send({ tenantId, nodes, edges });
    expect(Math.max(...withRows().map((statement) => rowsOf(statement).length))).toBeLessThanOrEqual(4);
    const locks = sent.filter(({ cypher }) => cypher.includes("MERGE (t:Tenant"));
    expect(locks).toHaveLength(Math.ceil(nodes.length / 4) + Math.ceil(edges.length / 4));
    expect(sent[0]).toBe(locks[0]);
  });

  test("carry their tenant as an integer that has lost no digit", async () => {
    const { send } = open();
    const tenantId = await world.tenant();
    await send({ tenantId, nodes: [await world.node(tenantId, { kind: "TAG", path: ["x"] })], edges: [] });
    expect(new Set(sent.map(({ parameters }) => parameters["tenantId"]))).toEqual(new Set([BigInt(tenantId)]));
  });

  test("put no unknown kind of edge into a statement's text", async () => {
    const { send } = open();
    const tenantId = await world.tenant();
    await send({ tenantId, nodes: [], edges: [{ src: "1", kind: "X]->() DETACH DELETE a //", dst: "2" }] });
    expect(sent).toEqual([]);
  });
});

describe("a failure", () => {
  test("of one event does not fail those that came with it", async () => {
    const { send } = open();
    const [good, bad] = [await world.tenant(), await world.tenant()];
    const tag = await world.node(good, { kind: "TAG", path: ["x"] });
    const table = await world.node(bad, { kind: "CATALOG", path: ["gravitino", "x"] });
    before = (cypher) => {
      if (cypher.includes("n:Catalog")) throw new Error("refused");
    };
    const outcomes = await Promise.allSettled([
      send({ tenantId: bad, nodes: [table], edges: [] }),
      send({ tenantId: good, nodes: [tag], edges: [] }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(Object.keys((await graph.look(good)).nodes)).toEqual([tag]);
  });

  test("of the server fails all that wait at once, without a try for each", async () => {
    const { send } = open();
    const tenantId = await world.tenant();
    let tries = 0;
    before = () => {
      tries += 1;
      throw new Neo4jError("no server", "ServiceUnavailable", "", "");
    };
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => send({ tenantId, nodes: ["1"], edges: [] })));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(tries).toBe(1);
  });

  test("of the server leaves the event in the outbox until the server is back", async () => {
    const { consumer } = open();
    const tenantId = await world.tenant();
    const tag = await world.node(tenantId, { kind: "TAG", path: ["x"] });
    const pulse = await openPulse({ db: database.db, log: silentLog });
    const session = await openSession({ pulse, log: silentLog, version: "0", roles: [] });
    try {
      const wake = createWake();
      const outbox = createOutbox([consumer], wake);
      const [relay] = outbox.relays({ db: database.db, session, wake, log: silentLog });
      const payload = { tenantId, nodes: [tag], edges: [] };
      await database.db.tx((tx) => outbox.emit(tx, [{ eventId: randomUUID(), topic: GRAPH_TOPIC, payload }]));
      before = () => {
        throw new Neo4jError("no server", "ServiceUnavailable", "", "");
      };
      expect(await relay?.runOnce()).toEqual({ claimed: 1 });
      await relay?.idle();
      const waiting = await database.query("select state, attempt, last_error from kernel.outbox");
      expect(waiting).toEqual([{ state: "ready", attempt: 1, last_error: "no server" }]);
      before = () => {};
      await until(async () => (await relay?.runOnce())?.["claimed"] === 1, "the end of the pause");
      await relay?.idle();
      expect(Object.keys((await graph.look(tenantId)).nodes)).toEqual([tag]);
    } finally {
      await session.close();
      await pulse.stop();
    }
  });

  test("of a server that is not there is told by health, and takes no retries", async () => {
    const driver = await openDriver({ ...serverSettings, url: "bolt://127.0.0.1:1" }, {});
    const projection = createProjection({ db: database.db, log: silentLog, driver, settings: { batchRows: 10 } });
    expect(await projection.health()).toEqual({ error: expect.stringContaining("ECONNREFUSED") });
    await projection.close();
  });
});

test("a process that stops writes no further batch", async () => {
  const { send } = open(1);
  const tenantId = await world.tenant();
  const { nodes } = await plantOneOfEach(world, tenantId);
  const stopping = new AbortController();
  before = (cypher) => {
    if (cypher.includes("SET n = row.properties")) stopping.abort(new Error("stopping"));
  };
  await expect(send({ tenantId, nodes, edges: [] }, stopping.signal)).rejects.toThrow("stopping");
  expect(Object.keys((await graph.look(tenantId)).nodes)).toHaveLength(1);
});

describe("the settings", () => {
  test("take secrets from the environment, and say which one is missing", async () => {
    const settings = { ...serverSettings, url: "bolt://127.0.0.1:1", password: "${env.NEO4J_PASSWORD}" };
    await expect(openDriver(settings, {})).rejects.toThrow(
      "lineage.neo4j.password names the environment variable NEO4J_PASSWORD",
    );
    await (await openDriver(settings, { NEO4J_PASSWORD: "x" })).close();
  });

  test("with an address that is none are refused", async () => {
    await expect(openDriver({ ...serverSettings, url: "${env.URL}" }, { URL: "http://x" })).rejects.toThrow(
      "lineage.neo4j.url is not an address of a Neo4j server",
    );
  });
});
