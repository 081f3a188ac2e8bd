/**
 * Whatever is sent to whichever route: the answer is 4xx with a sentence and a code, and nothing in the database changes.
 * The routes are those of `/openapi.json`.
 */
import { type IncomingMessage, request } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { gravitinoEvent } from "../../src/lineage/events.fixture.ts";
import { CATALOGUE } from "../../src/modules.ts";
import { useDatabase } from "../database.ts";
import { makeTenant, postEvent } from "../lineage-process.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";
import { stored } from "../stored.ts";
import { reached, trackingTable } from "../tracking.ts";
import {
  example,
  type Operation,
  operationsOf,
  pathOf,
  pathsOf,
  readDocument,
  required,
  type Schema,
  wrongValues,
} from "./operations.ts";

const BODY_LIMIT = 65_536;
/** Of routes that take a DAG. */
const DAG_BODY_LIMIT = 16 * 1_048_576;
/** Of the route that takes the SQL of a model. */
const MODEL_BODY_LIMIT = 8 * 1_048_576;
/** Of those that take events. */
const EVENT_BODY_LIMIT = 1_048_576;
/** Of the definition of a source. */
const SOURCE_BODY_LIMIT = 4 * 1_048_576;
/** Editors read the schema of definitions, and have no key. */
const PUBLIC = [
  "DELETE /api/v1/session",
  "GET /api/v1/harvest/definition.schema.json",
  "GET /healthz",
  "GET /metrics",
  "GET /readyz",
  "POST /api/v1/session",
];
/** For every caller with a key, whatever its scopes. */
const ANY_SCOPE = [
  "GET /api/v1/session",
  "GET /api/v1/events",
  "GET /api/v1/overview",
  "GET /api/v1/overview/activity",
];

const database = useDatabase();
const millrace = useMillrace(database, {
  env: { MILLRACE_BODY_LIMIT_BYTES: String(BODY_LIMIT), MILLRACE_SECRET_KEY: "5e".repeat(32) },
  lineage: { eventBytesMax: EVENT_BODY_LIMIT },
});
const table = trackingTable(database);
let operations: Operation[] = [];
/** Keys that lack every scope of the routes with this tag. */
const strangers = new Map<string, string>();
let before: unknown;

/** A key with all scopes of a module. */
async function keyFor(...scopes: string[]): Promise<string> {
  const { body } = await millrace.api.post("/api/v1/keys", { name: scopes.join(" "), scopes });
  return String(body["key"]);
}

/** What should be refused would find something to spoil: a chain with a schedule, and a stopped run, that could go on. */
async function makeChain(): Promise<Record<string, string>> {
  const { body: chain } = await millrace.api.post("/api/v1/chains", {
    name: "one of the test's own",
    dagJson: { nodes: [{ id: "load", type: "noop" }] },
  });
  const chainId = String(chain["chainId"]);
  const schedule = { name: "nightly", cron: "0 3 * * *" };
  const { body: scheduled } = await millrace.api.post(`/api/v1/chains/${chainId}/schedules`, schedule);
  const { body: run } = await millrace.api.post(`/api/v1/chains/${chainId}:start`);
  const runId = String(run["runId"]);
  await millrace.api.post(`/api/v1/runs/${runId}:stop`);
  return { chainId, scheduleId: String(scheduled["scheduleId"]), runId, nodeId: "load" };
}

/** And a tenant with a table, which could be renamed, synced or given a model. */
async function makeLineage(): Promise<Record<string, string>> {
  const { id, keys } = await makeTenant(millrace.api, 7);
  const { body } = await postEvent(millrace.url, keys.GRAVITINO, gravitinoEvent("create_table"));
  return { tenantId: String(id), eventId: String(body["id"]) };
}

beforeAll(async () => {
  const known = { ...(await makeChain()), ...(await makeLineage()) };
  operations = operationsOf(await readDocument(millrace.url), known);
  const forChains = await keyFor("chain:read", "chain:write", "run:read", "run:write", "run:control");
  const forPipeline = await keyFor("pipeline:read", "pipeline:write");
  for (const tag of ["pipeline", "admin", "harvest"]) strangers.set(tag, forChains);
  for (const tag of ["chains", "runs", "arrivals", "models", "indicators", "webhooks"]) strangers.set(tag, forPipeline);
  for (const tag of ["lineage", "lineage tenants", "lineage projection"]) strangers.set(tag, forPipeline);
  // Under the name that the examples use, so that here too there is something to spoil: a shard that can be finished,
  // one whose ingest can, and one that can be claimed.
  const { body: registration } = operations.find(({ path }) => path.endsWith("/files/register")) ?? {};
  const filename = String(example(registration?.properties?.["filename"] ?? {}));
  await table.put(reached("shard-worker", "started"), { filename });
  await millrace.api.post("/api/v1/pipeline/files/register", { filename, shards: [1] });
  await table.put(reached("shard-splitter", "new"));
  before = await stored(database);
});
afterEach(async () => {
  expect(await stored(database)).toEqual(before);
});

interface Sent {
  method: string;
  path: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

/** Not `fetch`, which would correct the path. */
async function send({ method, path, body, headers }: Sent): Promise<{ status: number; type: string; text: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(millrace.url + path, {
      method,
      headers: {
        authorization: `Bearer ${ADMIN_KEY}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
    });
    sent.on("response", resolve).on("error", reject).end(body);
  });
  const type = response.headers["content-type"] ?? "";
  const endless = type.startsWith("text/event-stream");
  if (endless) response.destroy();
  return { status: response.statusCode ?? 0, type, text: endless ? "" : await textOf(response) };
}

/** What is wrong with an answer to bad input; nothing, if it is as it should be. */
function flaw(
  { status, type, text }: Awaited<ReturnType<typeof send>>,
  statuses: readonly number[],
): string | undefined {
  if (!statuses.includes(status)) return `${status} instead of ${statuses.join(" or ")}: ${text.slice(0, 200)}`;
  if (!type.startsWith("application/json")) return `${type} instead of JSON`;
  const { error, code } = JSON.parse(text) as { error?: unknown; code?: unknown };
  if (typeof code !== "string" || CATALOGUE.errors[code]?.status !== status) return `the code ${String(code)}`;
  if (typeof error !== "string" || !/^[A-Z/].{10,}[.?]$/s.test(error)) return `no sentence: ${String(error)}`;
  return undefined;
}

/**
 * What is sent to these may be an event of any producer: fields that nobody knows are welcome, and a batch is answered event
 * by event. They have a walk of their own.
 */
const EVENT_PATHS = new Set(["/api/openlineage", "/api/v1/lineage", "/api/v1/lineage/batch"]);
const BASELINE_PATH = "/api/v1/lineage/tenants/{tenantId}/baseline";
const takesEvents = ({ path }: Operation) => EVENT_PATHS.has(path) || path === BASELINE_PATH;
/** How what cannot be read is answered; no full sync is under way that a baseline would be for. */
const malformed = ({ path }: Operation) => (path === BASELINE_PATH ? [400, 409] : [400]);

class Walk {
  readonly flaws: string[] = [];
  count = 0;

  async try(what: string, sent: Sent, statuses: readonly number[]): Promise<void> {
    this.count += 1;
    const found = flaw(await send(sent), statuses);
    if (found) this.flaws.push(`${sent.method} ${sent.path.slice(0, 100)}, ${what}: ${found}`);
  }

  end(atLeast: number): void {
    expect(this.flaws).toEqual([]);
    expect(this.count, "requests").toBeGreaterThan(atLeast);
  }
}

const withBody = () =>
  operations.flatMap((operation) => (operation.body ? [{ ...operation, body: operation.body }] : []));
const guarded = () => operations.filter(({ method, path }) => !PUBLIC.includes(`${method} ${path}`));

describe("a body", () => {
  test("that is not JSON, not an object or not text is refused everywhere", async () => {
    const walk = new Walk();
    const deep = (depth: number) => `{"a":${"[".repeat(depth)}"\\u0000"${"]".repeat(depth)}}`;
    const bodies: [string, string | Buffer][] = [
      ...["", " ", "{", "[1,", "nul", "NaN", "{'a':1}", '{"a":1}{"b":2}', '{"a":1,}', '"\\x"', "<xml/>"].map(
        (body): [string, string] => [body, body],
      ),
      ...["null", "1", "true", '"x"', "[]", "[{}]"].map((body): [string, string] => [body, body]),
      ["bytes that are not UTF-8", Buffer.from('{"filename":"\xff\xfe"}', "latin1")],
      ["an overlong encoding", Buffer.from([0x7b, 0xc0, 0xaf, 0x7d])],
      ["an encoded surrogate", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
      ["an escaped NUL", '{"filename":"a\\u0000b"}'],
      ["an unpaired surrogate", '{"filename":"a\\ud800b"}'],
      ["an unpaired surrogate in a field name", '{"a\\udc00":1}'],
      ["a NUL byte", '{"filename":"a\0b"}'],
      ["a prototype", '{"__proto__":{"filename":"x","shard":0,"name":"x"}}'],
      ["UTF-16", Buffer.from('{"filename":"x"}', "utf16le")],
      ...[100, 1_000, 4_000, 6_000, 8_000, 12_000, 30_000].map((depth): [string, string] => [
        `nested ${depth} deep`,
        deep(depth),
      ]),
    ];
    for (const operation of withBody()) {
      const { method, bodyOptional } = operation;
      for (const [what, body] of bodies) {
        if (bodyOptional && (body === "" || body === "null")) continue;
        if (takesEvents(operation) && body.toString().startsWith("[")) continue;
        await walk.try(what, { method, path: pathOf(operation), body }, malformed(operation));
      }
    }
    walk.end(200);
  });

  // Several thousand requests: 20 s alone, and more than a minute on a machine that is busy otherwise.
  test("with a wrong, missing or unknown field is refused everywhere", { timeout: 240_000 }, async () => {
    const walk = new Walk();
    for (const operation of withBody().filter((one) => !takesEvents(one))) {
      const bodies = wrongValues(operation.body).map(([why, value]) => ({ why, body: JSON.stringify(value) }));
      for (const path of pathsOf(operation)) {
        for (const { why, body } of bodies) await walk.try(why, { method: operation.method, path, body }, [400]);
      }
    }
    walk.end(200);
  });

  test("that is not quite an event is refused with the place, or belongs to no tenant", async () => {
    const walk = new Walk();
    const [single] = withBody().filter(({ path }) => path === "/api/openlineage");
    const bodies = single ? wrongValues(single.body) : [];
    for (const path of EVENT_PATHS) {
      for (const [why, value] of bodies) {
        if (path.endsWith("batch")) continue;
        await walk.try(why, { method: "POST", path, body: JSON.stringify(value) }, [400, 403]);
      }
    }
    walk.end(200);
    const all = bodies.map(([, value]) => value ?? null).slice(0, 1_000);
    const { status, text } = await send({ method: "POST", path: "/api/v1/lineage/batch", body: JSON.stringify(all) });
    const { failed, non_retriable } = (JSON.parse(text) as { summary: Record<string, number> }).summary;
    expect({ status, failed, non_retriable }).toEqual({ status: 200, failed: all.length, non_retriable: all.length });
  });

  test("of another type, or none, is refused everywhere", async () => {
    const walk = new Walk();
    for (const operation of withBody()) {
      const { method } = operation;
      const path = pathOf(operation);
      const body = JSON.stringify(example(operation.body));
      for (const type of [
        "text/plain",
        "application/xml",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "nonsense",
      ]) {
        await walk.try(type, { method, path, body, headers: { "content-type": type } }, [415]);
      }
      if (!operation.bodyOptional) await walk.try("no body", { method, path }, malformed(operation));
      await walk.try(
        "said to be compressed",
        { method, path, body: "\x1f\x8b\x08", headers: { "content-encoding": "gzip" } },
        [400, 415],
      );
    }
    walk.end(40);
  });

  test("that is larger than the limit is refused everywhere", async () => {
    const walk = new Walk();
    for (const operation of withBody()) {
      const { method } = operation;
      const path = pathOf(operation);
      const { dagJson, sql } = operation.body.properties ?? {};
      const ofModule = dagJson ? DAG_BODY_LIMIT : sql ? MODEL_BODY_LIMIT : BODY_LIMIT;
      const ofSource = operation.path.includes("/harvest/registry/") ? SOURCE_BODY_LIMIT : ofModule;
      const limit = takesEvents(operation) ? EVENT_BODY_LIMIT : ofSource;
      const body = JSON.stringify({ filename: "x".repeat(limit) });
      await walk.try("with its length", { method, path, body }, [413]);
      await walk.try("in chunks", { method, path, body, headers: { "transfer-encoding": "chunked" } }, [413]);
    }
    walk.end(10);
  });
});

describe("a parameter", () => {
  test("that is absurd is refused everywhere", async () => {
    const walk = new Walk();
    const numbers = [
      "",
      "-1",
      "1.5",
      "NaN",
      "Infinity",
      "1e400",
      "9".repeat(30),
      "one",
      "%00",
      "null",
      "1;drop table x",
    ];
    const unstorable = ["%00", "x".repeat(3_000)];
    const undecodable = ["%FF", "%ED%A0%80", "%"]; // In the query string these arrive as odd but harmless characters.
    const texts = {
      path: [...unstorable, ...undecodable],
      query: unstorable,
      header: ["", "x".repeat(3_000), "a b", "\xe9"],
    };
    for (const operation of operations) {
      const { method, body, parameters } = operation;
      const sent = { method, ...(body ? { body: JSON.stringify(example(body)) } : {}) };
      for (const { name, in: place, schema } of parameters) {
        for (const value of isNumber(schema) ? numbers : texts[place]) {
          const address = withParameter(operation, place, name, value);
          await walk.try(`${name}=${value.slice(0, 20)}`, { ...sent, ...address }, [400, 404, 414]);
        }
        if (place === "query")
          await walk.try(`${name} twice`, { ...sent, path: `${pathOf(operation)}?${name}=1&${name}=2` }, [400]);
      }
    }
    walk.end(40);
  });

  test("that is unknown is refused wherever there are parameters in the query", async () => {
    const walk = new Walk();
    for (const operation of operations.filter(({ parameters }) =>
      parameters.some((parameter) => parameter.in === "query"),
    )) {
      await walk.try("unknown", { method: operation.method, path: `${pathOf(operation)}?no_such_parameter=1` }, [400]);
    }
    walk.end(1);
  });

  test("cannot make a route of what is none", async () => {
    const walk = new Walk();
    for (const path of [
      "/api",
      "/api/v1/pipeline",
      "/api/v1/pipeline/files/",
      "/api/v1/pipeline//files",
      "/api/v1/pipeline/stages/x",
      "/%2e%2e/etc/passwd",
      "/api/v1/pipeline/files/a/b",
      "/?x",
      "//x",
    ]) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE"]) await walk.try("", { method, path }, [404, 400, 405]);
    }
    walk.end(30);
  });
});

describe("a key", () => {
  test("is needed everywhere but for health, metrics, the schema of definitions, and signing in and out", async () => {
    const open: string[] = [];
    for (const operation of operations) {
      const { method, body } = operation;
      const answer = await fetch(millrace.url + pathOf(operation), {
        method,
        ...(body ? { body: JSON.stringify(example(body)) } : {}),
      });
      if (answer.status !== 401) open.push(`${method} ${operation.path}`);
    }
    expect(open.sort()).toEqual(PUBLIC);
  });

  test("that is wrong, malformed or lacks the scope is refused everywhere", async () => {
    const walk = new Walk();
    const wrong = [
      "",
      "Bearer",
      "Bearer ",
      ADMIN_KEY,
      `Basic ${ADMIN_KEY}`,
      `Bearer ${ADMIN_KEY}x`,
      `Bearer ${ADMIN_KEY} x`,
      `Bearer ${"k".repeat(5_000)}`,
      "Bearer \xe9\xff",
      "Bearer ' or true --",
    ];
    for (const operation of guarded()) {
      const { method, body } = operation;
      const sent = { method, path: pathOf(operation), ...(body ? { body: JSON.stringify(example(body)) } : {}) };
      for (const authorization of wrong)
        await walk.try(`as "${authorization}"`, { ...sent, headers: { authorization } }, [401]);
      if (ANY_SCOPE.includes(`${method} ${operation.path}`)) continue;
      const stranger = strangers.get(operation.tags?.[0] ?? "") ?? "";
      await walk.try("without the scope", { ...sent, headers: { authorization: `Bearer ${stranger}` } }, [403]);
    }
    walk.end(100);
  });
});

describe("SQL", () => {
  test("in any text is text", async () => {
    const nasty = [
      "'; drop table tracking.pipeline_tracking; --",
      "' or '1'='1",
      '"; select pg_sleep(60); --',
      "$1",
      "\\'",
      "%s",
      "x' union select hash from kernel.api_key --",
    ];
    const kept = await stored(database);
    await table.put(reached("mysql-sender", "done"), { filename: "kept" });
    const flaws: string[] = [];
    let count = 0;
    for (const operation of operations) {
      const { method, body } = operation;
      for (const sql of nasty) {
        const bodies = body ? withText(body, sql) : [undefined];
        const parameters = operation.parameters.filter(({ schema }) => !isNumber(schema));
        const inParameters = parameters.map(({ name, in: place }) =>
          withParameter(operation, place, name, place === "header" ? sql : encodeURIComponent(sql)),
        );
        for (const address of [{ path: pathOf(operation) }, ...inParameters]) {
          for (const value of bodies) {
            count += 1;
            const sent = value === undefined ? {} : { body: JSON.stringify(value) };
            const { status, text } = await send({ method, ...address, ...sent });
            if (status >= 500) flaws.push(`${method} ${address.path}: ${status} ${text.slice(0, 200)}`);
          }
        }
      }
    }
    expect(flaws).toEqual([]);
    expect(count).toBeGreaterThan(100);
    expect(await table.row("kept")).toMatchObject({ mysql_sender_status: "done" });
    expect(Object.keys(kept as object)).toEqual(Object.keys((await stored(database)) as object));
    before = await stored(database); // Names like these are good names: some were registered, some keys made.
  });
});

function withParameter(operation: Operation, place: string, name: string, value: string) {
  if (place === "path") return { path: pathOf(operation, { [name]: value }) };
  const path = pathOf(operation);
  return place === "header" ? { path, headers: { [name]: value } } : { path: `${path}?${name}=${value}` };
}

function isNumber({ type }: Schema): boolean {
  return type === "integer" || type === "number";
}

/** The value once for each of its texts, with the given text there. The file named is one that does not exist. */
function withText(schema: Schema, given: string): unknown[] {
  if (schema.anyOf) return schema.anyOf.flatMap((alternative) => withText(alternative, given));
  if (schema.items) return withText(schema.items, given).map((item) => [item]);
  if (schema.type === "string") return schema.enum ? [] : [given];
  const base = required(schema);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    withText(field, given).map((value) => ({ ...base, [name]: value })),
  );
}
