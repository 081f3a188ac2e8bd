import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { type Sending, startHttp, type TestHttp } from "../../../test/http.ts";
import { noHints } from "../../../test/no-hints.ts";
import type { Http } from "../../kernel/http/server.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { lineageError } from "../catalogue.ts";
import { type RecordingIngest, recordingIngest } from "../ingest/recording-ingest.fixture.ts";
import { moveTenant } from "../store/tenants.ts";
import { tenantRoutes } from "./routes.ts";
import { createTenants } from "./tenants.ts";

const database = useDatabase();
let http: TestHttp;
let ingest: RecordingIngest;

beforeAll(async () => {
  const { db } = database;
  const wake = createWake();
  const settings = { createTenants: false, clockToleranceSeconds: 300 };
  const tenants = createTenants({ db, wake, hints: noHints, clock: systemClock, settings });
  ingest = recordingIngest(async (id) => {
    await moveTenant(db, id, "READY");
    return { applied: 3, skipped: 2, dead: 1 };
  });
  http = await startHttp({
    db,
    routes: (server) =>
      void server.register(async (scope) => tenantRoutes(scope as Http, { db, tenants, ingest }), {
        prefix: "/api/v1/lineage",
      }),
  });
});
afterAll(() => http.stop());
beforeEach(async () => {
  await database.query("delete from lineage.tenant");
  await database.query("truncate kernel.audit_log");
  await database.query("delete from lineage.lineage_events");
  ingest.replayed.length = 0;
  ingest.becomes(() => ({}));
});

const call = (path: string, sending: Sending = {}) => http.send(`/api/v1/lineage/tenants${path}`, sending);
const create = (id: number, more: Json = {}) =>
  call("", { body: { id, code: `c${id}`, name: `Tenant ${id}`, ...more } });
const post = (path: string, key?: string) =>
  call(path, { method: "POST", ...(key ? { headers: { authorization: `Bearer ${key}` } } : {}) });
const audited = () =>
  database.query<{ action: string; target: string }>("select action, target from kernel.audit_log order by id");

async function keyFor(tenantId: number | undefined, ...scopes: ("lineage:read" | "lineage:write" | "admin")[]) {
  const bound = tenantId === undefined ? {} : { tenantId };
  return (await http.keys.create(database.db, { name: "a key", scopes, ...bound }, "test")).key;
}

describe("tenants", () => {
  test("are created, shown, listed and changed", async () => {
    const created = await create(7, { rateLimitPerMinute: 600, bodyLimitBytes: 4_096 });
    expect(created).toMatchObject({
      status: 201,
      body: {
        id: 7,
        code: "c7",
        name: "Tenant 7",
        state: "NEW",
        cutoverTime: null,
        rateLimitPerMinute: 600,
        bodyLimitBytes: 4_096,
      },
    });
    expect((await create(8, { state: "READY" })).body).toMatchObject({ state: "READY", rateLimitPerMinute: null });
    expect((await call("/7")).body).toEqual(created.body);
    expect((await call("")).body).toMatchObject({ items: [{ id: 7 }, { id: 8 }], page: 1, size: 20, total: 2 });
    expect((await call("?state=READY&q=TENANT")).body).toMatchObject({ items: [{ id: 8 }], total: 1 });
    const changed = await call("/7", { method: "PATCH", body: { name: "Seven", rateLimitPerMinute: null } });
    expect(changed).toMatchObject({
      status: 200,
      body: { code: "c7", name: "Seven", rateLimitPerMinute: null, bodyLimitBytes: 4_096 },
    });
    expect(await audited()).toEqual([
      { action: "tenant.create", target: "7" },
      { action: "tenant.create", target: "8" },
      { action: "tenant.update", target: "7" },
    ]);
  });

  test.each<[string, Json]>([
    ["an id that is text", { id: "7" }],
    ["a negative id", { id: -1 }],
    ["an id beyond what numbers hold", { id: 2 ** 53 }],
    ["no code", { code: undefined }],
    ["an empty code", { code: "" }],
    ["a code of 65 characters", { code: "x".repeat(65) }],
    ["a name with a line break", { name: "a\nb" }],
    ["a state that only a sync has", { state: "SYNCING" }],
    ["a limit of nothing", { rateLimitPerMinute: 0 }],
    ["bodies beyond 64 MiB", { bodyLimitBytes: 64 * 1_048_576 + 1 }],
    ["an unknown field", { cutoverTime: "2026-01-01T00:00:00Z" }],
  ])("with %s are refused", async (_, wrong) => {
    expect(await create(7, wrong)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
    expect((await call("")).body["total"]).toBe(0);
  });

  test("with an id or a code that is taken are refused", async () => {
    await create(7);
    expect(await create(7, { code: "other" })).toMatchObject({ status: 409, body: { code: "TENANT_EXISTS" } });
    expect(await create(8, { code: "c7" })).toMatchObject({ status: 409, body: { code: "TENANT_EXISTS" } });
    await create(8);
    expect(await call("/8", { method: "PATCH", body: { code: "c7" } })).toMatchObject({
      status: 409,
      body: { error: "There is already a tenant with the code `c7`." },
    });
  });

  test.each(["/9", "/x", "/7x", "/-7", "/99999999999999999999"])(
    "that do not exist, like %s, are not found",
    async (path) => {
      await create(7);
      expect(await call(path)).toMatchObject({ status: 404, body: { code: "TENANT_NOT_FOUND" } });
      expect((await call(path, { method: "PATCH", body: {} })).status).toBe(404);
      for (const action of [":sync-start", ":ready", "/dead-letters:replay"]) {
        expect(await post(path + action)).toMatchObject({ status: 404, body: { code: "TENANT_NOT_FOUND" } });
      }
      expect(await audited()).toHaveLength(1);
    },
  );
});

describe("a key", () => {
  test("that is bound to a tenant sees and controls its own, and no other", async () => {
    await create(7);
    await create(8);
    const key = await keyFor(7, "lineage:read", "lineage:write");
    const headers = { authorization: `Bearer ${key}` };
    expect((await call("", { headers })).body).toMatchObject({ items: [{ id: 7 }], total: 1 });
    expect((await call("/7", { headers })).status).toBe(200);
    expect((await post("/7:sync-start", key)).status).toBe(200);
    expect((await post("/7:ready", key)).status).toBe(200);
    expect((await post("/7/dead-letters:replay", key)).status).toBe(200);
    expect((await call("/8", { headers })).status).toBe(404);
    for (const action of [":sync-start", ":ready", "/dead-letters:replay", "/dead-letters/1:replay"]) {
      expect((await post(`/8${action}`, key)).status).toBe(404);
    }
    expect(ingest.replayed).toEqual([]);
  });

  test("that is no admin, or is bound, neither makes nor changes tenants", async () => {
    await create(7);
    for (const key of [await keyFor(undefined, "lineage:write"), await keyFor(7, "admin", "lineage:write")]) {
      const headers = { authorization: `Bearer ${key}` };
      expect((await call("", { headers, body: { id: 9, code: "c9", name: "n" } })).status).toBe(403);
      expect((await call("/7", { headers, method: "PATCH", body: { name: "n" } })).status).toBe(403);
    }
  });

  test("that only reads controls nothing", async () => {
    await create(7);
    const key = await keyFor(7, "lineage:read");
    for (const action of [":sync-start", ":ready", "/dead-letters:replay"]) {
      expect((await post(`/7${action}`, key)).status).toBe(403);
    }
  });
});

describe("a sync", () => {
  test("starts at the cutover and ends ready, as often as it is wanted", async () => {
    await create(7);
    const started = await call("/7:sync-start", { body: { cutoverTime: "2026-01-01T02:00:00+02:00" } });
    expect(started).toMatchObject({ status: 200, body: { state: "SYNCING", cutoverTime: "2026-01-01T00:00:00.000Z" } });
    expect(await post("/7:sync-start")).toMatchObject({ status: 409, body: { code: "TENANT_WRONG_STATE" } });
    expect(await post("/7:ready")).toMatchObject({
      status: 200,
      body: { state: "READY", applied: 3, skipped: 2, dead: 1 },
    });
    // Whoever missed the answer may ask again.
    expect(await post("/7:ready")).toMatchObject({
      status: 200,
      body: { state: "READY", applied: 0, skipped: 0, dead: 0 },
    });
    expect(await post("/7:sync-start")).toMatchObject({ status: 200, body: { state: "SYNCING" } });
    expect((await audited()).map(({ action }) => action)).toEqual([
      "tenant.create",
      "tenant.sync-start",
      "tenant.ready",
      "tenant.sync-start",
    ]);
  });

  test("that has more waiting than a request has time for is told that there is more to do", async () => {
    await create(7);
    await post("/7:sync-start");
    const { makeReady } = ingest;
    ingest.makeReady = async () => ({ applied: 200, skipped: 0, dead: 0 });
    expect(await post("/7:ready")).toMatchObject({ status: 202, body: { state: "SYNCING", applied: 200 } });
    ingest.makeReady = makeReady;
    expect(await post("/7:ready")).toMatchObject({ status: 200, body: { state: "READY", applied: 3 } });
  });

  test.each([[{ cutoverTime: "yesterday" }], [{ cutoverTime: 5 }], [{ from: "2026-01-01T00:00:00Z" }], [[]]])(
    "is not started with %j",
    async (body) => {
      await create(7);
      expect((await call("/7:sync-start", { body })).status).toBe(400);
      expect((await call("/7")).body["state"]).toBe("NEW");
    },
  );

  test("is not started with a cutover in the future", async () => {
    await create(7);
    const cutoverTime = new Date(Date.now() + 3_600_000).toISOString();
    expect((await call("/7:sync-start", { body: { cutoverTime } })).body["error"]).toBe(
      "The cutover is in the future: every event until then would be skipped.",
    );
  });
});

describe("dead letters", () => {
  const bury = (count: number, tenantId = 7) =>
    database.query(
      `insert into lineage.lineage_events (tenant_id, tenant_code, tenant_name, event_time, event, source, apply_state)
       select $1, 'c', 'n', now(), '{}', 'GRAVITINO', state from generate_series(1, $2), unnest('{DEAD,APPLIED}'::text[]) state`,
      [tenantId, count],
    );
  const dead = async () =>
    (
      await database.query<{ id: string }>(
        "select id from lineage.lineage_events where tenant_id = 7 and apply_state = 'DEAD' order by id",
      )
    ).map(({ id }) => id);

  test("are replayed one at a time", async () => {
    await create(7);
    expect(await post("/7/dead-letters/12:replay")).toMatchObject({
      status: 200,
      body: { id: "12", state: "APPLIED" },
    });
    expect(ingest.replayed).toEqual(["7/12"]);
    expect((await audited()).at(-1)).toEqual({ action: "lineage.replay", target: "7/12" });
    expect((await post("/7/dead-letters/x:replay")).status).toBe(400);
  });

  test("are replayed together, as many as are wanted, and the rest is counted", async () => {
    await create(7);
    await bury(5);
    await bury(2, 8);
    const [first, second, third, ...others] = await dead();
    ingest.becomes((id) => ({ state: id === first ? "DEAD" : "APPLIED" }));
    const answer = await call("/7/dead-letters:replay", { body: { limit: 3 } });
    expect(answer.body).toEqual({ applied: 2, dead: 1, remaining: 5, next: third });
    expect(ingest.replayed).toEqual([first, second, third].map((id) => `7/${id}`));
    const rest = await call("/7/dead-letters:replay", { body: { after: third } });
    expect(rest.body).toMatchObject({ applied: 2, dead: 0, next: null });
    expect(ingest.replayed.slice(3)).toEqual(others.map((id) => `7/${id}`));
  });

  test("that someone else has replayed meanwhile are passed over", async () => {
    await create(7);
    await bury(3);
    const [first] = await dead();
    ingest.becomes((eventId) => {
      if (eventId === first) throw lineageError("DEAD_LETTER_NOT_FOUND", { eventId });
      return {};
    });
    expect((await post("/7/dead-letters:replay")).body).toMatchObject({ applied: 2, dead: 0 });
  });

  test.each([[{ limit: 0 }], [{ limit: 1_001 }], [{ after: "x" }], [{ all: true }]])(
    "are not replayed with %j",
    async (body) => {
      await create(7);
      expect((await call("/7/dead-letters:replay", { body })).status).toBe(400);
    },
  );
});
