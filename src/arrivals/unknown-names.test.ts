/** Definitions that name something that does not exist are refused, with the path and a similar name. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";

const millrace = useMillrace(useDatabase(), { env: { MILLRACE_SECRET_KEY: "0".repeat(64) } });
const MODEL = { name: "m", sql: "select 1", dependencies: [{ table: "T" }], kpis: ["KD1001"] };

beforeAll(async () => {
  await millrace.api.put("/api/v1/kpi/models/ORDERS-DAY", MODEL);
  await millrace.api.post("/api/v1/chains", { name: "nightly", dagJson: { nodes: [{ id: "n", type: "noop" }] } });
  await millrace.api.put("/api/v1/secrets/SHOP_TOKEN", { value: "open sesame" });
});

const send = (method: "put" | "post", path: string, body: Json) => millrace.api[method](`/api/v1${path}`, body);

describe("over the API", () => {
  test.each<["put" | "post", string, Json, string]>([
    [
      "put",
      "/kpi/models/M",
      { ...MODEL, kpis: [], engine: "duckbd" },
      "The field `engine`: there is no engine `duckbd`. Did you mean `duckdb`? Known: duckdb",
    ],
    [
      "put",
      "/kpi/models/M",
      { name: "m", chain: "nightyl", dependencies: [{ table: "T" }], kpis: [] },
      "The field `chain`: there is no chain `nightyl` (did you mean `nightly`?)",
    ],
    [
      "put",
      "/kpi/indicators/KC1",
      { type: "COMPUTED", name: "c", expression: "KD1001 + KD1010" },
      "The field `expression`: there is no indicator `KD1010` (did you mean `KD1001`?)",
    ],
    [
      "post",
      "/kpi/subscriptions",
      { kpiId: "KD1010", callbackUrl: "https://example.org/hook" },
      "The field `kpiId`: there is no indicator `KD1010` (did you mean `KD1001`?)",
    ],
  ])("%s %s %j", async (method, path, body, error) => {
    const answer = await send(method, path, body);
    expect(answer).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
    expect(String(answer.body["error"])).toBe(`${error}.`);
  });

  test.each([
    ["chain", { name: "nightyl" }, "cfg.name", "there is no chain `nightyl`. Did you mean `nightly`?"],
    ["sql", { engine: "duckbd", sql: "select 1" }, "cfg.engine", "there is no engine `duckbd`. Did you mean `duckdb`?"],
    ["model", { modelId: "ORDER-DAY" }, "cfg.modelId", "there is no model `ORDER-DAY`. Did you mean `ORDERS-DAY`?"],
    [
      "http",
      { url: "https://x.org", headers: { authorization: "Bearer ${secrets.SHOP_TOKEM}" } },
      "cfg.headers.authorization",
      "there is no secret `SHOP_TOKEM`. Did you mean `SHOP_TOKEN`?",
    ],
    [
      "http",
      { url: "https://x.org?k=${secrets.ANOTHER_ONE}" },
      "cfg.url",
      "there is no secret `ANOTHER_ONE`. Create it with `millrace secrets set` or PUT /api/v1/secrets/{name}.",
    ],
    [
      "map",
      { over: [1], node: { type: "chain", cfg: { name: "nightyl" } } },
      "cfg.node.cfg.name",
      "there is no chain `nightyl`. Did you mean `nightly`?",
    ],
  ])("POST /chains with a node of the type %s and %j", async (type, cfg, field, message) => {
    const nodes = [
      { id: "ok", type: "noop" },
      { id: "n", type, cfg },
    ];
    const { status, body } = await send("post", "/chains", { name: "broken", dagJson: { nodes } });
    expect({ status, code: body["code"], details: body["details"] }).toEqual({
      status: 400,
      code: "DAG_INVALID",
      details: { problems: [{ path: `nodes[1].${field}`, nodeId: "n", message }] },
    });
  });

  test("all unknown names of a chain are answered at once", async () => {
    const nodes = ["a", "b"].map((id) => ({ id, type: "chain", cfg: { name: `no ${id}` } }));
    const { body } = await send("post", "/chains", { name: "broken", dagJson: { nodes } });
    expect((body["details"] as { problems: unknown[] }).problems).toHaveLength(2);
  });

  test("names that exist, a chain's own name and templates are accepted", async () => {
    const nodes = [
      { id: "sub", type: "chain", cfg: { name: "nightly" } },
      { id: "self", type: "chain", cfg: { name: "complete" }, if: "false" },
      { id: "late", type: "chain", cfg: { name: "${params.chain}" } },
      { id: "model", type: "model", cfg: { modelId: "ORDERS-DAY" } },
      { id: "secret", type: "http", cfg: { url: "https://x.org?k=${secrets.SHOP_TOKEN}" } },
    ];
    expect((await send("post", "/chains", { name: "complete", dagJson: { nodes } })).status).toBe(200);
    expect(
      (await send("put", "/kpi/indicators/KC2", { type: "COMPUTED", name: "c", expression: "KD1001 / 2" })).status,
    ).toBe(201);
    const chain = { name: "m", chain: "complete", dependencies: [{ table: "T" }], kpis: [] };
    expect((await send("put", "/kpi/models/OF-CHAIN", chain)).status).toBe(201);
    const subscription = { kpiId: "KC2", callbackUrl: "https://example.org/hook" };
    expect((await send("post", "/kpi/subscriptions", subscription)).status).toBe(201);
  });

  test("a subscription cannot be moved to an unknown KPI", async () => {
    const callbackUrl = "https://example.org/moved";
    const { body } = await send("post", "/kpi/subscriptions", { kpiId: "KD1001", callbackUrl });
    const path = `/api/v1/kpi/subscriptions/${String(body["id"])}`;
    const request = { method: "PATCH", headers: { "content-type": "application/json" } };
    const moved = await millrace.api.send(path, { ...request, body: JSON.stringify({ kpiId: "KD1010" }) });
    expect(moved.status).toBe(400);
    expect((await millrace.api.get(path)).body).toMatchObject({ kpiId: "KD1001" });
  });
});

describe("what is asked for and does not exist is named, with what was probably meant:", () => {
  const KPI = "There is no indicator `KD1O01`. Did you mean `KD1001`?";
  const NAMED = "There is no model `ORDER-DAY`. Did you mean `ORDERS-DAY`?";
  const DAY = "The opTimes of model `ORDERS-DAY` are days, which";
  beforeAll(async () => {
    await millrace.api.put("/api/v1/kpi/models/ORDERS-DAY", { ...MODEL, grain: "day" });
    await millrace.api.post("/api/v1/kpi/models/ORDERS-DAY:publish");
  });

  test.each([
    [404, "/kpi/data?kpiId=KD1O01", KPI],
    [404, "/kpi/series?kpiId=KD1O01&from=20251101&to=20251102", KPI],
    [404, "/kpi/indicators/KD1O01", KPI],
    [404, "/kpi/series?modelId=ORDER-DAY&from=20251101&to=20251102", NAMED],
    [404, "/kpi/task-logs?modelId=ORDER-DAY", NAMED],
    [404, "/kpi/models/ORDER-DAY", NAMED],
    [404, "/kpi/models/ORDER-DAY/why?opTime=20251101", NAMED],
    [400, "/kpi/models/ORDERS-DAY/why?opTime=2025-11-01", `${DAY} \`2025-11-01\` is not (did you mean \`20251101\`?).`],
    [404, "/kpi/data?kpiId=SOMETHING-ELSE", "There is no indicator `SOMETHING-ELSE`."],
  ])("%i GET %s", async (status, path, error) => {
    expect(await millrace.api.get(`/api/v1${path}`)).toMatchObject({ status, body: { error } });
  });

  test.each([
    ["/kpi/models/ORDER-DAY:run", { opTime: "20251101" }, 404, NAMED],
    ["/kpi/models/ORDER-DAY:publish", undefined, 404, NAMED],
    [
      "/kpi/models/ORDERS-DAY:run",
      { opTime: "20251131" },
      400,
      `${DAY} \`20251131\` is not (did you mean \`20251130\`?).`,
    ],
    [
      "/kpi/models/ORDERS-DAY:backfill",
      { from: "20250101", to: "20250229" },
      400,
      "The range's `to` must be a valid day like yyyyMMdd, not `20250229` (did you mean `20250228`?).",
    ],
  ])("POST %s %j", async (path, body, status, error) => {
    expect(await millrace.api.post(`/api/v1${path}`, body)).toMatchObject({ status, body: { error } });
  });

  const arrive = async (srcTableName: string, opTime: string) =>
    (await millrace.api.post("/api/open/kpi/srcTableComplete", { srcTableName, opTime })).body;

  const arriveStrictly = (srcTableName: string, opTime: string) =>
    millrace.api.send("/api/open/kpi/srcTableComplete", {
      method: "POST",
      headers: { "content-type": "application/json", prefer: "respond-async, handling=strict" },
      body: JSON.stringify({ srcTableName, opTime }),
    });

  test("a table that no model depends on, beside the message of the specification", async () => {
    await millrace.api.put("/api/v1/kpi/models/REFUNDS", {
      ...MODEL,
      kpis: [],
      dependencies: [{ table: "DW_REFUND_D" }],
    });
    expect(await arrive("DW_REFUNDD", "20251101")).toMatchObject({
      status: "IGNORED",
      message: "无模型依赖此表",
      hint: "No model depends on `DW_REFUNDD`. Did you mean `DW_REFUND_D`?",
    });
    expect(await arrive("ANOTHER_TABLE", "20251101")).not.toHaveProperty("hint");
  });

  test.each([
    ["20261131", " (did you mean `20261130`?)"],
    ["2026-11-01", " (did you mean `20261101`?)"],
    ["2026110100", " (did you mean `20261101`?)"],
    ["202611", ""],
    ["yesterday", ""],
  ])("the opTime %s of a table that arrives by days, which strict handling refuses", async (opTime, meant) => {
    const expected = `\`T\` arrives for days (yyyyMMdd), which \`${opTime}\` is not${meant}.`;
    expect(await arriveStrictly("T", opTime)).toMatchObject({
      status: 400,
      body: { error: `${expected} Without \`Prefer: handling=strict\` it is recorded all the same.` },
    });
    const { body } = await millrace.api.get(`/api/v1/kpi/arrivals?table=T&opTime=${opTime}`);
    expect(body).toMatchObject({ items: [] });
    const { hint, status } = await arrive("T", opTime);
    expect({ hint, status }).toEqual({ hint: expected, status: "SUCCESS" });
  });

  test("strict handling accepts an opTime that fits, and a table that no model depends on", async () => {
    expect(await arriveStrictly("T", "20251102")).toMatchObject({ status: 200 });
    expect(await arriveStrictly("ANOTHER_TABLE", "spring")).toMatchObject({ status: 200, body: { status: "IGNORED" } });
  });
});
