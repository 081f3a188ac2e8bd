/** Bad input to the endpoints of arrivals is answered with a sentence and a code, never a 5xx, and changes nothing. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Answer, Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { CATALOGUE } from "../modules.ts";
import { modelBody, TODAY, useKpis } from "./arrivals.fixture.ts";

const database = useDatabase();
const kpis = useKpis(database);
const ARRIVE = "/api/open/kpi/srcTableComplete";
const BASE = "/api/v1/kpi";

const TABLES = [
  "metrics_model",
  "metrics_model_dependency",
  "metrics_etl_log",
  "model_instance",
  "metrics_task_log",
  "metrics_kpi",
  "metrics_model_kpi",
  "metrics_kpi_data",
  "model_deadline",
];
const everything = () =>
  Promise.all(TABLES.map((table) => database.query(`select t::text from arrivals.${table} t order by 1`)));

let before: unknown;
beforeEach(async () => {
  await kpis.publish("M", { grain: "day", dependencies: [{ table: "T", deadline: "PT6H" }] });
  await kpis.define("UNPUBLISHED", { kpis: ["KD2"] });
  await kpis.compute("KC1", "KD1001 * 2");
  await kpis.arrive("T");
  before = await everything();
});
afterEach(async () => {
  expect(await everything()).toEqual(before);
});

/** Status and code, after checking that the answer has a sentence. */
function refused({ status, body }: Answer<Json>): [status: number, code: unknown] {
  expect(status, JSON.stringify(body)).toBeGreaterThanOrEqual(400);
  expect(status, JSON.stringify(body)).toBeLessThan(500);
  expect(body["error"]).toMatch(/^[A-Z`].{10,}[.?]$/s);
  expect(Object.keys(CATALOGUE.errors)).toContain(body["code"]);
  expect(Object.keys(body).filter((name) => !["error", "code", "details"].includes(name))).toEqual([]);
  return [status, body["code"]];
}

interface Endpoint {
  method: string;
  path: string;
  body: Json;
}
function send({ method, path }: Endpoint, body: unknown): Promise<Answer<Json>> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return kpis.api.send(path, { method, headers: { "content-type": "application/json" }, body: text });
}

const arrival: Endpoint = { method: "POST", path: ARRIVE, body: { srcTableName: "T", opTime: TODAY } };
const model: Endpoint = { method: "PUT", path: `${BASE}/models/NEW`, body: modelBody({ kpis: ["KD3"] }) };
const indicator: Endpoint = {
  method: "PUT",
  path: `${BASE}/indicators/NEW`,
  body: { type: "COMPUTED", name: "new", expression: "KD1001 * 3" },
};
const run: Endpoint = { method: "POST", path: `${BASE}/models/M:run`, body: { opTime: TODAY, force: true } };
const backfill: Endpoint = { method: "POST", path: `${BASE}/models/M:backfill`, body: { from: TODAY, to: TODAY } };
const endpoints = { arrival, model, indicator, run, backfill };

const long = (length: number) => "x".repeat(length);
const NO_TEXT = [null, 42, true, ["x"], { a: 1 }, ""];
const UNSTORABLE = ["a\0b", "half \ud800"];
const ONE_LINE = ["a\nb", "\u0007", "\u0085", ...UNSTORABLE];
const OP_TIME = [...NO_TEXT, ...ONE_LINE, long(256), "2025/12/19", "20251219 ", "２０２５", "' or 1=1"];
const dependencies = (fields: object[]) => fields.map((one) => [{ table: "A", ...one }]);

const wrongFields: [endpoint: keyof typeof endpoints, field: string, values: unknown[]][] = [
  ["arrival", "srcTableName", [...NO_TEXT, ...ONE_LINE, long(256)]],
  ["arrival", "opTime", OP_TIME],
  ["model", "name", [...NO_TEXT, ...ONE_LINE, long(256)]],
  ["model", "description", [42, true, [], {}, long(10_001), ...UNSTORABLE]],
  ["model", "engine", [...NO_TEXT, long(65), "oracle", "__proto__", "constructor"]],
  ["model", "sql", [...NO_TEXT, ...UNSTORABLE, long(1_000_001)]],
  ["model", "chain", [...NO_TEXT, long(129), "a chain beside the sql"]],
  [
    "model",
    "dependencies",
    [null, {}, "T", [], [null], ["T"], [{}], Array.from({ length: 1_001 }, (_, i) => ({ table: `T${i}` }))],
  ],
  ["model", "dependencies", [...NO_TEXT, ...ONE_LINE, long(256)].map((table) => [{ table }])],
  [
    "model",
    "dependencies",
    dependencies([{ tabel: "B" }, { optional: "yes" }, { optional: null }, { quietSeconds: -1 }]),
  ],
  ["model", "dependencies", dependencies([{ quietSeconds: 1.5 }, { quietSeconds: "1" }, { quietSeconds: 86_401 }])],
  [
    "model",
    "dependencies",
    dependencies([{ deadline: 6 }, { deadline: "" }, { deadline: long(33) }, { deadline: "PT6H" }]),
  ],
  ["model", "dependencies", dependencies([{ grain: "week" }, { grain: null }, { grain: "day" }, { offset: -1 }])],
  ["model", "dependencies", dependencies([{ offset: "1" }, { offset: 0.5 }, { offset: null }, { offset: 1e300 }])],
  ["model", "kpis", [null, "KD1", {}, [1], [""], ["a b"], [long(65)], ["KD3", "KD3"], ["KD\0"], ["KC1"], ["KD1001"]]],
  ["model", "grain", ["week", "", 1, true, []]],
  ["model", "timeZone", [...NO_TEXT, long(65), "Mars/Olympus", "+02:00"]],
  ["model", "produces", [42, "", [], {}, long(256), "a\tb", "T"]],
  ["model", "rerun", [...NO_TEXT, "always", "AUTO"]],
  ["model", "timeoutSeconds", [null, 0, -1, 1.5, "60", 86_401, 1e300]],
  ["model", "retry", [3, "often", [], {}, { maxAttempts: 0 }, { maxAttempts: null }, { maxAttempts: 3, backoff: 1 }]],
  ["indicator", "type", [...NO_TEXT, "computed", "OTHER"]],
  ["indicator", "name", [...NO_TEXT, ...ONE_LINE, long(256)]],
  ["indicator", "expression", [...NO_TEXT, ...UNSTORABLE, long(4_097), "1 +", "NEW + 1", "((((", "'a' + 'b'"]],
  ["indicator", "expression", ["KD1.x * 2", "kpi[string(1)] + 1.0", `${"(".repeat(1_000)}KD1${")".repeat(1_000)}`]],
  ["indicator", "dependsOn", [null, "KD1001", {}, [1], [""], ["a b"], ["KD2"], ["KD1001", "KD1001"], []]],
  ["run", "opTime", [...OP_TIME, "20250230", "202512"]],
  ["run", "force", [null, "true", 1, {}]],
  ["backfill", "from", [...OP_TIME, "20250230", "20251220", "00010101"]],
  ["backfill", "to", [...OP_TIME, "20251218", "99991231"]],
  ["backfill", "dryRun", [null, "true", 1, {}]],
];

describe("an invalid field", () => {
  test.each(wrongFields)("%s: %s, %#", async (name, field, values) => {
    const endpoint = endpoints[name];
    for (const value of values) {
      const answer = await send(endpoint, { ...endpoint.body, [field]: value });
      expect(refused(answer)[0], JSON.stringify(value).slice(0, 100)).toBeOneOf([400, 409, 413]);
    }
  });

  test.each([
    [
      { maxAttempts: 3, backofMs: 1 },
      "The field `retry` has the unknown field `backofMs` (did you mean `backoffMs`?).",
    ],
    [{ maxAttempt: 3 }, "The field `retry` lacks the field `maxAttempts` (you sent `maxAttempt`)."],
    [{ maxAttempts: 0 }, "The field `retry.maxAttempts` must be >= 1."],
  ])("of `retry` is named: %j", async (retry, error) => {
    expect((await send(model, { ...model.body, retry })).body).toMatchObject({ error });
  });

  test.each(Object.entries(endpoints))("is missing or unknown: %s", async (_name, endpoint) => {
    const optional = ["sql", "force", "expression", "dryRun"];
    for (const field of Object.keys(endpoint.body).filter((one) => !optional.includes(one))) {
      const { [field]: _left, ...rest } = endpoint.body;
      expect(refused(await send(endpoint, rest))).toEqual([400, "VALIDATION_FAILED"]);
    }
    for (const field of ["other", "OPTIME", "", "constructor", "modelId", "state"]) {
      expect(refused(await send(endpoint, { ...endpoint.body, [field]: 1 }))).toEqual([400, "VALIDATION_FAILED"]);
    }
  });
});

describe("an invalid body", () => {
  const bodies: [what: string, text: string][] = [
    ["empty", ""],
    ["cut off", '{"srcTableName": "T", '],
    ["no object", "[]"],
    ["null", "null"],
    ["a number", "42"],
    ["text", '"T"'],
    ["a number that no double holds", '{"opTime": 1e999}'],
    ["with a prototype", '{"__proto__": {"opTime": "20251219"}}'],
    ["nested without end", `${'{"a":'.repeat(500)}1${"}".repeat(500)}`],
    ["two values", "{} {}"],
  ];
  test.each(bodies)("%s", async (_what, text) => {
    for (const endpoint of Object.values(endpoints)) expect(refused(await send(endpoint, text))[0]).toBe(400);
  });

  test("of another type", async () => {
    for (const { method, path } of Object.values(endpoints)) {
      const headers = { "content-type": "text/plain" };
      expect(refused(await kpis.api.send(path, { method, headers, body: "x" }))).toEqual([
        415,
        "UNSUPPORTED_MEDIA_TYPE",
      ]);
    }
  });

  test("where none is expected", async () => {
    for (const action of ["publish", "unpublish"]) {
      for (const body of ['{"state": 1}', "[]", "1", "{"]) {
        expect(refused(await send({ ...run, path: `${BASE}/models/M:${action}` }, body))[0]).toBe(400);
      }
    }
  });
});

describe("a header", () => {
  test.each(["", "a b", "ключ", long(256)])("Idempotency-Key that is not valid: %j", async (key) => {
    const headers = { "content-type": "application/json", "idempotency-key": Buffer.from(key).toString("latin1") };
    const answer = await kpis.api.send(ARRIVE, { method: "POST", headers, body: JSON.stringify(arrival.body) });
    expect(refused(answer)).toEqual([400, "VALIDATION_FAILED"]);
  });
});

describe("an unknown id", () => {
  const odd = ["nobody", "m", "M ", "100%", "a/b", "a:b", "模型", "'; drop table x --", long(500), "a\nb"];
  const paths: [method: string, path: (id: string) => string, code: string][] = [
    ["GET", (id) => `/models/${id}`, "MODEL_NOT_FOUND"],
    ["DELETE", (id) => `/models/${id}`, "MODEL_NOT_FOUND"],
    ["GET", (id) => `/models/${id}/why?opTime=${TODAY}`, "MODEL_NOT_FOUND"],
    ["POST", (id) => `/models/${id}:publish`, "MODEL_NOT_FOUND"],
    ["POST", (id) => `/models/${id}:unpublish`, "MODEL_NOT_FOUND"],
    ["POST", (id) => `/models/${id}:run`, "MODEL_NOT_FOUND"],
    ["POST", (id) => `/models/${id}:backfill`, "MODEL_NOT_FOUND"],
    ["GET", (id) => `/indicators/${id}`, "KPI_NOT_FOUND"],
    ["DELETE", (id) => `/indicators/${id}`, "KPI_NOT_FOUND"],
  ];
  const bodyOf = (path: string) => (path.endsWith(":run") ? run.body : path.endsWith(":backfill") ? backfill.body : {});

  test.each(paths)("%s %s", async (method, path, code) => {
    for (const id of odd) {
      const url = path(encodeURIComponent(id));
      const request = method === "POST" ? { body: JSON.stringify(bodyOf(url)) } : {};
      const headers = method === "POST" ? { "content-type": "application/json" } : {};
      const answer = await kpis.api.send(BASE + url, { method, headers, ...request });
      expect(refused(answer), id.slice(0, 50)).toEqual([404, code]);
    }
    for (const raw of ["%00", "%", "%FF", long(600)]) {
      const answer = await kpis.api.send(BASE + path(raw), { method });
      expect(refused(answer)[0], raw.slice(0, 50)).toBeOneOf([400, 404]);
    }
  });

  test.each(["models", "indicators"])("that is not valid cannot be used for new %s", async (kind) => {
    const { body } = kind === "models" ? model : indicator;
    for (const id of odd.filter((one) => !["nobody", "m"].includes(one))) {
      const answer = await send({ method: "PUT", path: `${BASE}/${kind}/${encodeURIComponent(id)}`, body }, body);
      expect(refused(answer)[0], id.slice(0, 50)).toBe(400);
    }
  });
});

describe("a query", () => {
  const json = (value: string) => encodeURIComponent(value);
  test.each([
    [
      "/models",
      ["page=0", "page=x", "size=0", "size=1001", "page=1e9", "state=2", "state=x", "q=", `q=${long(256)}`, "x=1"],
    ],
    ["/indicators", ["page=-1", "size=1.5", "type=OTHER", "q=", "q=%00", "sort=name"]],
    [
      "/data",
      ["kpiId=a%20b", `kpiId=${long(65)}`, "opTime=", "opTime=a%20b", "from=%0A", "to=%2F", "size=2000", "model=M"],
    ],
    ["/data", ["", "[]", "1", "null", '"x"', "{"].map((one) => `dimensions=${json(one)}`)],
    ["/data", [`dimensions=${json(`{"a":${"[".repeat(1_500)}${"]".repeat(1_500)}}`)}`, `dimensions=${long(4_097)}`]],
    ["/task-logs", ["status=success", "status=", "opTime=a%20b", "modelId=", "page=0", "since=1"]],
    ["/arrivals", ["table=", "table=%07", `table=${long(256)}`, "opTime=%20", "size=x", "q=x"]],
    [
      "/readiness",
      ["", `from=${TODAY}`, `from=${TODAY}&to=%20`, `from=${TODAY}&to=20251218`, "from=20200101&to=20251219"],
    ],
    [
      "/models/M/why",
      ["", "opTime=", "opTime=%20", "opTime=202512", `opTime=${TODAY}&x=1`, `opTime=${TODAY}&opTime=2`],
    ],
  ])("of %s that is not valid: %j", async (path, queries) => {
    for (const query of queries) {
      expect(refused(await kpis.get(`${path}?${query}`)), query.slice(0, 60)).toEqual([400, expect.any(String)]);
    }
  });

  test("without matches is answered with an empty page", async () => {
    const unstorable = ['{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"\\u0000":1}'].map(
      (one) => `/data?dimensions=${json(one)}`,
    );
    for (const path of [
      "/models?q=%25",
      "/indicators?q=%5C",
      "/task-logs?opTime=never",
      "/arrivals?table=%25",
      "/data?page=10000",
      ...unstorable,
    ]) {
      expect(await kpis.get(path)).toMatchObject({ status: 200, body: { items: [] } });
    }
  });
});

describe("an unknown route", () => {
  test.each([
    ["GET", ARRIVE, 405],
    ["PUT", ARRIVE, 405],
    ["POST", `${BASE}/models`, 405],
    ["PATCH", `${BASE}/models/M`, 405],
    ["POST", `${BASE}/models/M`, 405],
    ["GET", `${BASE}/models/M:run`, 405],
    ["POST", `${BASE}/models/M:publishx`, 404],
    ["POST", `${BASE}/models/M:`, 404],
    ["POST", `${BASE}/models/:run`, 404],
    ["DELETE", `${BASE}/models/M/why`, 405],
    ["POST", `${BASE}/indicators/KD1`, 405],
    ["DELETE", `${BASE}/data`, 405],
    ["POST", `${BASE}/readiness`, 405],
    ["PUT", `${BASE}/arrivals`, 405],
  ])("%s %s is answered with %d", async (method, path, status) => {
    expect(refused(await kpis.api.send(path, { method }))[0]).toBe(status);
  });
});

describe("a key", () => {
  const keys = { read: "", write: "" };
  beforeAll(async () => {
    for (const scope of ["read", "write"] as const) {
      const { body } = await kpis.api.post("/api/v1/keys", { name: scope, scopes: [`kpi:${scope}`] });
      keys[scope] = String(body["key"]);
    }
  });
  afterAll(async () => {
    await database.query("delete from kernel.api_key");
  });

  test("with only the read scope cannot write, and one with only the write scope cannot read", async () => {
    const as = (key: string, method: string, path: string, body?: Json) =>
      kpis.api.send(path, {
        method,
        headers: { authorization: `Bearer ${key}`, ...(body ? { "content-type": "application/json" } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    for (const { method, path, body } of Object.values(endpoints)) {
      expect(refused(await as(keys.read, method, path, body))).toEqual([403, "FORBIDDEN"]);
    }
    for (const path of ["/models/M:publish", "/models/M:unpublish"]) {
      expect(refused(await as(keys.read, "POST", BASE + path))).toEqual([403, "FORBIDDEN"]);
    }
    for (const path of ["/models/M", "/indicators/KC1"]) {
      expect(refused(await as(keys.read, "DELETE", BASE + path))).toEqual([403, "FORBIDDEN"]);
    }
    const range = `from=${TODAY}&to=${TODAY}`;
    const reads = ["/models", "/models/M", `/models/M/why?opTime=${TODAY}`, "/indicators", "/indicators/KC1", "/data"];
    for (const path of [...reads, "/task-logs", "/arrivals", `/readiness?${range}`]) {
      expect(refused(await as(keys.write, "GET", BASE + path))).toEqual([403, "FORBIDDEN"]);
      expect((await as(keys.read, "GET", BASE + path)).status).toBe(200);
    }
  });
});
