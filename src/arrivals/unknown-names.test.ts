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
      "There is no engine `duckbd`. Did you mean `duckdb`? Known: duckdb",
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
