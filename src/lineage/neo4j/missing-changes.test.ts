/** Changes that are not in Neo4j yet, or that it refuses: how long they wait, and who is told. */
import { randomUUID } from "node:crypto";
import { Neo4jError } from "neo4j-driver";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { until } from "../../../test/until.ts";
import { createMetrics } from "../../kernel/telemetry/metrics.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createOutbox } from "../../kernel/work/outbox.ts";
import { openPulse } from "../../kernel/work/pulse.ts";
import { openSession } from "../../kernel/work/session.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { CATALOGUE } from "../catalogue.ts";
import { measureMirror, mirrorCheck } from "./doctor.ts";
import { isOutage, isRefusal } from "./driver.ts";
import { openMemoryGraph, type TestGraph, watched } from "./graph.fixture.ts";
import { createProjection, GRAPH_TOPIC, mirrorState, type Projection } from "./index.ts";
import { createWorld } from "./world.fixture.ts";

const database = useDatabase();
const world = createWorld(database);
let graph: TestGraph;
/** Called before each statement. */
let before: (cypher: string) => void | Promise<void>;

beforeEach(async () => {
  await database.query("truncate kernel.outbox, lineage.mirror_gap");
  graph = openMemoryGraph();
  before = () => {};
});

const failure = (code: string, message = "no") => new Neo4jError(message, code, "", "");

async function start() {
  const log = recordingLog();
  const driver = watched(graph.driver, (cypher) => before(cypher));
  const projection = createProjection({ db: database.db, log, driver, settings: { batchRows: 10 } });
  const pulse = await openPulse({ db: database.db, log: silentLog });
  const session = await openSession({ pulse, log: silentLog, version: "0", roles: [] });
  const wake = createWake();
  const outbox = createOutbox([projection.consumer], wake);
  const [relay] = outbox.relays({ db: database.db, session, wake, log });
  onTestFinished(async () => {
    await relay?.stop();
    await session.close();
    await pulse.stop();
  });
  return {
    ...projection,
    log,
    start: () => relay?.start(),
    emit: (tenantId: string, ...nodes: string[]) =>
      database.db.tx((tx) =>
        outbox.emit(
          tx,
          nodes.map((node) => ({
            eventId: randomUUID(),
            topic: GRAPH_TOPIC,
            payload: { tenantId, nodes: [node], edges: [] },
          })),
        ),
      ),
  };
}

const tag = (tenantId: string, name: string) => world.node(tenantId, { kind: "TAG", path: [name] });
const rows = () =>
  database.query<{ state: string; attempt: number }>("select state, attempt from kernel.outbox order by id");
const look = (health: Awaited<ReturnType<Projection["health"]>> = { server: "Neo4j/5" }) =>
  mirrorCheck(async () => health).look(database.db);

describe("a server that is away", () => {
  test("is told of by the doctor also while no change waits for it", async () => {
    expect(await look({ error: "Could not perform discovery." })).toMatchObject({
      verdict: "warning",
      found: "Neo4j has every change. It does not answer: Could not perform discovery.",
    });
  });

  test("is waited for, however many attempts that takes, and then has every change", async () => {
    const mirror = await start();
    const tenantId = await world.tenant();
    const nodes = [await tag(tenantId, "a"), await tag(tenantId, "b"), await tag(tenantId, "c")];
    await mirror.emit(tenantId, ...nodes);
    await database.query("update kernel.outbox set attempt = 5000, created_at = now() - interval '9 hours'");
    before = () => {
      throw failure("ServiceUnavailable", "no server");
    };
    mirror.start();
    await until(async () => (await rows()).some(({ attempt }) => attempt > 5_001), "a further attempt");
    expect(new Set((await rows()).map(({ state }) => state))).not.toContain("dead");
    expect(mirror.log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(await look()).toMatchObject({
      verdict: "warning",
      found: expect.stringMatching(/^Changes that wait for Neo4j: 3\. The oldest for 324\d\d s\. no server$/),
    });
    before = () => {};
    await until(async () => (await rows()).length === 0, "every change to be written");
    expect(Object.keys((await graph.look(tenantId)).nodes).sort()).toEqual(nodes.toSorted());
    expect(await look()).toEqual({ verdict: "ok", found: "Neo4j has every change." });
  });

  test.each([
    ["ServiceUnavailable", "no"],
    ["SessionExpired", "no"],
    ["Neo.TransientError.General.DatabaseUnavailable", "no"],
    ["Neo.ClientError.Security.Unauthorized", "no"],
    ["Neo.ClientError.Database.DatabaseNotFound", "no"],
    ["Neo.ClientError.Cluster.NotALeader", "no"],
    ["N/A", "Connection acquisition timed out in 15000 ms."],
  ])("is known by %s", (code, message) => {
    expect([isOutage(failure(code, message)), isRefusal(failure(code, message))]).toEqual([true, false]);
  });
});

describe("a change that Neo4j refuses as invalid", () => {
  const refuse = (marker: string) => {
    before = (cypher) => {
      if (cypher.includes(marker) && !cypher.startsWith("CREATE "))
        throw failure("Neo.ClientError.Statement.TypeError", "not a property value");
    };
  };

  test("is noted, so that the doctor asks for a rebuild, and holds up no other", async () => {
    const mirror = await start();
    const [bad, good] = [await world.tenant(), await world.tenant()];
    const catalog = await world.node(bad, { kind: "CATALOG", path: ["gravitino", "x"] });
    const wanted = await tag(good, "a");
    refuse("n:Catalog");
    await mirror.emit(bad, catalog, catalog);
    await mirror.emit(good, wanted);
    mirror.start();
    await until(async () => (await rows()).length === 0, "the changes to be dealt with");
    expect(Object.keys((await graph.look(good)).nodes)).toEqual([wanted]);
    expect((await mirrorState(database.db)).gaps).toMatchObject([
      { tenant_id: bad, changes: 2, error: "not a property value" },
    ]);
    expect(mirror.log.lines).toMatchObject([{ level: "warn", fields: { tenantId: bad } }]);
    expect(await look()).toEqual({
      verdict: "warning",
      found: `The graph in Neo4j is incomplete. Neo4j has refused changes of tenant ${bad}: not a property value`,
      advice: `Fix the cause, then \`millrace lineage rebuild-neo4j --tenant ${bad}\`.`,
    });
  });

  test("is forgotten after a rebuild of its tenant, and not before", async () => {
    const mirror = await start();
    const [tenantId, other] = [await world.tenant(), await world.tenant()];
    const catalog = await world.node(tenantId, { kind: "CATALOG", path: ["gravitino", "x"] });
    refuse("n:Catalog");
    await mirror.emit(tenantId, catalog);
    mirror.start();
    await until(async () => (await mirrorState(database.db)).gaps.length === 1, "the refusal");
    await mirror.rebuild(other, () => {});
    await expect(mirror.rebuild(tenantId, () => {})).rejects.toThrow("not a property value");
    expect((await mirrorState(database.db)).gaps).toHaveLength(1);
    before = () => {};
    await mirror.rebuild(tenantId, () => {});
    expect(await look()).toMatchObject({ verdict: "ok" });
    expect(Object.keys((await graph.look(tenantId)).nodes)).toEqual([catalog]);
  });

  test("while its tenant is rebuilt stays noted", async () => {
    const mirror = await start();
    const tenantId = await world.tenant();
    await tag(tenantId, "a");
    before = async (cypher) => {
      if (!cypher.includes("n:Tag") || cypher.startsWith("CREATE ")) return;
      before = () => {};
      await database.query("insert into lineage.mirror_gap (tenant_id, error) values ($1, 'meanwhile')", [tenantId]);
    };
    await mirror.rebuild(tenantId, () => {});
    expect((await mirrorState(database.db)).gaps).toMatchObject([{ tenant_id: tenantId, error: "meanwhile" }]);
  });

  test.each(["Neo.ClientError.Statement.SyntaxError", "Neo.ClientError.Schema.ConstraintValidationFailed"])(
    "is known by %s",
    (code) => {
      expect([isOutage(failure(code)), isRefusal(failure(code))]).toEqual([false, true]);
    },
  );

  test.each(["Neo.ClientError.Security.Forbidden", "Neo.DatabaseError.General.UnknownError", "N/A"])(
    "is not meant by %s, which is tried again",
    (code) => {
      expect([isOutage(failure(code)), isRefusal(failure(code))]).toEqual([false, false]);
    },
  );
});

test("changes that processes were lost with need a rebuild too, which makes up for them", async () => {
  const mirror = await start();
  const tenantId = await world.tenant();
  const node = await tag(tenantId, "a");
  await mirror.emit(tenantId, node);
  await database.query("update kernel.outbox set state = 'dead'");
  expect(await look()).toMatchObject({ verdict: "warning", found: expect.stringContaining("1 change of the graph") });
  await mirror.rebuild(tenantId, () => {});
  expect(await look()).toEqual({ verdict: "ok", found: "Neo4j has every change." });
});

test("gauges tell how far it is behind, and whether it needs a rebuild", async () => {
  const metrics = createMetrics();
  measureMirror({ db: database.db, clock: systemClock, log: silentLog, metrics: metrics.define(CATALOGUE.metrics) });
  const mirror = await start();
  const tenantId = await world.tenant();
  await mirror.emit(tenantId, "1", "2");
  await database.query("update kernel.outbox set created_at = now() - interval '1 hour'");
  await database.query("insert into lineage.mirror_gap (tenant_id, error) values ($1, 'no')", [tenantId]);
  const text = await until(async () => {
    const shown = await metrics.render();
    return /^millrace_lineage_neo4j_needs_rebuild 1$/m.test(shown) && shown;
  }, "the gauges");
  expect(text).toMatch(/^millrace_lineage_neo4j_waiting 2$/m);
  expect(text).toMatch(/^millrace_lineage_neo4j_oldest_seconds 36\d\d/m);
});
