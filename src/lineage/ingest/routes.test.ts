/** The HTTP side of ingest: what a client may send, what it is told, and that the exact text goes on. */

import { once } from "node:events";
import { type IncomingMessage, request as sendRaw } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { noHints } from "../../../test/no-hints.ts";
import { kernelError } from "../../kernel/errors.ts";
import type { Http } from "../../kernel/http/server.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { CATALOGUE } from "../catalogue.ts";
import { createTenantRate } from "../tenants/rate.ts";
import { createTenants } from "../tenants/tenants.ts";
import { type RecordingIngest, recordingIngest } from "./recording-ingest.fixture.ts";
import { ingestRoutes } from "./routes.ts";

const database = useDatabase();
const LIMIT = 20_000;
const TODAY = Date.parse("2026-06-01T00:00:00Z");
const PATHS = ["/api/openlineage", "/api/v1/lineage"];
let http: TestHttp;
let ingest: RecordingIngest;
let entered: string[];
let now = 0;

const event = (more: object = {}) => ({
  eventTime: "2026-01-01T00:00:00Z",
  run: { runId: "0190a000-0000-7000-8000-000000000000" },
  job: { namespace: "gravitino://tenant/7", name: "gravitino.load_table" },
  ...more,
});
const ofSpark = (more: object = {}) => event({ job: { namespace: "spark", name: "daily" }, ...more });

beforeAll(async () => {
  await database.query(
    `insert into lineage.tenant (id, code, name, state, cutover_time, rate_limit_per_minute, body_limit_bytes) values
       (7, 'seven', 'Seven', 'READY', null, null, null), (8, 'eight', 'Eight', 'SYNCING', now(), null, 2048),
       (9, 'nine', 'Nine', 'READY', null, 3, 40000), (10, 'ten', 'Ten', 'READY', null, null, 1000000)`,
  );
});

beforeEach(async () => {
  ingest = recordingIngest(async () => ({ applied: 0, skipped: 0, dead: 0 }));
  entered = [];
  now += 3_600_000;
});

beforeAll(async () => {
  const { db } = database;
  const wake = createWake();
  const tenants = createTenants({
    db,
    wake,
    hints: noHints,
    clock: systemClock,
    settings: { createTenants: false, clockToleranceSeconds: 300 },
  });
  http = await startHttp({
    db,
    routes: (server, { metrics }) => {
      void server.register(
        async (scope) =>
          ingestRoutes(scope as Http, {
            ingest: {
              ...recordingIngest(async () => ({ applied: 0, skipped: 0, dead: 0 })),
              prepare: (tenantId, read) => ingest.prepare(tenantId, read),
              take: (tenant, prepared) => ingest.take(tenant, prepared),
            },
            tenants,
            rate: createTenantRate({ clock: { now: () => now } }),
            admission: { enter: async ({ caller }) => void entered.push(caller.name) },
            metrics: metrics.define(CATALOGUE.metrics),
            clock: { now: () => TODAY },
            settings: { eventBytesMax: LIMIT, futureToleranceSeconds: 3_600 },
          }),
        { prefix: "/api" },
      );
    },
  });
});
afterAll(() => http.stop());

function keyFor(tenantId?: number, source?: string) {
  const bound = { ...(tenantId === undefined ? {} : { tenantId }), ...(source === undefined ? {} : { source }) };
  return http.keys.create(database.db, { name: "a client", scopes: ["lineage:write"], ...bound }, "test");
}

describe("an event", () => {
  test.each(PATHS)("is taken at %s as the very text that was sent", async (path) => {
    const sent = ` {"run":{"runId":"r-1"},  "job":{"namespace":"gravitino://tenant/7","name":"gravitino.drop_table",
      "facets":{"x":{"b":1,"a":2.50,"a":"\\u0000\\ud800"}}}, "eventTime":"2026-01-01T00:00:00Z", "новое":"é"}\n`;
    const answer = await http.send(`${path}?any=thing&any=else`, { body: sent });
    expect(answer).toMatchObject({ status: 201, body: { id: "1", duplicate: false, state: "APPLIED" } });
    expect(ingest.taken).toMatchObject([
      {
        body: sent,
        source: "GRAVITINO",
        baseline: false,
        tenant: { id: "7", code: "seven" },
        event: { kind: "RUN_EVENT" },
      },
    ]);
    expect(entered).toEqual(["MILLRACE_ADMIN_KEY"]);
  });

  test.each([
    ["BUFFERED", 202],
    ["SKIPPED", 202],
    ["DEAD", 202],
    ["APPLIED", 201],
  ] as const)("that becomes %s is answered with %d", async (state, status) => {
    ingest.becomes(() => ({ state, duplicate: true }));
    expect(await http.send("/api/v1/lineage", { body: event() })).toMatchObject({
      status,
      body: { duplicate: true, state },
    });
  });

  test("from the future is refused with the path, beyond what a clock may be ahead", async () => {
    const at = (eventTime: string) => http.send("/api/v1/lineage", { body: event({ eventTime }) });
    expect((await at("2026-06-01T01:00:00Z")).status).toBe(201);
    expect(await at("2026-06-01T01:00:00.000001Z")).toMatchObject({
      status: 400,
      body: {
        code: "VALIDATION_FAILED",
        error:
          "/eventTime is 2026-06-01T01:00:00.000001Z, and the latest time that is taken now is 2026-06-01T01:00:00.000000Z.",
      },
    });
    expect((await at("2026-06-01T03:00:00.5+02:00")).status).toBe(400);
    expect((await at("2200-01-01T00:00:00Z")).status).toBe(400);
    const baseline = event({
      eventTime: "2200-01-01T00:00:00Z",
      job: { namespace: "gravitino://tenant/8", name: "x" },
    });
    expect((await http.send("/api/v1/lineage/tenants/8/baseline", { body: baseline })).status).toBe(400);
    expect(ingest.taken).toHaveLength(1);
  });

  test("is not refused for other times in it, however far ahead they are", async () => {
    const nominalTime = { nominalStartTime: "2200-01-01T00:00:00Z", nominalEndTime: "2200-01-02T00:00:00Z" };
    const run = { runId: "0190a000-0000-7000-8000-000000000000", facets: { nominalTime } };
    expect((await http.send("/api/v1/lineage", { body: event({ run }) })).status).toBe(201);
  });

  test("of a batch from the future does not hold up the others", async () => {
    const body = [event(), event({ eventTime: "2200-01-01T00:00:00Z" }), event({ eventTime: "2026-05-01T00:00:00Z" })];
    expect(await http.send("/api/v1/lineage/batch", { body })).toMatchObject({
      status: 200,
      body: {
        summary: { received: 3, successful: 2, failed: 1, non_retriable: 1 },
        failed_events: [{ index: 1, reason: expect.stringContaining("/eventTime is 2200-"), retriable: false }],
      },
    });
    expect(ingest.taken.map(({ event: { at } }) => at)).toEqual([
      Date.parse("2026-01-01") * 1_000,
      Date.parse("2026-05-01") * 1_000,
    ]);
  });

  test("may be of a dataset or a job alone", async () => {
    const { key } = await keyFor(7, "COMPUTE_ENGINE");
    const headers = { authorization: `Bearer ${key}` };
    const dataset = { eventTime: "2026-01-01T00:00:00", dataset: { namespace: "file", name: "/a" } };
    const job = { eventTime: "2026-01-01T00:00:00.123456789Z", job: { namespace: "spark", name: "daily" } };
    for (const body of [dataset, job])
      expect((await http.send("/api/openlineage", { headers, body })).status).toBe(201);
    expect(ingest.taken.map(({ event: { kind }, source }) => [kind, source])).toEqual([
      ["DATASET_EVENT", "COMPUTE_ENGINE"],
      ["JOB_EVENT", "COMPUTE_ENGINE"],
    ]);
  });

  test.each([
    ["application/json; charset=utf-8", 201],
    ["application/json;charset=UTF-8; x=y", 201],
    ["APPLICATION/JSON", 201],
    ["text/plain", 415],
    ["application/x-www-form-urlencoded", 415],
    ["application/jsonx", 415],
    ["nonsense", 415],
  ])("of the content type %s is answered with %d", async (type, status) => {
    const answer = await http.send("/api/v1/lineage", {
      headers: { "content-type": type },
      body: JSON.stringify(event()),
    });
    expect(answer.status).toBe(status);
    if (status === 415) expect(answer.body["code"]).toBe("UNSUPPORTED_MEDIA_TYPE");
  });

  test("without a content type is refused", async () => {
    const answer = await raw("/api/v1/lineage", {}, [Buffer.from(JSON.stringify(event()))]);
    expect(answer).toMatchObject({ status: 415, body: { code: "UNSUPPORTED_MEDIA_TYPE" } });
  });

  test.each<[string, string | Buffer, string]>([
    ["is not JSON", "{", "MALFORMED_JSON"],
    ["is empty", "", "MALFORMED_JSON"],
    ["is white space", "  \n", "MALFORMED_JSON"],
    ["has something behind it", `${JSON.stringify(event())} x`, "MALFORMED_JSON"],
    ["holds a NUL byte", `${JSON.stringify(event())}\0`, "MALFORMED_JSON"],
    ["is not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), "INVALID_TEXT"],
    ["is UTF-16", Buffer.from(JSON.stringify(event()), "utf16le"), "MALFORMED_JSON"],
    ["is an array", JSON.stringify([event()]), "VALIDATION_FAILED"],
    ["is a string", '"event"', "VALIDATION_FAILED"],
    ["is null", "null", "VALIDATION_FAILED"],
    ["is empty inside", "{}", "VALIDATION_FAILED"],
    ["has no time", JSON.stringify(event({ eventTime: undefined })), "VALIDATION_FAILED"],
    ["has an array for a job", JSON.stringify(event({ job: [] })), "VALIDATION_FAILED"],
    ["has an object for inputs", JSON.stringify(event({ inputs: {} })), "VALIDATION_FAILED"],
    ["is nested without end", "[".repeat(9_000) + "]".repeat(9_000), "BODY_TOO_COMPLEX"],
    [
      "hides its depth in a facet",
      JSON.stringify(event({ x: 0 })).replace('"x":0', `"x":${"[".repeat(9_000)}${"]".repeat(9_000)}`),
      "BODY_TOO_COMPLEX",
    ],
  ])("that %s is refused, and nothing is taken", async (_, body, code) => {
    const answer = await http.send("/api/openlineage", { body });
    expect(answer).toMatchObject({ status: 400, body: { code, error: expect.stringMatching(/\.$/) } });
    expect(ingest.taken).toEqual([]);
  });

  test("that is wrong inside is told the path", async () => {
    const body = event({ outputs: [{ namespace: "file" }] });
    expect((await http.send("/api/openlineage", { body })).body["error"]).toContain("/outputs/0/name");
  });

  test("with a byte order mark is taken without it", async () => {
    const answer = await http.send("/api/openlineage", { body: `\uFEFF${JSON.stringify(event())}` });
    expect(answer.status).toBe(201);
    expect(ingest.taken[0]?.body).toBe(JSON.stringify(event()));
  });
});

describe("a compressed event", () => {
  const gzip = { "content-encoding": "gzip" };

  test.each(["gzip", "GZIP", "x-gzip"])("of the encoding %s is inflated", async (encoding) => {
    const sent = JSON.stringify(event({ padding: "é".repeat(5_000) }));
    const answer = await http.send("/api/v1/lineage", {
      headers: { "content-encoding": encoding },
      body: gzipSync(sent),
    });
    expect(answer.status).toBe(201);
    expect(ingest.taken[0]?.body).toBe(sent);
  });

  test("may say that it is not", async () => {
    const answer = await http.send("/api/v1/lineage", { headers: { "content-encoding": "identity" }, body: event() });
    expect(answer.status).toBe(201);
  });

  test.each(["deflate", "br", "zstd", "gzip, gzip", "nonsense"])("of the encoding %s is refused", async (encoding) => {
    const body = deflateSync(JSON.stringify(event()));
    expect(await http.send("/api/v1/lineage", { headers: { "content-encoding": encoding }, body })).toMatchObject({
      status: 415,
      body: { code: "UNSUPPORTED_ENCODING", error: expect.stringContaining(`\`${encoding}\``) },
    });
  });

  test.each([
    ["is not compressed", Buffer.from(JSON.stringify(event()))],
    ["is cut off", gzipSync(JSON.stringify(event())).subarray(0, -12)],
    ["is a header alone", gzipSync("x").subarray(0, 10)],
    ["is empty", Buffer.alloc(0)],
    ["has a wrong checksum", spoiled(gzipSync(JSON.stringify(event())))],
  ])("that %s is refused", async (_, body) => {
    expect(await http.send("/api/v1/lineage", { headers: gzip, body })).toMatchObject({
      status: 400,
      body: { error: "The body is not the gzip that its Content-Encoding says it is." },
    });
  });

  test.each([
    ["inflates beyond the limit, though it is small itself", gzipSync(Buffer.alloc(16 * 1_048_576))],
    ["is itself beyond the limit", gzipSync(Buffer.alloc(32 * 1_048_576))],
  ])("that %s is refused", async (_, body) => {
    expect(await http.send("/api/v1/lineage", { headers: gzip, body })).toMatchObject({
      status: 413,
      body: { code: "BODY_TOO_LARGE", details: { limit: LIMIT } },
    });
  });
});

function spoiled(body: Buffer): Buffer {
  const copy = Buffer.from(body);
  copy.writeUInt8((copy.at(-8) ?? 0) ^ 1, copy.length - 8);
  return copy;
}

describe("an event that is too large", () => {
  const sized = (bytes: number, of: object) => {
    const empty = JSON.stringify({ ...of, padding: "" }).length;
    return JSON.stringify({ ...of, padding: "x".repeat(bytes - empty) });
  };

  test("is refused at the limit of the server", async () => {
    expect((await http.send("/api/v1/lineage", { body: sized(LIMIT, event()) })).status).toBe(201);
    expect(await http.send("/api/v1/lineage", { body: sized(LIMIT + 1, event()) })).toMatchObject({
      status: 413,
      body: { code: "BODY_TOO_LARGE", details: { limit: LIMIT } },
    });
  });

  test("is refused while it still comes in, if it does not say how long it is", async () => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${ADMIN_KEY}` };
    const answer = await raw("/api/v1/lineage", headers, [Buffer.alloc(LIMIT, " "), Buffer.alloc(1, " ")], {
      open: true,
    });
    expect(answer).toMatchObject({ status: 413, body: { code: "BODY_TOO_LARGE" }, headers: { connection: "close" } });
  });

  test("is refused at the limit of its tenant, which a key or the event names", async () => {
    const { key } = await keyFor(8);
    const headers = { authorization: `Bearer ${key}` };
    expect((await http.send("/api/v1/lineage", { headers, body: sized(2_048, ofSpark()) })).status).toBe(201);
    expect(await http.send("/api/v1/lineage", { headers, body: sized(2_049, ofSpark()) })).toMatchObject({
      status: 413,
      body: { details: { limit: 2_048 } },
    });
    const ofEight = event({ job: { namespace: "gravitino://tenant/8", name: "gravitino.load_table" } });
    expect(await http.send("/api/v1/lineage", { body: sized(2_049, ofEight) })).toMatchObject({
      status: 413,
      body: { details: { limit: 2_048 } },
    });
  });

  test("is taken if a key is bound to a tenant that may send more", async () => {
    const { key } = await keyFor(9);
    const headers = { authorization: `Bearer ${key}` };
    expect((await http.send("/api/v1/lineage", { headers, body: sized(40_000, ofSpark()) })).status).toBe(201);
  });
});

describe("who sends", () => {
  test("needs a key that may write lineage", async () => {
    const { key } = await http.keys.create(database.db, { name: "r", scopes: ["lineage:read"], tenantId: 7 }, "test");
    expect((await http.send("/api/v1/lineage", { headers: { authorization: "Bearer x" }, body: event() })).status).toBe(
      401,
    );
    const refused = await http.send("/api/v1/lineage", { headers: { authorization: `Bearer ${key}` }, body: event() });
    expect(refused).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
    expect(entered).toEqual([]);
  });

  test("by a key that is bound to a tenant sends for that one", async () => {
    const { key } = await keyFor(7);
    const answer = await http.send("/api/v1/lineage", { headers: { authorization: `Bearer ${key}` }, body: ofSpark() });
    expect(answer.status).toBe(201);
    expect(ingest.taken).toMatchObject([{ tenant: { id: "7" }, source: "COMPUTE_ENGINE" }]);
  });

  test.each([
    [
      "unknown",
      event({ job: { namespace: "gravitino://tenant/404", name: "gravitino.x" } }),
      undefined,
      "TENANT_UNKNOWN",
    ],
    ["not named", ofSpark(), undefined, "TENANT_UNRESOLVED"],
    ["another than the key's", event(), 8, "TENANT_CONFLICT"],
  ])("for a tenant that is %s is refused", async (_, body, tenantId, code) => {
    const { key } = await keyFor(tenantId);
    const answer = await http.send("/api/v1/lineage", { headers: { authorization: `Bearer ${key}` }, body });
    expect(answer).toMatchObject({ status: 403, body: { code } });
    expect(ingest.taken).toEqual([]);
    const metrics = await http.metrics.render();
    expect(metrics).toContain(`millrace_lineage_refused_total{tenant="${tenantId ?? ""}",code="${code}"}`);
  });

  test("faster than the tenant may is asked to wait, and told how long", async () => {
    const { key } = await keyFor(9);
    const send = () => http.send("/api/v1/lineage", { headers: { authorization: `Bearer ${key}` }, body: ofSpark() });
    expect([(await send()).status, (await send()).status, (await send()).status]).toEqual([201, 201, 201]);
    const refused = await send();
    expect(refused).toMatchObject({ status: 503, body: { code: "TENANT_RATE_LIMITED" } });
    expect(refused.headers.get("retry-after")).toBe("20");
  });

  test("more often than the key may is asked to wait, not refused for good", async () => {
    const fields = { name: "slow", scopes: ["lineage:write"] as const, tenantId: 7, rateLimitPerMinute: 1 };
    const { key } = await http.keys.create(database.db, { ...fields, scopes: [...fields.scopes] }, "test");
    const headers = { authorization: `Bearer ${key}` };
    for (const path of [...PATHS, "/api/v1/lineage/batch"]) {
      const answer = await http.send(path, { headers, body: path === PATHS[0] ? ofSpark() : [] });
      expect(answer.status, path).toBe(path === PATHS[0] ? 201 : 503);
      if (answer.status === 503) expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    }
  });

  test("is told when ingest has no room", async () => {
    ingest.becomes(() => {
      throw kernelError("OVERLOADED", { waiting: 5, seconds: 1 });
    });
    const refused = await http.send("/api/v1/lineage", { body: event() });
    expect(refused).toMatchObject({ status: 503, body: { code: "OVERLOADED" } });
    expect(refused.headers.get("retry-after")).toBe("1");
  });
});

describe("a batch", () => {
  const batch = (body: unknown, headers: Record<string, string> = {}) =>
    http.send("/api/v1/lineage/batch", { body, headers });

  test("is taken event by event, each as its own text", async () => {
    const texts = [` {"b": 1, "b": 2, ${JSON.stringify(event()).slice(1)}`, JSON.stringify(event({ n: '"],[' }))];
    const answer = await batch(`[${texts.join(" ,\n")} ]`);
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body).toEqual({
      status: "success",
      summary: { received: 2, successful: 2, failed: 0, retriable: 0, non_retriable: 0 },
      failed_events: [],
    });
    expect(ingest.taken.map(({ body }) => body)).toEqual(texts.map((text) => text.trim()));
  });

  test("tells of each event that was refused, and whether to send it again", async () => {
    ingest.becomes((body) => {
      if (body.includes("overload")) throw kernelError("OVERLOADED", { waiting: 1, seconds: 1 });
      if (body.includes("broken")) throw new Error("nobody expected this");
      return {};
    });
    const events = [
      event(),
      { nonsense: 1 },
      event({ x: "overload" }),
      null,
      ofSpark(),
      event({ x: "broken" }),
      event(),
    ];
    const answer = await batch(events);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      status: "partial_success",
      summary: { received: 7, successful: 2, failed: 5, retriable: 2, non_retriable: 3 },
      failed_events: [
        { index: 1, retriable: false },
        { index: 2, retriable: true, reason: "Too much work is waiting (1 items). Try again in 1 s." },
        { index: 3, retriable: false, reason: "The event is not an object." },
        { index: 4, retriable: false, reason: expect.stringContaining("The tenant of the event cannot be determined") },
        { index: 5, retriable: true, reason: expect.stringContaining("The server failed to handle the request") },
      ],
    });
    expect(http.lines).toContainEqual(expect.objectContaining({ msg: "an event of a batch failed" }));
  });

  test.each(["57014", "55P03", "57P01"])("that the database is too slow for (%s) is to be sent again", async (code) => {
    ingest.becomes(() => {
      throw Object.assign(new Error("canceling statement"), { code });
    });
    expect((await batch([event()])).body).toMatchObject({
      failed_events: [{ retriable: true, reason: "The database does not answer. Try again in 2 s." }],
    });
    expect(await http.send("/api/v1/lineage", { body: event() })).toMatchObject({ status: 503 });
  });

  test("of which nothing can be taken is still answered in the words of the specification", async () => {
    expect((await batch([1, 2])).body).toMatchObject({
      status: "partial_success",
      summary: { successful: 0, failed: 2 },
    });
  });

  test("may be empty", async () => {
    expect((await batch([])).body).toMatchObject({ status: "success", summary: { received: 0 } });
  });

  test("may be compressed", async () => {
    const answer = await batch(gzipSync(JSON.stringify([event(), event()])), { "content-encoding": "gzip" });
    expect(answer.body).toMatchObject({ summary: { successful: 2 } });
  });

  test.each([
    ["one event", event(), "The body must be an array of events."],
    ["too many", Array(1_001).fill(0), "The batch has more than 1000 events, which are the most it may have."],
  ])("of %s is refused whole", async (_, body, error) => {
    expect(await batch(body)).toMatchObject({ status: 400, body: { error } });
  });

  test.each([
    ["in its middle", (one: string) => `[${one},{"run":},${one}]`],
    ["at its end", (one: string) => `[${one},${one}`],
    ["between its events", (one: string) => `[${one} ${one}]`],
    ["after a comma", (one: string) => `[${one},]`],
    ["behind it", (one: string) => `[${one}] ${one}`],
  ])("that is no JSON %s is refused whole, with the place, and nothing of it is taken", async (_, broken) => {
    const text = broken(JSON.stringify(event()));
    const answer = await batch(text);
    expect(answer).toMatchObject({ status: 400, body: { code: "MALFORMED_JSON" } });
    // As the parser tells it of the whole body.
    expect(() => JSON.parse(text)).toThrow(String(answer.body["error"]).replace(/^.*?: |\.$/g, ""));
    expect(ingest.taken).toEqual([]);
  });

  test("is read in steps, between which others have their turn", async () => {
    const { key } = await keyFor(10, "COMPUTE_ENGINE");
    let [turns, isRead] = [0, false];
    const count = () => {
      if (isRead) return;
      turns += 1;
      setImmediate(count);
    };
    const { prepare, take } = ingest;
    ingest.prepare = (tenantId, read) => {
      if (turns === 0) count();
      return prepare(tenantId, read);
    };
    ingest.take = (...input) => {
      isRead = true;
      return take(...input);
    };
    const answer = await batch(Array(10).fill(ofSpark({ padding: "x".repeat(70_000) })), {
      authorization: `Bearer ${key}`,
    });
    expect(answer.body).toMatchObject({ summary: { successful: 10 } });
    expect(turns).toBeGreaterThanOrEqual(10);
  });

  test("takes its events together", async () => {
    let together = 0;
    let most = 0;
    const { take } = ingest;
    ingest.take = async (...input) => {
      together += 1;
      most = Math.max(most, together);
      await new Promise((resolve) => setImmediate(resolve));
      together -= 1;
      return take(...input);
    };
    await batch(Array(50).fill(event()));
    expect(most).toBe(50);
    const short = {
      eventTime: "2026-01-01T00:00:00Z",
      job: { namespace: "gravitino://tenant/7", name: "gravitino.x" },
    };
    expect((await batch(Array.from({ length: 150 }, () => short))).body).toMatchObject({
      summary: { successful: 150 },
    });
    expect(most, "though not all of a large one at once").toBe(100);
  });
});

describe("a baseline", () => {
  const baseline = (tenantId: number | string, body: unknown, key?: string) =>
    http.send(`/api/v1/lineage/tenants/${tenantId}/baseline`, {
      body,
      ...(key ? { headers: { authorization: `Bearer ${key}` } } : {}),
    });
  const ofEight = event({ job: { namespace: "gravitino://tenant/8", name: "gravitino.load_table" } });

  test("is taken while the tenant is syncing: one event, or an array", async () => {
    expect(await baseline(8, ofEight)).toMatchObject({ status: 201, body: { id: "1" } });
    expect(await baseline(8, [ofEight, ofSpark()])).toMatchObject({ status: 200, body: { status: "success" } });
    expect(ingest.taken.map((taken) => [taken.baseline, taken.tenant.id, taken.source])).toEqual([
      [true, "8", "GRAVITINO"],
      [true, "8", "GRAVITINO"],
      [true, "8", "COMPUTE_ENGINE"],
    ]);
  });

  test("is refused at any other time", async () => {
    expect(await baseline(7, event())).toMatchObject({
      status: 409,
      body: {
        code: "TENANT_WRONG_STATE",
        error: "Cannot take a baseline of tenant 7: it is READY. Begin with POST /api/v1/lineage/tenants/7:sync-start.",
      },
    });
  });

  test("must be of that tenant", async () => {
    expect(await baseline(8, event())).toMatchObject({
      status: 403,
      body: { code: "TENANT_CONFLICT", error: expect.stringContaining("8 by the address") },
    });
    expect((await baseline(8, [event()])).body).toMatchObject({ summary: { failed: 1, non_retriable: 1 } });
    expect(ingest.taken).toEqual([]);
  });

  test.each([404, "x", "-1", "8x"])("of a tenant %s that is none is refused", async (id) => {
    expect(await baseline(id, ofEight)).toMatchObject({ status: 404, body: { code: "TENANT_NOT_FOUND" } });
  });

  test("may be sent by a key that is bound to the tenant, and by no other's", async () => {
    expect((await baseline(8, ofEight, (await keyFor(8)).key)).status).toBe(201);
    expect((await baseline(8, ofEight, (await keyFor(7)).key)).status).toBe(404);
  });
});

/** Without what a well-meaning client adds. `open` never ends the body. */
async function raw(path: string, headers: Record<string, string>, chunks: Buffer[], { open = false } = {}) {
  const outgoing = sendRaw({
    port: http.port,
    host: "127.0.0.1",
    path,
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers },
  });
  for (const chunk of chunks) outgoing.write(chunk);
  if (!open) outgoing.end();
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const body = JSON.parse(await textOf(incoming)) as unknown;
  outgoing.destroy();
  return { status: incoming.statusCode, body, headers: incoming.headers };
}
