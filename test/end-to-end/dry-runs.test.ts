/** `?dryRun=true` on every route that changes something: a preview that changes nothing, or 400. The routes are those of `/openapi.json`. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";
import { stored } from "../stored.ts";
import { until } from "../until.ts";
import { example, type Operation, operationsOf, pathOf, readDocument } from "./operations.ts";

const database = useDatabase();
const millrace = useMillrace(database, { env: { MILLRACE_SECRET_KEY: "5e".repeat(32) } });
const API = "/api/v1";
const OP_TIME = "20251219";
const MODEL = { name: "m", sql: "select 1", dependencies: [{ table: "T" }], kpis: [] };
let operations: Operation[] = [];
/** Values of path parameters, by the beginning of the path; the longest that fits counts. */
const known: Record<string, Record<string, string>> = {};

/** The ids in the answer. */
async function make(path: string, body?: unknown, method = "POST"): Promise<Record<string, string>> {
  const { status, body: made } = await millrace.api.send(API + path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body ?? null),
  });
  expect(status, `${path}: ${JSON.stringify(made)}`).toBeLessThan(300);
  return Object.fromEntries(Object.entries(made).map(([name, value]) => [name, String(value)]));
}

beforeAll(async () => {
  const dagJson = { nodes: [{ id: "load", type: "noop", pool: "previewed" }] };
  await make("/pools/previewed", { size: 1 }, "PUT");
  await make("/pools/unused", { size: 1 }, "PUT");
  const { chainId } = await make("/chains", { name: "previewed", dagJson });
  const { scheduleId } = await make(`/chains/${chainId}/schedules`, { name: "nightly", cron: "0 3 * * *" });
  const { runId: stoppedId } = await make(`/chains/${chainId}:start`);
  await make(`/runs/${stoppedId}:stop`);
  await until(
    async () => (await millrace.api.get(`${API}/runs/${stoppedId}`)).body["status"] === "STOPPED",
    "the run to stop",
  );
  const { runId } = await make(`/chains/${chainId}:start`);
  await make("/kpi/models/M1", MODEL, "PUT");
  await make("/kpi/models/M1:publish");
  await make("/kpi/indicators/K1", { type: "EXTENDED", name: "k" }, "PUT");
  await make("/kpi/indicators/HEARD", { type: "EXTENDED", name: "k" }, "PUT"); // What has a subscription is not deleted.
  const { id } = await make("/kpi/subscriptions", { kpiId: "HEARD", callbackUrl: "https://example.org/hook" });
  await make("/lineage/tenants", { id: 7, code: "seven", name: "Seven", state: "READY" });
  await make("/secrets/PREVIEWED", { value: "a-long-enough-secret" }, "PUT");
  await make("/gates/previewed", { ratePerSec: 5 }, "PUT");
  const { id: keyId } = await make("/keys", { name: "previewed", scopes: ["kpi:read"] });
  Object.assign(known, {
    [`${API}/chains`]: { chainId, scheduleId },
    [`${API}/pools`]: { name: "unused" },
    [`${API}/runs`]: { runId: stoppedId, nodeId: "load" },
    [`${API}/runs/{runId}:stop`]: { runId },
    [`${API}/kpi`]: { modelId: "M1", kpiId: "K1" },
    [`${API}/kpi/subscriptions`]: { id },
    [`${API}/kpi/deliveries`]: { id: "00000000-0000-4000-8000-000000000000" },
    [`${API}/lineage`]: { tenantId: "7", taskId: "1", eventId: "1" },
    [`${API}/secrets`]: { name: "PREVIEWED" },
    [`${API}/gates`]: { key: "previewed" },
    [`${API}/keys`]: { id: keyId },
  });
  operations = operationsOf(await readDocument(millrace.url)).filter(({ method }) => method !== "GET");
});

/** Bodies where the example of the schema does not fit what is stored. */
const BODIES: Record<string, Json> = {
  [`${API}/chains/{chainId}`]: { name: "previewed", version: 1, dagJson: { nodes: [{ id: "other", type: "noop" }] } },
  [`${API}/secrets/{name}`]: { value: "another-secret" },
  [`${API}/gates/{key}`]: { ratePerSec: 7 },
  [`${API}/kpi/models/{modelId}`]: MODEL,
  [`${API}/kpi/models/{modelId}:backfill`]: { opTimes: [OP_TIME] },
  [`${API}/kpi/models/{modelId}:run`]: { opTime: OP_TIME, force: true },
  [`${API}/lineage/tenants/{tenantId}/model`]: { summary: { provider: "builtin", model: "rules-v1" } },
  [`${API}/kpi/subscriptions`]: { kpiId: "K1", callbackUrl: "https://example.org/another" },
  [`${API}/lineage/tenants`]: { id: 8, code: "eight", name: "Eight" },
};

async function call(operation: Operation, query: string) {
  const { method, path, body } = operation;
  const [prefix = ""] = Object.keys(known)
    .filter((start) => path.startsWith(start))
    .toSorted((a, b) => b.length - a.length);
  const sent = body === undefined ? undefined : (BODIES[path] ?? example(body));
  return millrace.api.send(`${pathOf(operation, known[prefix])}?${query}`, {
    method,
    ...(sent === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(sent) }),
  });
}

const isDeclared = ({ parameters }: Operation) =>
  parameters.some((parameter) => parameter.in === "query" && parameter.name === "dryRun");

describe("?dryRun=true", () => {
  test("changes nothing on any route, and is refused where there is no preview", async () => {
    const before = await stored(database);
    const previewed: string[] = [];
    for (const operation of operations) {
      const name = `${operation.method} ${operation.path}`;
      const { status, body } = await call(operation, "dryRun=true");
      expect(await stored(database), name).toEqual(before);
      if (!isDeclared(operation)) {
        expect([status, body["code"]], `${name}: ${JSON.stringify(body)}`).toEqual([400, "VALIDATION_FAILED"]);
        expect(body["error"], name).toContain("`dryRun`");
      } else if (status < 300) previewed.push(name);
      else expect([400, 404, 409], `${name}: ${JSON.stringify(body)}`).toContain(status);
    }
    expect(operations.length).toBeGreaterThan(50);
    for (const action of [
      "POST /api/v1/chains",
      "PUT /api/v1/chains/{chainId}",
      "POST /api/v1/chains/{chainId}:start",
      "POST /api/v1/chains/{chainId}:disable",
      "POST /api/v1/chains/{chainId}:backfill",
      "POST /api/v1/chains/{chainId}/schedules",
      "PUT /api/v1/chains/{chainId}/schedules/{scheduleId}",
      "DELETE /api/v1/chains/{chainId}/schedules/{scheduleId}",
      "POST /api/v1/chains/{chainId}/schedules/{scheduleId}:pause",
      "PUT /api/v1/pools/{name}",
      "DELETE /api/v1/pools/{name}",
      "POST /api/v1/runs/{runId}:stop",
      "POST /api/v1/runs/{runId}:resume",
      "POST /api/v1/runs/{runId}:retry",
      "POST /api/v1/runs/{runId}/nodes/{nodeId}:retry",
      "POST /api/v1/runs/{runId}/nodes/{nodeId}:complete",
      "PUT /api/v1/kpi/models/{modelId}",
      "DELETE /api/v1/kpi/models/{modelId}",
      "POST /api/v1/kpi/models/{modelId}:unpublish",
      "POST /api/v1/kpi/models/{modelId}:run",
      "POST /api/v1/kpi/models/{modelId}:backfill",
      "PUT /api/v1/kpi/indicators/{kpiId}",
      "DELETE /api/v1/kpi/indicators/{kpiId}",
      "POST /api/v1/kpi/subscriptions",
      "PATCH /api/v1/kpi/subscriptions/{id}",
      "DELETE /api/v1/kpi/subscriptions/{id}",
      "POST /api/v1/pipeline/stuck:retry",
      "POST /api/v1/lineage/tenants",
      "PATCH /api/v1/lineage/tenants/{tenantId}",
      "POST /api/v1/lineage/tenants/{tenantId}:sync-start",
      "PUT /api/v1/lineage/tenants/{tenantId}/model",
      "DELETE /api/v1/keys/{id}",
      "PUT /api/v1/secrets/{name}",
      "DELETE /api/v1/secrets/{name}",
      "PUT /api/v1/gates/{key}",
      "POST /api/v1/gates/{key}:open",
      "DELETE /api/v1/gates/{key}",
    ]) {
      expect(previewed).toContain(action);
    }
  });

  test.each(["yes", "", "true&dryRun=false"])("in the form ?dryRun=%s is refused and changes nothing", async (text) => {
    const before = await stored(database);
    for (const operation of operations) {
      const { status } = await call(operation, `dryRun=${text}`);
      expect(status, `${operation.method} ${operation.path}`).toBe(400);
    }
    expect(await stored(database)).toEqual(before);
  });

  test("of a subscription shows no signing key: that of the preview signs nothing", async () => {
    const wanted = { kpiId: "K1", callbackUrl: "https://example.org/another" };
    const { status, body } = await millrace.api.post(`${API}/kpi/subscriptions?dryRun=true`, wanted);
    expect([status, body["signingKey"]]).toEqual([200, undefined]);
  });
});

describe("a query parameter that a route does not declare", () => {
  test("is refused everywhere, with the ones that there are", async () => {
    for (const operation of operationsOf(await readDocument(millrace.url))) {
      if (/openlineage$|\/lineage$|\/lineage\/batch$/.test(operation.path)) continue; // Stock clients add their own.
      const query = new URLSearchParams({ nonsense: "1" });
      for (const { name, schema, required, in: where } of operation.parameters) {
        if (where === "query" && required) query.set(name, String(example(schema)));
      }
      const { status, body } = await call(operation, query.toString());
      expect(status, `${operation.method} ${operation.path}: ${JSON.stringify(body)}`).toBe(400);
      expect(body["error"], `${operation.method} ${operation.path}`).toContain("unknown parameter `nonsense`");
    }
    const { body } = await millrace.api.post(`${API}/runs/x:stop?dryrun=true`);
    expect(body["error"]).toBe("The query string has the unknown parameter `dryrun` (did you mean `dryRun`?).");
    const { body: keys } = await millrace.api.get(`${API}/keys?limit=5`);
    expect(keys["error"]).toBe("The query string has the unknown parameter `limit` (this call takes none).");
  });

  test("is ignored where OpenLineage clients post, which may add their own", async () => {
    const event = { eventTime: "2025-01-01T00:00:00Z" };
    const { body } = await millrace.api.post(`${API}/lineage?api_key=x`, event);
    expect(body["error"]).not.toContain("parameter");
  });
});
