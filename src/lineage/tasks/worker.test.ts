/** Tasks from an event to the embedding: what is called, what is written back, and what happens when the model fails. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { createOutbound } from "../../kernel/net/outbound.ts";
import { hang, reset } from "../../webhooks/receiver.fixture.ts";
import { tableName } from "../graph/names.ts";
import type { TenantModel } from "./model.ts";
import { answer, chats, DIMENSION, embeds } from "./providers/model-server.fixture.ts";
import { type Asset, actor, BUILTIN, KEY, SETTINGS, sqlAsset, type TestTasks, useTasks } from "./tasks.fixture.ts";
import { MODELS_TOPIC } from "./topics.ts";

const database = useDatabase();
const tasks = useTasks(database);
const ORDERS = tableName("gravitino", "lake", "sales", "orders");

async function queue(process: TestTasks, tenant: Parameters<TestTasks["enqueue"]>[1], assets: readonly Asset[]) {
  return database.db.tx((tx) => process.enqueue(tx, tenant, assets));
}

/** Runs once, and waits for the batches that it began. */
async function run(process: TestTasks) {
  const counts = await process.worker.runOnce();
  await process.worker.idle();
  return counts;
}

const embeddings = () =>
  database.query<{ node_id: string; model_fingerprint: string; vector: number[]; content_hash: string }>(
    "select * from lineage.embedding order by node_id",
  );
const attempts = () =>
  database.query<{ status: string; error_type: string | null; attempt_no: number }>(
    "select status, error_type, attempt_no from lineage.ol_async_task_attempt order by id",
  );
const batches = () =>
  database.query("select status, planned_size, success_count, failed_count from lineage.ol_async_batch order by id");

describe("a changed asset", () => {
  test("is embedded soon after it was queued, and the graph is told of it", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served());
    const table = await tasks.asset("1", ORDERS, { description: "all orders" });
    process.worker.start();
    expect(await queue(process, tenant, [table])).toBe(1);
    expect(await tasks.ended()).toMatchObject([{ status: "SUCCEEDED", task_type: "EMBEDDING", resource_id: table.id }]);
    const [embedding] = await embeddings();
    expect(embedding).toMatchObject({ node_id: table.id, model_fingerprint: `openai:embed-small:${DIMENSION}` });
    expect(embedding?.vector).toHaveLength(DIMENSION);
    expect(tasks.models.embedded()).toEqual([["table lake.sales.orders\nall orders"]]);
    expect(process.told).toEqual([{ tenantId: "1", nodeIds: [table.id] }]);
    expect(await attempts()).toEqual([{ status: "SUCCEEDED", error_type: null, attempt_no: 1 }]);
    expect(await batches()).toEqual([{ status: "SUCCEEDED", planned_size: 1, success_count: 1, failed_count: 0 }]);
  });

  test("costs nothing when its event is replayed, or changes nothing of the text", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served());
    const table = await tasks.asset("1", ORDERS, { description: "all orders" });
    await queue(process, tenant, [table]);
    expect(await queue(process, tenant, [table])).toBe(0); // Still waiting.
    await run(process);
    expect(await queue(process, tenant, [table])).toBe(0);
    expect(await queue(process, tenant, [{ ...table, attributes: { ...table.attributes, creator: "me" } }])).toBe(0);
    expect(await tasks.rows()).toHaveLength(1);
    expect(tasks.models.calls()).toHaveLength(1);
  });

  test("whose content comes back gets its first embedding back", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", BUILTIN);
    let table = await tasks.asset("1", ORDERS, { description: "one" });
    await queue(process, tenant, [table]);
    await run(process);
    const [first] = await embeddings();
    table = await tasks.change("1", table, { description: "two" });
    await queue(process, tenant, [table]);
    await run(process);
    expect((await embeddings())[0]?.content_hash).not.toBe(first?.content_hash);
    table = await tasks.change("1", table, { description: "one" });
    expect(await queue(process, tenant, [table])).toBe(1);
    await run(process);
    expect((await embeddings())[0]?.vector).toEqual(first?.vector);
    expect(await tasks.rows()).toHaveLength(2);
  });

  test("that has other content by the time of its task is not sent to the model under the old one", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served());
    const before = await tasks.asset("1", ORDERS, { description: "one" });
    await queue(process, tenant, [before]);
    await queue(process, tenant, [await tasks.change("1", before, { description: "two" })]);
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ status: "SUCCEEDED" }, { status: "SUCCEEDED" }]);
    expect(tasks.models.embedded().flat()).toEqual(["table lake.sales.orders\ntwo"]);
    expect((await attempts()).map(({ error_type }) => error_type)).toEqual(["OUTDATED", null]);
  });

  test("that is dropped before its turn is not sent at all", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served());
    await queue(process, tenant, [await tasks.asset("1", ORDERS)]);
    await database.query("update lineage.node set deleted_at = now()");
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ status: "SUCCEEDED" }]);
    expect(tasks.models.calls()).toEqual([]);
  });

  test("of a tenant without a model makes no task; a job never does", async () => {
    const process = tasks.open();
    expect(await queue(process, await tasks.tenant("1", null), [await tasks.asset("1", ORDERS)])).toBe(0);
    const job = await tasks.asset("1", { kind: "JOB", path: ["spark", "daily"] });
    expect(await queue(process, await tasks.tenant("2", BUILTIN), [job])).toBe(0);
  });

  test("that is changed while its task runs is not left with the older embedding", async () => {
    const slow = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served());
    const before = await tasks.asset("1", ORDERS, { description: "one" });
    const released = signal();
    tasks.models.onEmbeddings((nth, response, received) => {
      if (nth > 1) return embeds()(nth, response, received);
      void released.promise.then(() => embeds()(nth, response, received));
      return undefined;
    });
    await queue(slow, tenant, [before]);
    await slow.worker.runOnce();
    await until(() => tasks.models.calls().length === 1, "the first call");
    const after = await tasks.change("1", before, { description: "two" });
    await queue(slow, tenant, [after]);
    await tasks.open().worker.runOnce();
    await until(async () => (await embeddings()).length === 1, "the second embedding");
    const [second] = await embeddings();
    released.resolve();
    await tasks.ended();
    expect(await embeddings()).toEqual([second]);
  });

  test("whose content comes back while its task gives it up as outdated is not forgotten", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", BUILTIN);
    const first = await tasks.asset("1", ORDERS, { description: "one" });
    await queue(process, tenant, [first]);
    await tasks.change("1", first, { description: "two" });
    // An event that brings the content back commits between the worker's look and its end.
    const interrupted = tasks.open({
      db: {
        ...database.db,
        async tx(work) {
          await tasks.change("1", first, { description: "one" });
          await queue(process, tenant, [first]);
          return database.db.tx(work);
        },
      },
    });
    await run(interrupted);
    expect(await tasks.rows()).toMatchObject([{ status: "PENDING" }]);
    await run(process);
    expect(await embeddings()).toHaveLength(1);
  });

  test("whose tenant takes its model back while a task gives it up is not forgotten", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", BUILTIN);
    const asset = await tasks.asset("1", ORDERS);
    const choose = (model: TenantModel) => database.query("update lineage.tenant set model = $1", [model]);
    await queue(process, tenant, [asset]);
    await choose(tasks.served());
    // The choice of the first model commits between the worker's look and its end.
    const interrupted = tasks.open({
      db: {
        ...database.db,
        async tx(work) {
          await choose(BUILTIN);
          await queue(process, tenant, [asset]);
          return database.db.tx(work);
        },
      },
    });
    await run(interrupted);
    expect(await tasks.rows()).toMatchObject([{ status: "PENDING" }]);
    await run(process);
    expect(await embeddings()).toHaveLength(1);
  });
});

describe("a statement", () => {
  const CONTENT = "insert into dw.daily select day, sum(amount) from ods.orders group by day";

  test("is summarised, and embedded with its summary, by one task", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served({ summary: true }));
    const sql = await tasks.asset("1", ...sqlAsset(CONTENT));
    await queue(process, tenant, [sql]);
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ task_type: "SQL_SUMMARY", status: "SUCCEEDED" }]);
    expect(await database.query("select summary, tags, model_fingerprint from lineage.summary")).toEqual([
      {
        summary: expect.stringContaining("About sql daily_orders"),
        tags: ["sales"],
        model_fingerprint: "openai:chat-small",
      },
    ]);
    expect(tasks.models.embedded()[0]?.[0]).toMatch(/^About sql[\s\S]*insert into dw\.daily/);
    expect(await queue(process, tenant, [sql])).toBe(0);
  });

  test("by the built-in pair says what it reads and writes", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", BUILTIN);
    await queue(process, tenant, [await tasks.asset("1", ...sqlAsset(CONTENT))]);
    await run(process);
    expect(await database.query("select summary from lineage.summary")).toEqual([
      { summary: "Reads ods.orders; aggregates sum(amount); groups by day; writes dw.daily." },
    ]);
  });

  test("of a tenant that has only an embedding model is embedded as it is", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served());
    await queue(process, tenant, [await tasks.asset("1", ...sqlAsset(CONTENT))]);
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ task_type: "EMBEDDING", status: "SUCCEEDED" }]);
    expect(tasks.models.embedded()[0]?.[0]).toMatch(/^sql daily_orders\nspark\ninsert into/);
  });

  test("keeps its summary when only the embedding fails, and is not summarised twice", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served({ summary: true }));
    await queue(process, tenant, [await tasks.asset("1", ...sqlAsset(CONTENT))]);
    tasks.models.onEmbeddings((nth, response, received) => (nth === 1 ? 500 : embeds()(nth, response, received)));
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ status: "FAILED", retry_count: 1 }]);
    expect(await database.query("select from lineage.summary")).toHaveLength(1);
    await tasks.due();
    process.wake.hint(MODELS_TOPIC);
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ status: "SUCCEEDED" }]);
    expect(tasks.models.summarised()).toHaveLength(1);
    expect(await embeddings()).toHaveLength(1);
  });

  test("that the model describes in no usable way fails alone", async () => {
    const process = tasks.open();
    const tenant = await tasks.tenant("1", tasks.served({ summary: true }));
    const [good, bad] = [
      await tasks.asset("1", ...sqlAsset(CONTENT)),
      await tasks.asset("1", ...sqlAsset("select bad")),
    ];
    tasks.models.onChat((_, response, { body }) =>
      chats(
        response,
        body.includes("select bad") ? "I would rather not." : { summary: "Daily amounts.", tags: [7, "x"] },
      ),
    );
    await queue(process, tenant, [good, bad]);
    await run(process);
    expect(await tasks.rows()).toMatchObject([
      { status: "SUCCEEDED" },
      { status: "FAILED", last_error: "The model did not answer with a summary as JSON." },
    ]);
    expect(await batches()).toMatchObject([{ status: "FAILED", planned_size: 2, success_count: 1, failed_count: 1 }]);
  });
});

describe("a model that fails", () => {
  async function failing(options: Parameters<typeof tasks.open>[0] = {}, count = 1) {
    const process = tasks.open(options);
    const tenant = await tasks.tenant("1", tasks.served());
    await queue(process, tenant, await tasks.columns("1", count));
    return process;
  }

  test("is asked again after 1, 5, 15, 60 and 360 minutes; then the task is DEAD, until a person resets it", async () => {
    const process = await failing();
    tasks.models.onEmbeddings(() => 500);
    const waits: number[] = [];
    for (let round = 1; round <= 6; round += 1) {
      await run(process);
      const [row] = await database.query<{ status: string; wait: number }>(
        "select status, extract(epoch from next_run_at - now())::float8 as wait from lineage.ol_async_task",
      );
      expect(row?.status).toBe(round <= 5 ? "FAILED" : "DEAD");
      if (round <= 5) waits.push(Math.round((row?.wait ?? 0) / 60));
      await tasks.due();
      process.wake.hint(MODELS_TOPIC);
    }
    expect(waits).toEqual([1, 5, 15, 60, 360]);
    await run(process);
    expect(tasks.models.calls()).toHaveLength(6);
    tasks.models.onEmbeddings(embeds());
    const [{ id } = { id: "" }] = await tasks.rows();
    await process.actions.reset("1", id, actor);
    await run(process);
    expect(await tasks.rows()).toMatchObject([{ status: "SUCCEEDED" }]);
    expect((await attempts()).map(({ attempt_no }) => attempt_no)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  const vectors = (embedding: unknown, indexes = [0, 1]) => ({ data: indexes.map((index) => ({ index, embedding })) });
  test.each([
    ["answers too few vectors", { data: [] }, /answered 0 vectors for 2 texts/],
    ["answers no vectors at all", "never mind", /answered 0 vectors for 2 texts/],
    ["answers an index twice", vectors([1], [0, 0]), /Item 1 of the model's answer/],
    ["answers vectors of another dimension, whatever it is asked for", vectors([1, 2]), /2 dimensions instead of 16/],
    ["answers what is no number", vectors(Array.from({ length: DIMENSION }, () => null)), /no number/],
    ["answers only zeros", vectors(Array.from({ length: DIMENSION }, () => 0)), /only zeros/],
  ])("because it %s writes nothing", async (_, body, error) => {
    const process = await failing({}, 2);
    tasks.models.onEmbeddings((_nth, response) => answer(response, body));
    await run(process);
    const rows = await tasks.rows();
    expect(rows).toMatchObject([{ status: "FAILED" }, { status: "FAILED" }]);
    expect(rows[0]?.last_error).toMatch(error);
    expect(await embeddings()).toEqual([]);
    expect(process.told).toEqual([]);
  });

  test("because it answers no JSON is a bad answer", async () => {
    const process = await failing();
    tasks.models.onEmbeddings(() => 200);
    await run(process);
    expect((await tasks.rows())[0]?.last_error).toBe("The model's answer is not JSON.");
  });

  test("by a connection that breaks, or by time, is unavailable", async () => {
    const process = await failing({ settings: { ...SETTINGS, timeoutSeconds: 1 } });
    tasks.models.onEmbeddings((nth, ...rest) => (nth === 1 ? reset : hang)(nth, ...rest));
    await run(process);
    await tasks.due();
    process.wake.hint(MODELS_TOPIC);
    await run(process);
    expect((await attempts()).map(({ error_type }) => error_type)).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    expect((await tasks.rows())[0]?.last_error).toBe(
      "The model cannot be reached: there was no complete answer within 1000 ms",
    );
  });

  test("because it is not there is unavailable, and holds back only its own lane", async () => {
    const process = tasks.open();
    const gone = await tasks.tenant("1", {
      embedding: { provider: "openai", endpoint: "http://127.0.0.1:1/v1", model: "x", dimension: 8 },
    });
    const fine = await tasks.tenant("2", tasks.served());
    await queue(process, gone, await tasks.columns("1", 200));
    await queue(process, fine, await tasks.columns("2", 200));
    process.worker.start();
    await until(async () => (await tasks.rows("2")).every(({ status }) => status === "SUCCEEDED"), "the other tenant");
    await until(
      async () => (await tasks.rows("1")).filter(({ status }) => status === "FAILED").length === 128,
      "two batches",
    );
    // The rest waits untried: it would use up its retries for nothing.
    expect((await tasks.rows("1")).filter(({ status }) => status === "PENDING")).toHaveLength(72);
  });

  test("with 429 is left alone for as long as it asks, and no retry is used up", async () => {
    const process = await failing({ settings: { ...SETTINGS, batchSize: 1, batches: 1 } }, 3);
    tasks.models.onEmbeddings((nth, response, received) =>
      nth === 1
        ? answer(response, { error: { message: "Slow down" } }, 429, { "retry-after": "1" })
        : embeds()(nth, response, received),
    );
    const begun = performance.now();
    process.worker.start();
    await until(async () => (await tasks.rows()).every(({ status }) => status === "SUCCEEDED"), "all three");
    expect(performance.now() - begun).toBeGreaterThan(950);
    expect((await attempts()).map(({ error_type }) => error_type)).toEqual(["RATE_LIMITED", null, null, null]);
    expect((await tasks.rows()).map(({ retry_count }) => retry_count)).toEqual([0, 0, 0]);
  });

  test("for one text of 64 fails that one only", async () => {
    const process = await failing({}, 64);
    tasks.models.onEmbeddings((nth, response, received) =>
      received.body.includes('orders.c37"')
        ? answer(response, { error: { message: "bad text" } }, 400)
        : embeds()(nth, response, received),
    );
    await run(process);
    const failed = (await tasks.rows()).filter(({ status }) => status !== "SUCCEEDED");
    expect(failed).toMatchObject([
      { status: "FAILED", last_error: "The model answered 400: bad text. This will not pass by itself." },
    ]);
    expect(await embeddings()).toHaveLength(63);
    expect(tasks.models.calls()).toHaveLength(13);
  });

  test("for every text is not asked about each of them", async () => {
    const process = await failing({}, 64);
    tasks.models.onEmbeddings(() => 400);
    await run(process);
    expect((await tasks.rows()).every(({ status }) => status === "FAILED")).toBe(true);
    expect(tasks.models.calls().length).toBeLessThan(30);
  });

  test("with 401 says that this will not pass, and shows no credential", async () => {
    const process = tasks.open({
      settings: { ...SETTINGS, credentials: [{ name: "MODEL_KEY", origin: tasks.models.origin }] },
    });
    const tenant = await tasks.tenant("1", tasks.served({ credentialRef: "env:MODEL_KEY" }));
    tasks.models.onEmbeddings((_, response) => answer(response, { error: { message: `Incorrect key ${KEY}.` } }, 401));
    await queue(process, tenant, await tasks.columns("1", 1));
    await run(process);
    expect(tasks.models.calls()[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect((await tasks.rows())[0]?.last_error).toBe(
      "The model answered 401: Incorrect key ***. This will not pass by itself.",
    );
    expect(JSON.stringify(process.log.lines)).not.toContain(KEY);
  });

  test("because its credential is missing, or not allowed any more, or its address is private, is not called", async () => {
    const allowed = { ...SETTINGS, credentials: [{ name: "MODEL_KEY", origin: tasks.models.origin }] };
    const tenant = await tasks.tenant("1", tasks.served({ credentialRef: "env:MODEL_KEY" }));
    const reasons: (string | null | undefined)[] = [];
    for (const options of [
      { settings: allowed, env: {} },
      { settings: SETTINGS },
      { settings: allowed, outbound: createOutbound({ allowPrivate: false }) },
    ]) {
      const process = tasks.open(options);
      await queue(process, tenant, reasons.length === 0 ? await tasks.columns("1", 1) : []);
      await run(process);
      reasons.push((await tasks.rows())[0]?.last_error);
      await tasks.due();
    }
    expect(reasons).toEqual([
      expect.stringMatching(/environment variable MODEL_KEY.*not set/),
      expect.stringMatching(/allow no credential MODEL_KEY: list it under lineage.tasks.credentials/),
      expect.stringMatching(/not a public address/),
    ]);
    expect(tasks.models.calls()).toEqual([]);
  });

  test("whose own dimension is another is asked for the one that was chosen, and remembered", async () => {
    const process = await failing({ settings: { ...SETTINGS, batchSize: 1 } }, 2);
    tasks.models.onEmbeddings(embeds(64));
    await until(async () => {
      await run(process);
      return (await embeddings()).length === 2;
    }, "both embeddings");
    const dimensions = tasks.models.calls().map(({ json }) => json["dimensions"]);
    expect(dimensions.filter((one) => one === DIMENSION)).toHaveLength(2);
  });
});
