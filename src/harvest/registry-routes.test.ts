/** The API of the registry, over real HTTP. */
import { Ajv } from "ajv";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startHttp, type TestHttp } from "../../test/http.ts";
import { noHints } from "../../test/no-hints.ts";
import type { Http } from "../kernel/http/server.ts";
import { createSecretBox } from "../kernel/secrets/cipher.ts";
import { createNamedSecrets } from "../kernel/secrets/named-secrets.ts";
import { createCredentials } from "./definition/credentials.ts";
import { definitionWith, ORDERS } from "./definition/definition.fixture.ts";
import { createRegistry } from "./definition/registry.ts";
import { registryRoutes } from "./registry-routes.ts";
import { DefinitionBody } from "./registry-schemas.ts";

const database = useDatabase();
let http: TestHttp;

beforeAll(async () => {
  const { db } = database;
  const clock = { now: () => Date.now() };
  const box = createSecretBox(Buffer.alloc(32, 7));
  const secrets = createNamedSecrets({ db, hints: noHints, box });
  const registry = createRegistry({
    db,
    wake: { hint: () => undefined },
    hints: noHints,
    clock,
    secrets,
    allowPrivate: ["localhost:8080"],
    tables: {
      of(engine) {
        if (engine !== "warehouse") throw new Error(`There is no engine \`${engine}\`.`);
      },
    },
    onSchedules: () => {},
  });
  const credentials = createCredentials({ db, clock, secrets, box, env: { SHOP_KEY: "hunter2" } });
  http = await startHttp({
    db,
    bodyLimitBytes: 100_000,
    routes: (server) =>
      void server.register(async (scope) => registryRoutes(scope as Http, { registry, credentials }), {
        prefix: "/api",
      }),
  });
  return () => http.stop();
});
beforeEach(async () => {
  await database.query("delete from harvest.reg_provenance");
});

const SOURCES = "/api/registry/sources";
const put = (body: unknown, query = "", source = "shop") =>
  http.send(`${SOURCES}/${source}${query}`, { method: "PUT", body });
const post = (action: string, body: unknown, query = "") => http.send(`${SOURCES}:${action}${query}`, { body });
const stored = () => database.query("select provenance_code from harvest.reg_provenance");

describe("a source", () => {
  test("is applied, shown, listed and deleted", async () => {
    const definition = definitionWith(
      {},
      { schedules: { daily: { endpoint: "orders", operation: "HARVEST", cron: "@daily", timeZone: "UTC" } } },
    );
    expect(await put(definition)).toMatchObject({
      status: 201,
      body: {
        source: "shop",
        outcome: "created",
        revision: 1,
        baseUrl: "https://api.example.org",
        baseUrlOverride: null,
      },
    });
    expect((await put(definition)).body).toMatchObject({ outcome: "unchanged", changes: [] });
    const changed = await put({ ...definition, name: "Shops" });
    expect(changed).toMatchObject({
      status: 200,
      body: { outcome: "changed", revision: 2, changes: [{ field: "name", from: "Shop", to: "Shops" }] },
    });
    const shown = await http.send(`${SOURCES}/shop`);
    expect(shown).toMatchObject({
      status: 200,
      body: {
        source: "shop",
        name: "Shops",
        revision: 2,
        updatedBy: "MILLRACE_ADMIN_KEY",
        definition: { ...definition, name: "Shops" },
      },
    });
    expect(shown.body["endpointIds"]).toEqual({ orders: expect.any(Number) });
    expect((await http.send(`${SOURCES}?q=hop&size=5`)).body).toEqual({
      items: [expect.objectContaining({ source: "shop", endpoints: 1, schedules: 1 })],
      page: 1,
      size: 5,
      total: 1,
    });
    expect((await http.send(`${SOURCES}?q=nothing`)).body).toMatchObject({ items: [], total: 0 });
    expect((await http.send(`${SOURCES}/shop?dryRun=true`, { method: "DELETE" })).status).toBe(200);
    expect(await stored()).toHaveLength(1);
    expect((await http.send(`${SOURCES}/shop`, { method: "DELETE" })).status).toBe(200);
    expect(await stored()).toEqual([]);
  });

  test("can be applied as it is shown", async () => {
    await put(definitionWith());
    const { body } = await http.send(`${SOURCES}/shop`);
    expect((await put(body["definition"])).body).toMatchObject({ outcome: "unchanged" });
  });

  test("is written only from the revision that the caller saw, if it names one", async () => {
    const conflict = (revision: number, yours: number) => ({
      status: 409,
      body: { code: "REVISION_CONFLICT", details: { source: "shop", revision, yours } },
    });
    expect(await put(definitionWith(), "?revision=1")).toMatchObject(conflict(0, 1));
    expect(await put(definitionWith(), "?revision=0")).toMatchObject({ status: 201, body: { revision: 1 } });
    expect(await put(definitionWith({ path: "/v2" }), "?revision=0")).toMatchObject(conflict(1, 0));
    expect(await put(definitionWith({ path: "/v2" }), "?revision=1")).toMatchObject({ body: { revision: 2 } });
    expect(await put(definitionWith({ path: "/v3" }), "?revision=1&dryRun=true")).toMatchObject(conflict(2, 1));
    // Whoever names none, such as the command line, replaces what is there.
    expect(await put(definitionWith({ path: "/v3" }))).toMatchObject({ status: 200, body: { revision: 3 } });
  });

  test("is not changed by a dry run, which answers the same", async () => {
    expect(await put(definitionWith(), "?dryRun=true")).toMatchObject({
      status: 200,
      body: { outcome: "created", revision: 1 },
    });
    expect(await stored()).toEqual([]);
    await put(definitionWith());
    expect((await put(definitionWith({ path: "/v2" }), "?dryRun=true")).body).toMatchObject({
      outcome: "changed",
      revision: 2,
    });
    expect((await http.send(`${SOURCES}/shop`)).body["revision"]).toBe(1);
  });

  test("that does not exist is answered with a similar one", async () => {
    await put(definitionWith());
    const unknown = {
      status: 404,
      body: { code: "SOURCE_NOT_FOUND", error: "There is no source shopp. Did you mean `shop`?" },
    };
    expect(await http.send(`${SOURCES}/shopp`)).toMatchObject(unknown);
    expect(await http.send(`${SOURCES}/shopp`, { method: "DELETE" })).toMatchObject(unknown);
    expect(await http.send(`${SOURCES}/shopp/credentials`)).toMatchObject(unknown);
    expect(await http.send(`${SOURCES}/shop/endpoints/order/spec`)).toMatchObject({
      status: 404,
      body: { code: "ENDPOINT_NOT_FOUND", error: "The source shop has no endpoint order. Did you mean `orders`?" },
    });
  });
});

describe("a definition that cannot be used", () => {
  test("is refused where the parameters of a schedule do not match their patterns", async () => {
    const schedule = { endpoint: "orders", operation: "HARVEST", cron: "0 3 * * *", timeZone: "UTC" } as const;
    const params = [{ name: "state", location: "QUERY" as const, required: true, pattern: "[a-z]+" }];
    const of = (state: string) =>
      definitionWith({ params }, { schedules: { nightly: { ...schedule, params: { state } } } });
    const { status, body } = await put(of("Open"), "?dryRun=true");
    expect({ status, problems: (body["details"] as Json)["problems"] }).toEqual({
      status: 400,
      problems: [
        {
          table: "ing_schedule",
          field: "schedules.nightly.params.state",
          reason: "The value `Open` does not match the pattern `[a-z]+`.",
          path: ["schedules", "nightly", "params", "state"],
        },
      ],
    });
    expect((await put(of("open"), "?dryRun=true")).status).toBe(200);
  });

  test("is refused with all its problems, and nothing is changed", async () => {
    const bad = {
      ...definitionWith(
        { pagination: {} },
        { schedules: { nightly: { cron: "61 * * * *", endpoint: "ordres" } } as never },
      ),
    };
    bad.endpoints["returns"] = { ...ORDERS, path: "/returns", pagination: {} };
    const { status, body } = await put(bad);
    expect({ status, code: body["code"] }).toEqual({ status: 400, code: "DEFINITION_INVALID" });
    const { problems } = body["details"] as { problems: Json[] };
    expect(problems).toEqual(
      expect.arrayContaining([
        {
          table: "ing_schedule",
          field: "schedules.nightly.cron",
          reason: expect.stringContaining("61"),
          path: ["schedules", "nightly", "cron"],
        },
        {
          table: "ing_schedule",
          field: "schedules.nightly.endpoint",
          reason: "The endpoint `ordres` does not exist. Did you mean `orders`?",
          path: ["schedules", "nightly", "endpoint"],
        },
        {
          table: "reg_prov_pagination_cfg",
          field: "pagination.type",
          reason: expect.any(String),
          path: ["endpoints", "orders", "pagination", "type"],
        },
        {
          table: "reg_prov_pagination_cfg",
          field: "pagination.type",
          reason: expect.any(String),
          path: ["endpoints", "returns", "pagination", "type"],
        },
      ]),
    );
    expect(await stored()).toEqual([]);
  });

  test("is refused for its form too, with every mistake and its table", async () => {
    const { endpoints, ...rest } = definitionWith();
    const bad = {
      ...rest,
      nmae: "x",
      endpoints: { orders: { ...endpoints["orders"], pagination: { pageSize: "many" }, method: "FETCH" } },
      credentials: { key: { env: "not a name" } },
    };
    const { body } = await put(bad);
    const { problems } = body["details"] as { problems: Json[] };
    expect(problems.map(({ table, path }) => [table, (path as string[]).join(".")])).toEqual(
      expect.arrayContaining([
        ["reg_provenance", "nmae"],
        ["reg_prov_pagination_cfg", "endpoints.orders.pagination.pageSize"],
        ["reg_prov_endpoint_def", "endpoints.orders.method"],
        ["reg_prov_credential", "credentials.key"],
      ]),
    );
  });

  test.each([
    [
      "without an endpoint to search",
      { endpoints: { ids: { ...ORDERS, role: "DETAIL" } } },
      "endpoints",
      /role SEARCH/,
    ],
    [
      "with two defaults",
      { endpoints: { a: { ...ORDERS, default: true }, b: { ...ORDERS, default: true } } },
      "endpoints.b.default",
      /`a` is the default already/,
    ],
    [
      "with a schedule that names no endpoint, and none is the default",
      { endpoints: { a: ORDERS, b: ORDERS }, schedules: { daily: { cron: "@daily" } } },
      "schedules.daily",
      /names no endpoint/,
    ],
    [
      "with a schedule of backfills that nothing ends",
      { schedules: { back: { operation: "BACKFILL", cron: "@daily" } } },
      "schedules.back.operation",
      /goes back to `window.earliest`, which its endpoint does not declare/,
    ],
    [
      "with two endpoints that land in one table",
      { endpoints: { a: ORDERS, b: ORDERS }, defaults: { landing: { table: "LAKE_ORDERS" } } },
      "endpoints.b.landing.table",
      /`a` lands in LAKE_ORDERS already/,
    ],
  ])("is refused %s", async (_, fields, path, reason) => {
    const { body } = await post("validate", { ...definitionWith(), ...fields });
    expect(body["valid"]).toBe(false);
    const found = (body["problems"] as Json[]).find((one) => (one["path"] as string[]).join(".") === path);
    expect(found?.["reason"]).toMatch(reason);
  });

  test("is refused under another name than its own", async () => {
    expect(await put(definitionWith(), "", "market")).toMatchObject({
      status: 400,
      body: { error: "The definition is of the source `shop`, and the path names `market`." },
    });
  });

  test("is refused with a base URL that is private or has no TLS, unless its host is listed", async () => {
    for (const baseUrl of [
      "http://api.example.org",
      "https://127.0.0.1",
      "https://10.0.0.7:8443/api",
      "ftp://a.example",
    ]) {
      const { status, body } = await put(definitionWith(), `?baseUrl=${encodeURIComponent(baseUrl)}`);
      expect([baseUrl, status, body["code"]]).toEqual([baseUrl, 400, "DEFINITION_INVALID"]);
      expect((await put({ ...definitionWith(), baseUrl })).status).toBe(400);
    }
    expect((await put(definitionWith(), "?baseUrl=http://localhost:8080/v1")).body).toMatchObject({
      baseUrl: "http://localhost:8080/v1",
      baseUrlOverride: "http://localhost:8080/v1",
    });
  });
});

describe("a definition", () => {
  test("is validated without being written", async () => {
    const { status, body } = await post(
      "validate",
      definitionWith({}, { credentials: { key: { secret: "SHOP_TOKEN" } } }),
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({ valid: true, problems: [] });
    expect(body["endpoints"]).toEqual([
      {
        endpoint: "orders",
        specFingerprint: expect.stringMatching(/^[\da-f]{64}$/),
        needs: [],
      },
    ]);
    expect(body["warnings"]).toContainEqual({
      table: "reg_prov_credential",
      field: "credentials.key.secret",
      reason: "There is no secret `SHOP_TOKEN` yet. Create it with `millrace secrets set`.",
      path: ["credentials", "key", "secret"],
    });
    expect(await stored()).toEqual([]);
  });

  test("may need parameters that only a trigger gives, which its schedules do", async () => {
    const query = { ...ORDERS.http?.query, shop: "${params.shop}" };
    const params = [{ name: "shop", location: "QUERY", required: true }] as const;
    const withSchedule = (schedule: object) =>
      definitionWith(
        { http: { query }, params: [...params] },
        { schedules: { daily: { operation: "HARVEST", cron: "@daily", timeZone: "UTC", ...schedule } } },
      );
    const { body } = await post("validate", withSchedule({ params: { shop: "north" } }));
    expect(body).toMatchObject({
      valid: true,
      endpoints: [{ endpoint: "orders", specFingerprint: null, needs: ["shop"] }],
    });
    expect((await post("validate", withSchedule({ params: { ship: "north" } }))).body["problems"]).toEqual([
      {
        table: "ing_schedule",
        field: "schedules.daily.params.ship",
        reason: expect.stringContaining("Did you mean `shop`?"),
        path: ["schedules", "daily", "params", "ship"],
      },
      expect.objectContaining({ field: "schedules.daily.params.shop", reason: expect.stringContaining("required") }),
    ]);
    await put(withSchedule({ params: { shop: "north" } }));
    expect((await http.send(`${SOURCES}/shop/endpoints/orders/spec`)).body).toMatchObject({ needs: ["shop"] });
  });

  test("is compared with the registry, field by field", async () => {
    expect((await post("diff", definitionWith())).body).toEqual({ source: "shop", outcome: "created", changes: [] });
    await put(definitionWith());
    expect((await post("diff", definitionWith())).body).toMatchObject({ outcome: "unchanged", changes: [] });
    const changed = definitionWith(
      { pagination: { ...ORDERS.pagination, pageSize: 50 } },
      { credentials: { key: { env: "K" } } },
    );
    expect((await post("diff", changed, "?baseUrl=http://localhost:8080")).body["changes"]).toEqual([
      { field: "baseUrlOverride", from: null, to: "http://localhost:8080" },
      { field: "credentials", to: { key: { env: "K" } } },
      { field: "endpoints.orders.pagination.pageSize", from: 100, to: 50 },
    ]);
    expect((await http.send(`${SOURCES}/shop`)).body["revision"]).toBe(1);
  });

  test("can be written as the example of the reference shows", async () => {
    const { examples } = DefinitionBody as unknown as { examples: Json[] };
    expect((await post("validate", examples[0])).body).toMatchObject({ valid: true, warnings: [] });
  });

  test("has a published JSON Schema, for everyone, by which an editor accepts it and finds a misspelt field", async () => {
    const { status, body } = await http.send("/api/definition.schema.json", { headers: { authorization: "" } });
    expect(status).toBe(200);
    const accepts = new Ajv({ strict: false }).compile(body);
    const { examples } = DefinitionBody as unknown as { examples: [{ endpoints: { orders: object } }] };
    const [example] = examples;
    const short = {
      ...example.endpoints.orders,
      params: [{ name: "q" }],
      outputFields: [{ name: "id", path: "$.id" }],
    };
    expect(accepts(example) && accepts({ ...example, endpoints: { orders: short } })).toBe(true);
    expect(accepts({ ...example, endpoints: { orders: { ...short, pagintion: {} } } })).toBe(false);
  });
});

test("the spec of an endpoint names the layer of each value", async () => {
  await put(definitionWith({ overrides: { retry: { jitter: 0.5 } } }, { defaults: { retry: { capMs: 9_000 } } }));
  const { status, body } = await http.send(`${SOURCES}/shop/endpoints/orders/spec`);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    source: "shop",
    endpoint: "orders",
    operation: "HARVEST",
    specFingerprint: expect.stringMatching(/^[\da-f]{64}$/),
    snapshot: { spec: { retry: { capMs: 9_000, jitter: 0.5, factor: 2 } } },
    origins: {
      "retry.capMs": "provenance",
      "retry.jitter": "endpoint",
      "retry.factor": "platform",
      "pagination.pageSize": "cfg",
    },
  });
  expect((await http.send(`${SOURCES}/shop/endpoints/orders/spec?operation=FETCH`)).status).toBe(400);
});

test("credentials are shown without their values", async () => {
  await put(definitionWith({}, { credentials: { key: { env: "SHOP_KEY" }, token: { secret: "SHOP_TOKEN" } } }));
  const { body } = await http.send(`${SOURCES}/shop/credentials`);
  expect(body["items"]).toEqual([
    { name: "key", kind: "env", reference: "SHOP_KEY", version: 0, changedAt: null, present: true },
    { name: "token", kind: "secret", reference: "SHOP_TOKEN", version: 0, changedAt: null, present: false },
  ]);
  expect(JSON.stringify(body)).not.toContain("hunter2");
});

test("the dictionary lists the codes by type", async () => {
  const { body } = await http.send("/api/registry/dictionary");
  expect(body["items"]).toContainEqual({
    type: "ing_cursor_type",
    description: "What a cursor counts",
    items: ["ID", "TIME", "TOKEN"].map((code) => ({ code, description: "", aliases: [] })),
  });
});

test("reading needs harvest:read, and changing harvest:write", async () => {
  const { db } = database;
  const { key } = await db.tx((tx) => http.keys.create(tx, { name: "reader", scopes: ["harvest:read"] }, "test"));
  const headers = { authorization: `Bearer ${key}` };
  expect((await http.send(SOURCES, { headers })).status).toBe(200);
  expect((await http.send(`${SOURCES}:validate`, { headers, body: definitionWith() })).status).toBe(200);
  for (const method of ["PUT", "DELETE"]) {
    const body = method === "PUT" ? { body: definitionWith() } : {};
    expect((await http.send(`${SOURCES}/shop`, { method, headers, ...body })).status).toBe(403);
  }
  expect(await stored()).toEqual([]);
});
