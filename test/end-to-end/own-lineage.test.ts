/** An indicator is followed back to where its data come from, over what Millrace's own runs have told. */
import { afterEach, describe, expect, test } from "vitest";
import { on, TODAY, useKpis } from "../../src/arrivals/arrivals.fixture.ts";
import type { Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { reached, trackingTable } from "../tracking.ts";
import { until } from "../until.ts";

const TENANT = { id: 4_711, code: "own", name: "Our own" };
const LAST = reached("mysql-sender", "started");
const database = useDatabase();
const files = trackingTable(database);
const kpis = useKpis(database, {
  lineage: { own: { enabled: true, ...TENANT } },
  arrivals: { files: [{ pattern: "raw_(\\d{8})\\.csv", table: "FROM_FILES", opTime: "$1" }] },
});

interface Event extends Json {
  eventType: string;
  job: { name: string; facets: Json };
  run: { runId: string; facets: Json };
  inputs: { name: string }[];
  outputs: { name: string }[];
}

/** The events of a job, oldest first, once there are so many. */
const told = (jobName: string, count = 1): Promise<[Event, ...Event[]]> =>
  until(async () => {
    const rows = await database.query<{ event: Event; apply_state: string }>(
      "select event, apply_state from lineage.lineage_events where tenant_id = $1 and job_name = $2 order by event_time, id",
      [TENANT.id, jobName],
    );
    expect(rows.filter(({ apply_state }) => apply_state !== "APPLIED")).toEqual([]);
    return rows.length >= count && (rows.map(({ event }) => event) as [Event, ...Event[]]);
  }, `${count} events of ${jobName}`);

/** What lies before an asset, each as `from -> to`, by their own names. */
async function upstream(asset: string): Promise<string[]> {
  const path = `/api/v1/lineage/graph?tenant=${TENANT.id}&direction=up&depth=10&node=${encodeURIComponent(asset)}`;
  const { status, body } = await kpis.api.get<{
    nodes: { id: string; name: string }[];
    edges: { from: string; to: string }[];
  }>(path);
  expect(status, JSON.stringify(body)).toBe(200);
  const names = new Map(body.nodes.map(({ id, name }) => [id, name]));
  return body.edges.map(({ from, to }) => `${names.get(from)} -> ${names.get(to)}`).sort();
}

const everythingIsDelivered = () =>
  until(async () => {
    const left = await database.query("select from kernel.outbox where topic = 'lineage.own'");
    return left.length === 0;
  }, "the outbox to be empty");

let chainsMade = 0;
/** Starts a run of a chain with these nodes; tells its id and the chain's name. */
async function start(nodes: object[], body: Json = { opTime: TODAY }): Promise<{ chain: string; runId: string }> {
  chainsMade += 1;
  const chain = `c${chainsMade}`;
  const made = await kpis.api.post("/api/v1/chains", { name: chain, dagJson: { nodes } });
  const started = await kpis.api.post<{ runId: string }>(`/api/v1/chains/${String(made.body["chainId"])}:start`, body);
  expect(started.status, JSON.stringify([made.body, started.body])).toBeLessThan(300);
  return { chain, runId: started.body.runId };
}
const run = async (nodes: object[], body?: Json) => (await start(nodes, body)).chain;
const sql = (id: string, text: string, more: object = {}) => ({ id, type: "sql", cfg: { sql: text }, ...more });
const arrive = (table: string, ...dependsOn: string[]) => ({ id: "arrive", type: "arrive", cfg: { table }, dependsOn });

const names = (datasets: readonly { name: string }[] | undefined) => datasets?.map(({ name }) => name);

afterEach(async () => {
  const dead = await database.query("select topic, last_error from kernel.outbox where state = 'dead'");
  expect(dead).toEqual([]);
});

describe("an indicator", () => {
  test("is followed back over its model, the table and the chain that brought it, to what the chain waited for", async () => {
    const chain = await run([
      { id: "gate", type: "noop", waitsFor: ["SOURCE_API"] },
      sql("clean", "create or replace table clean as select 1", { dependsOn: ["gate"] }),
      arrive("CLEAN", "clean"),
    ]);
    await kpis.publish("M1", { dependencies: on("CLEAN"), kpis: ["KD1001"] });
    await kpis.compute("KD2001", "KD1001 * 2");
    await kpis.arriveAsync("SOURCE_API");
    await told("kpi.indicator.KD2001");
    await told(`chain.${chain}`);
    expect(await upstream("millrace://kpis.KD2001")).toEqual(
      [
        `SOURCE_API -> chain.${chain}`,
        `chain.${chain} -> CLEAN`,
        `SOURCE_API -> chain.${chain}.clean`,
        `chain.${chain}.clean -> CLEAN`,
        "CLEAN -> kpi.model.M1",
        "kpi.model.M1 -> KD1001",
        "KD1001 -> kpi.indicator.KD2001",
        "kpi.indicator.KD2001 -> KD2001",
      ].sort(),
    );
  });

  test("whose model failed leaves that it failed and why, and nothing is dead", async () => {
    await kpis.publish("M2", { dependencies: on("T2"), sql: "select no_such_column" });
    await kpis.arrive("T2");
    const [event] = await told("kpi.model.M2");
    expect(event.eventType).toBe("FAIL");
    expect(event.run.facets).toMatchObject({
      errorMessage: { message: expect.stringContaining("no_such_column") },
      nominalTime: { nominalStartTime: "2025-12-19T00:00:00.000Z" },
    });
  });
});

test("an event that is delivered again is taken once", async () => {
  await kpis.publish("M3", { dependencies: on("T3") });
  await kpis.arrive("T3");
  await told("kpi.model.M3");
  await everythingIsDelivered();
  const counts = () =>
    database.query(
      `select (select count(*) from lineage.lineage_events) as events, (select count(*) from lineage.node) as nodes,
              (select count(*) from lineage.edge) as edges, (select sum(executions) from lineage.execution_count) as runs`,
    );
  const before = await counts();
  const again = await database.query(
    `insert into kernel.outbox (event_id, consumer, topic, payload)
     select gen_random_uuid(), 'own_lineage', topic, payload from public.emitted where topic = 'lineage.own' returning id`,
  );
  expect(again.length).toBeGreaterThan(0);
  await database.query("select pg_notify('millrace_wake', 'test kernel.outbox')");
  await everythingIsDelivered();
  expect(await counts()).toEqual(before);
});

describe("a chain", () => {
  test("tells what it announced by the name that the run made of a template, and nothing that was skipped", async () => {
    const chain = await run(
      [
        { id: "named", type: "arrive", cfg: { table: "OF_${params.who}" } },
        { id: "never", type: "arrive", cfg: { table: "NEVER" }, if: "false" },
      ],
      { opTime: TODAY, params: { who: "A" } },
    );
    const [event] = await told(`chain.${chain}`);
    expect(event.eventType).toBe("COMPLETE");
    expect(names(event.outputs)).toEqual(["OF_A"]);
  });

  test("that failed says why, also if the run went on after that, and which statement it was", async () => {
    const chain = await run([
      sql("bad", "select no_such_column"),
      { id: "after", type: "sleep", cfg: { ms: 1 }, dependsOn: ["bad"], runWhen: "all_done" },
    ]);
    const [event] = await told(`chain.${chain}`);
    const message = expect.stringContaining("no_such_column");
    expect(event).toMatchObject({ eventType: "FAIL", run: { facets: { errorMessage: { message } } } });
    const [statement] = await told(`chain.${chain}.bad`);
    expect(statement).toMatchObject({
      eventType: "FAIL",
      job: { facets: { sql: { query: "select no_such_column", dialect: "duckdb" } } },
      run: { facets: { errorMessage: { message }, parent: { run: { runId: event.run.runId } } } },
    });
  });

  test("tells each end of a run that is retried, and a statement that did not run again once", async () => {
    const chain = await run([
      sql("good", "select 1"),
      { ...sql("late", "select * from later"), cfg: { engine: "warehouse", sql: "select * from later" } },
    ]);
    const [failed] = await told(`chain.${chain}`);
    await database.query("create table public.later (n int)");
    await kpis.api.post(`/api/v1/runs/${failed.run.runId}:retry`);
    const ends = await told(`chain.${chain}`, 2);
    expect(ends.map(({ eventType, run: { runId } }) => [eventType, runId])).toEqual([
      ["FAIL", failed.run.runId],
      ["COMPLETE", failed.run.runId],
    ]);
    await everythingIsDelivered();
    expect(await told(`chain.${chain}.good`)).toHaveLength(1);
    expect((await told(`chain.${chain}.late`)).map(({ eventType }) => eventType)).toEqual(["FAIL", "COMPLETE"]);
  });

  test("that another waits for, and the items of a map, come after what was waited for above them", async () => {
    const inner = await run([arrive("INNER")], { opTime: "20200101" });
    const outer = await run([
      { id: "gate", type: "noop", waitsFor: ["SOURCE"] },
      { id: "call", type: "chain", cfg: { name: inner }, dependsOn: ["gate"] },
      {
        id: "each",
        type: "map",
        cfg: { over: ["A", "B"], node: { type: "arrive", cfg: { table: "ITEM_${item}" } } },
        dependsOn: ["gate"],
      },
      {
        id: "query",
        type: "map",
        cfg: { over: [1, 2], node: { type: "sql", cfg: { sql: "select ${item}" } } },
      },
    ]);
    await kpis.arriveAsync("SOURCE");
    const [event] = await told(`chain.${outer}`);
    const parent = { run: { runId: event.run.runId }, job: { name: `chain.${outer}` } };
    const [, called] = await told(`chain.${inner}`, 2);
    expect([names(called?.inputs), names(called?.outputs)]).toEqual([["SOURCE"], ["INNER"]]);
    expect(called?.run.facets).toMatchObject({ parent });
    const [items, ...more] = await told(`chain.${outer}.each`);
    expect([names(items.inputs), names(items.outputs)]).toEqual([["SOURCE"], ["ITEM_A", "ITEM_B"]]);
    expect(items.run.facets).toMatchObject({ parent });
    expect(more).toEqual([]);
    const [queries] = await told(`chain.${outer}.query`);
    expect(queries.job.facets).toMatchObject({ sql: { query: "select ${item}" } });
  });

  test("that was stopped is told as such", async () => {
    const { chain, runId } = await start([{ id: "gate", type: "noop", waitsFor: ["NEVER_COMES"] }]);
    await kpis.api.post(`/api/v1/runs/${runId}:stop`, { reason: "enough" });
    const [event] = await told(`chain.${chain}`);
    expect(event).toMatchObject({ eventType: "ABORT", run: { facets: { errorMessage: { message: "enough" } } } });
  });
});

test("a table that comes by files is told once, as coming from the rule that the files fit", async () => {
  for (const day of ["20250101", "20250102", "20250103"]) {
    const filename = `raw_${day}.csv`;
    await files.put(LAST, { filename });
    const { status } = await kpis.api.post("/api/v1/pipeline/stages/mysql-sender/done", { filename, shard: 0 });
    expect(status).toBe(200);
  }
  const events = await told("arrival.FROM_FILES");
  await everythingIsDelivered();
  expect(await told("arrival.FROM_FILES")).toHaveLength(1);
  expect(names(events[0].inputs)).toEqual(["raw_(\\d{8})\\.csv"]);
  expect(await upstream("millrace://tables.FROM_FILES")).toEqual([
    "arrival.FROM_FILES -> FROM_FILES",
    "raw_(\\d{8})\\.csv -> arrival.FROM_FILES",
  ]);
});

describe("switched off", () => {
  const plainDatabase = useDatabase();
  const plain = useKpis(plainDatabase, {
    lineage: { own: { enabled: false, id: 0, code: "millrace", name: "Millrace" } },
  });

  test("nothing is told", async () => {
    await plain.publish("M1");
    await plain.arrive("T");
    const nodes = [sql("one", "select 1"), sql("bad", "select no_such_column")];
    const { body: chain } = await plain.api.post("/api/v1/chains", { name: "c", dagJson: { nodes } });
    await plain.api.post(`/api/v1/chains/${String(chain["chainId"])}:start`, {});
    await until(async () => (await plain.events("run.failed")).length > 0, "the run to end");
    const topics = await plainDatabase.query("select distinct topic from public.emitted order by 1");
    expect(topics).toEqual([{ topic: "kpi.updated" }, { topic: "run.failed" }]);
    expect(await plainDatabase.query("select id from lineage.tenant")).toEqual([]);
  });
});
