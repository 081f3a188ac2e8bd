/** What is named elsewhere cannot be deleted: the refusal says by whom, and nothing has changed. */
import { beforeAll, describe, expect, test } from "vitest";
import { definitionWith } from "../../src/harvest/definition/definition.fixture.ts";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";

const database = useDatabase();
const millrace = useMillrace(database, { env: { MILLRACE_SECRET_KEY: "5e".repeat(32) } });
const API = "/api/v1";
const ids: Record<string, string> = {};

async function make(method: "post" | "put", path: string, body: unknown): Promise<Record<string, unknown>> {
  const { status, body: made } = await millrace.api[method](API + path, body);
  expect(status, `${path}: ${JSON.stringify(made)}`).toBeLessThan(300);
  return made;
}
async function chain(name: string, ...nodes: object[]): Promise<void> {
  const dagJson = { nodes: [{ type: "noop" }, ...nodes].map((node, index) => ({ id: `n${index}`, ...node })) };
  ids[name] = String((await make("post", "/chains", { name, dagJson }))["chainId"]);
}
const model = (id: string, fields: object) =>
  make("put", `/kpi/models/${id}`, { name: id, dependencies: [{ table: "T" }], kpis: [], ...fields });
const source = (name: string, fields: object = {}) =>
  make("put", `/harvest/registry/sources/${name}`, { ...definitionWith(), source: name, ...fields });

beforeAll(async () => {
  for (const name of ["TOKEN", "OWN", "FREE"]) await make("put", `/secrets/${name}`, { value: "a-long-enough-secret" });
  await source("shop");
  await source("market", { credentials: { key: { secret: "OWN" } } });
  await source("free");
  await chain("inner");
  await chain("of-a-model");
  await chain("itself");
  await model("M", { chain: "of-a-model" });
  await model("IN-A-NODE", { sql: "select 1" });
  await model("FREE", { sql: "select 1" });
  await chain("free", { type: "chain", cfg: { name: "itself" } });
  await chain(
    "outer",
    { type: "map", cfg: { over: [1], node: { type: "chain", cfg: { name: "inner" } } } },
    { type: "model", cfg: { modelId: "IN-A-NODE" } },
    { type: "harvest", cfg: { source: "shop" } },
    // oxlint-disable-next-line no-template-curly-in-string -- a template of the definition
    { type: "http", cfg: { url: "https://example.org", headers: { authorization: "Bearer ${ secrets.TOKEN }" } } },
  );
  for (const id of ["HEARD", "FREE"]) await make("put", `/kpi/indicators/${id}`, { type: "EXTENDED", name: id });
  const subscription = { kpiId: "HEARD", callbackUrl: "https://example.org/hook?token=secret" };
  ids["subscription"] = String((await make("post", "/kpi/subscriptions", subscription))["id"]);
});

const chainPath = (name: string) => `/chains/${ids[name]}`;

describe("a deletion is refused with the name of what uses it:", () => {
  test.each<[string, () => string, string, string | RegExp]>([
    ["a chain that a model runs", () => chainPath("of-a-model"), "CHAIN_IN_USE", "model `M` runs it"],
    ["a chain that a node runs", () => chainPath("inner"), "CHAIN_IN_USE", "chain `outer` names it"],
    ["a model that a node runs", () => "/kpi/models/IN-A-NODE", "MODEL_IN_USE", "chain `outer` names it"],
    ["a source of a node", () => "/harvest/registry/sources/shop", "SOURCE_IN_USE", "chain `outer` names it"],
    ["a secret of a node", () => "/secrets/TOKEN", "SECRET_IN_USE", "chain `outer` names it"],
    ["a secret of a source", () => "/secrets/OWN", "SECRET_IN_USE", "the credential `key` of source market is it"],
    [
      "a KPI with a subscription",
      () => "/kpi/indicators/HEARD",
      "KPI_IN_USE",
      /is used by subscription \d+ to https:\/\/example.org\/hook/,
    ],
  ])("%s", async (_, path, code, by) => {
    const { status, body } = await millrace.api.delete(API + path());
    expect([status, body["code"]]).toEqual([409, code]);
    expect(body["error"]).toMatch(by);
    const secrets = path().startsWith("/secrets/");
    const there = secrets ? await millrace.api.get(`${API}/secrets`) : await millrace.api.get(API + path());
    expect(there.status).toBe(200);
    if (secrets) expect(JSON.stringify(there.body)).toContain(path().slice("/secrets/".length));
  });
});

test.each<[string, () => string]>([
  ["a chain that only names another", () => chainPath("free")],
  ["a model", () => "/kpi/models/FREE"],
  ["a source", () => "/harvest/registry/sources/free"],
  ["a secret", () => "/secrets/FREE"],
  ["a KPI", () => "/kpi/indicators/FREE"],
])("what nothing names is deleted: %s", async (_, path) => {
  expect((await millrace.api.delete(API + path())).status).toBe(200);
});
