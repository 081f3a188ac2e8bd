/** What keeps one sender from taking everything: limits on what waits, how often a tenant sends, and how large it is. */
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { gravitinoEvent, type Json, runEvent, sparkEvent } from "../../src/lineage/events.fixture.ts";
import { useDatabase } from "../database.ts";
import { makeTenant, postEvent, type TestTenant } from "../lineage-process.ts";
import { useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const EVENT_BYTES_MAX = 100_000;
/** Of one tenant: half of the room. */
const WAITING_MAX = 5;

const database = useDatabase();
const millrace = useMillrace(database, { lineage: { eventBytesMax: EVENT_BYTES_MAX, waitingMax: 2 * WAITING_MAX } });
let tenants = 0;

async function newTenant(fields: Json = {}): Promise<TestTenant> {
  tenants += 1;
  return makeTenant(millrace.api, tenants, fields);
}

async function postGzip(key: string, body: Buffer, encoding = "gzip", path = "/api/v1/lineage") {
  const response = await fetch(millrace.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "content-encoding": encoding },
    body,
  });
  return { status: response.status, body: (await response.json()) as Json };
}

/** An event that measures at least so much. */
const largeEvent = (bytes: number) => runEvent({ jobFacets: { padding: { text: "x".repeat(bytes) } } });
const countEvents = async (tenantId: number) =>
  (await database.query("select 1 from lineage.lineage_events where tenant_id = $1", [tenantId])).length;

describe("compressed events", () => {
  test("are taken, and kept as they were before", async () => {
    const { id, keys } = await newTenant();
    const body = JSON.stringify(sparkEvent());
    expect(await postGzip(keys.COMPUTE_ENGINE, gzipSync(body))).toMatchObject({ status: 201 });
    const stored = await database.query("select event::text as body from lineage.lineage_events where tenant_id = $1", [
      id,
    ]);
    expect(stored).toEqual([{ body }]);
    expect((await postEvent(millrace.url, keys.COMPUTE_ENGINE, body)).body).toMatchObject({ duplicate: true });
  });

  test("that inflate beyond the limit are refused before they are inflated", async () => {
    const { id, keys } = await newTenant();
    const bomb = gzipSync(Buffer.alloc(50_000_000, " "), { level: 9 });
    expect(bomb.length, "small enough to be let in").toBeLessThan(EVENT_BYTES_MAX);
    const before = process.memoryUsage().rss;
    const paths = [
      "/api/openlineage",
      "/api/v1/lineage",
      "/api/v1/lineage/batch",
      `/api/v1/lineage/tenants/${id}/baseline`,
    ];
    const posts = paths.flatMap((path) =>
      Array.from({ length: 5 }, () => postGzip(keys.COMPUTE_ENGINE, bomb, "gzip", path)),
    );
    for (const answer of await Promise.all(posts)) {
      expect(answer).toMatchObject({
        status: 413,
        body: { code: "BODY_TOO_LARGE", details: { limit: EVENT_BYTES_MAX } },
      });
    }
    expect(process.memoryUsage().rss - before, "bytes that 20 of them took").toBeLessThan(500_000_000);
    expect(await countEvents(id)).toBe(0);
  });

  test("that are cut off, no gzip at all, or of another kind are refused", async () => {
    const { keys } = await newTenant();
    const whole = gzipSync(JSON.stringify(sparkEvent()));
    expect(await postGzip(keys.COMPUTE_ENGINE, whole.subarray(0, 50))).toMatchObject({ status: 400 });
    expect(await postGzip(keys.COMPUTE_ENGINE, Buffer.from("{}"))).toMatchObject({ status: 400 });
    expect(await postGzip(keys.COMPUTE_ENGINE, whole, "br")).toMatchObject({ status: 415 });
    expect(await postGzip(keys.COMPUTE_ENGINE, gzipSync(whole), "gzip, gzip")).toMatchObject({ status: 415 });
  });
});

describe("a tenant's own limit", () => {
  test("of size holds for its events alone, and can be taken away", async () => {
    const small = await newTenant({ bodyLimitBytes: 2_048 });
    const other = await newTenant();
    const event = largeEvent(3_000);
    const send = ({ keys }: TestTenant) => postEvent(millrace.url, keys.COMPUTE_ENGINE, event);
    expect(await send(small)).toMatchObject({ status: 413, body: { details: { limit: 2_048 } } });
    expect(await send(other)).toMatchObject({ status: 201 });
    await millrace.api.send(`/api/v1/lineage/tenants/${small.id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ bodyLimitBytes: null }),
    });
    expect(await until(async () => (await send(small)).status === 201, "the change to be known")).toBe(true);
  });

  test("of size may be more than that of the server", async () => {
    const large = await newTenant({ bodyLimitBytes: 10 * EVENT_BYTES_MAX });
    const event = largeEvent(2 * EVENT_BYTES_MAX);
    expect(await postEvent(millrace.url, large.keys.COMPUTE_ENGINE, event)).toMatchObject({ status: 201 });
    const other = await newTenant();
    expect(await postEvent(millrace.url, other.keys.COMPUTE_ENGINE, event)).toMatchObject({ status: 413 });
  });

  test("of events a minute is back-pressure, to it alone", async () => {
    const limited = await newTenant({ rateLimitPerMinute: 3 });
    const other = await newTenant();
    const send = ({ keys }: TestTenant, n: number) =>
      postEvent(millrace.url, keys.COMPUTE_ENGINE, sparkEvent({ jobName: `job${n}` }));
    const statuses: number[] = [];
    for (const n of [1, 2, 3]) statuses.push((await send(limited, n)).status);
    expect(statuses).toEqual([201, 201, 201]);
    const refused = await send(limited, 4);
    expect(refused).toMatchObject({ status: 503, body: { code: "TENANT_RATE_LIMITED", details: { limit: 3 } } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(10);
    expect(await send(other, 4)).toMatchObject({ status: 201 });
    expect(await countEvents(limited.id)).toBe(3);
  });
});

describe("when the database is behind", () => {
  /** Nothing can be written until the returned function is called. */
  async function hold(): Promise<() => Promise<void>> {
    const client = await database.db.dedicated("holder");
    onTestFinished(() => client.end());
    await client.query("begin");
    await client.query("lock table lineage.event_key in access exclusive mode");
    return async () => void (await client.query("commit"));
  }
  const table = (tenantId: number, n: number) => gravitinoEvent("create_table", { tenantId, name: `dw.t${n}` });

  test("clients are told to come back, and whoever waited is acknowledged", async () => {
    const { id, keys } = await newTenant();
    const letGo = await hold();
    const statuses: number[] = [];
    const answered = Array.from({ length: WAITING_MAX + 10 }, async (_, n) => {
      const answer = await postEvent(millrace.url, keys.GRAVITINO, table(id, n));
      statuses.push(answer.status);
      return answer;
    });
    await until(() => statuses.length >= 10, "those that find no room");
    expect(statuses).toEqual(Array<number>(10).fill(503));
    const refused = await postEvent(millrace.url, keys.GRAVITINO, table(id, 99));
    expect(refused).toMatchObject({ status: 503, body: { code: "OVERLOADED", details: { waiting: WAITING_MAX } } });
    expect(refused.headers.get("retry-after")).toBe("1");
    const batch = JSON.stringify([table(id, 100), table(id, 101)]);
    expect((await postEvent(millrace.url, keys.GRAVITINO, batch, "/api/v1/lineage/batch")).body).toMatchObject({
      summary: { failed: 2, retriable: 2, non_retriable: 0 },
    });
    expect((await fetch(`${millrace.url}/healthz`)).status).toBe(200);
    await letGo();
    const acknowledged = (await Promise.all(answered)).filter(({ status }) => status === 201);
    expect(acknowledged).toHaveLength(WAITING_MAX);
    expect(await countEvents(id)).toBe(WAITING_MAX);
  });
});
