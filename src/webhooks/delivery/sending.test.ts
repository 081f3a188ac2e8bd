/** What a receiver gets, and how its answer decides the outcome of the delivery. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { hang, type Received, reset } from "../receiver.fixture.ts";
import { actor, subscription, type TestProcess, update, useWebhooks } from "../webhooks.fixture.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);
let process: TestProcess;

beforeEach(async () => {
  process = await webhooks.open();
});

async function subscribe(path: string, fields: Parameters<typeof subscription>[1] = {}) {
  const saved = await process.subscriptions.create(subscription(webhooks.receiver.url(path), fields), actor);
  return { id: saved.subscription.id, signingKey: saved.signingKey ?? "" };
}

async function deliver(by: TestProcess = process) {
  by.sender.start();
  await by.consume("kpi.updated", update());
}

const waits = (received: readonly Received[]) =>
  received.slice(1).map(({ atMs }, index) => Math.round((atMs - (received[index]?.atMs ?? 0)) / 100) / 10);

/** The verification as a receiver would write it. */
function isSignedWith(key: string, { headers, body }: Received): boolean {
  const content = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const expected = createHmac("sha256", Buffer.from(key.replace("whsec_", ""), "base64"))
    .update(content)
    .digest();
  return String(headers["webhook-signature"])
    .split(" ")
    .map((signature) => signature.split(","))
    .some(([version, text = ""]) => version === "v1" && timingSafeEqual(Buffer.from(text, "base64"), expected));
}

describe("a subscriber", () => {
  test("gets the update as the specification shows it, signed", async () => {
    const { signingKey } = await subscribe("/kpi");
    await deliver();
    const [row] = await webhooks.ended(1);
    const [got] = webhooks.receiver.received();
    expect(got?.body).toBe(
      '{"event":"KPI_UPDATED","modelId":"MODEL-01","opTime":"20251219","affectedKpiIds":["KD1001","KD1002"],' +
        '"timestamp":"2025-12-19T08:00:00.000Z","generation":1,"rerun":false,' +
        '"causedBy":{"table":"DW_FACT_ORDER_D","opTime":"20251219"}}',
    );
    expect(got?.headers).toMatchObject({ "content-type": "application/json", "webhook-id": row?.id });
    expect(Math.abs(Number(got?.headers["webhook-timestamp"]) - Date.now() / 1000)).toBeLessThan(10);
    expect(isSignedWith(signingKey, got as Received)).toBe(true);
    expect(isSignedWith("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", got as Received)).toBe(false);
    expect(row).toMatchObject({ status: "DELIVERED", attempt: 1, status_code: 200, last_error: null });
  });

  test.each([
    ["Query,token,a b&c=1,2", "/kpi?x=%20y", { path: "/kpi?x=%20y&token=a%20b%26c%3D1%2C2" }],
    ["Header,Authorization,Bearer xxx,yyy", "/kpi", { headers: { authorization: "Bearer xxx,yyy" } }],
    ['Body,json,{"appId":"xxx","event":"FORGED"}', "/kpi", { json: { appId: "xxx", event: "KPI_UPDATED" } }],
  ])("with the secret %s gets it in the request", async (secret, path, seen) => {
    await subscribe(path, { secret });
    await deliver();
    await webhooks.ended(1);
    expect(webhooks.receiver.received()).toMatchObject([seen]);
  });

  test("gets two signatures during a rotation, and one afterwards", async () => {
    const { id, signingKey } = await subscribe("/kpi");
    const { signingKey: fresh } = await process.subscriptions.rotate(id, actor);
    await deliver();
    await webhooks.ended(1);
    await database.query("update webhooks.endpoint set previous_until = now()");
    await process.consume("kpi.updated", update());
    await webhooks.ended(2);
    const signedWith = webhooks.receiver
      .received()
      .map((got) => [isSignedWith(signingKey, got), isSignedWith(fresh, got)]);
    expect(signedWith).toEqual([
      [true, true],
      [false, true],
    ]);
  });

  test("of another team with the same callback and secret shares the delivery, signed for both", async () => {
    const one = await subscribe("/kpi", { teamName: "red" });
    const other = await subscribe("/kpi", { teamName: "blue", kpiId: "KD1002" });
    await deliver();
    await webhooks.ended(1);
    const [got] = webhooks.receiver.received() as [Received];
    expect([one, other].map(({ signingKey }) => isSignedWith(signingKey, got))).toEqual([true, true]);
  });
});

describe("a delivery", () => {
  test("that fails is tried again after 1 s and 2 s, under the same id", async () => {
    await subscribe("/kpi");
    webhooks.receiver.on("/kpi", (nth) => (nth <= 2 ? 500 : 204));
    await deliver();
    expect(await webhooks.ended(1)).toMatchObject([{ status: "DELIVERED", attempt: 3, status_code: 204 }]);
    const received = webhooks.receiver.received();
    const [first = 0, next = 0] = waits(received); // Not less; retries.test.ts has the exact waits.
    expect(first).toBeGreaterThan(0.9);
    expect(next).toBeGreaterThan(1.9);
    expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    const [, second, third] = received.map(({ headers }) => Number(headers["webhook-timestamp"]));
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThanOrEqual(1); // Each attempt has its own timestamp.
    const detail = await process.deliveries.get(String(received[0]?.headers["webhook-id"]));
    expect(detail.attempts.map(({ attempt, status_code }) => [attempt, status_code])).toEqual([
      [1, 500],
      [2, 500],
      [3, 204],
    ]);
  });

  test("fails for good after its retries", async () => {
    await subscribe("/kpi", { retryNum: 1 });
    webhooks.receiver.on("/kpi", () => 500);
    await deliver();
    expect(await webhooks.ended(1)).toMatchObject([
      { status: "FAILED", attempt: 2, status_code: 500, last_error: "The receiver answered 500." },
    ]);
    expect(await process.subscriptions.list({}, { size: 1, offset: 0 })).toMatchObject({
      items: [{ status: "1", failing_since: expect.any(Date) }],
    });
  });

  test.each([
    ["seconds", () => "2"],
    ["a date", () => new Date(Date.now() + 2_900).toUTCString()],
  ])("waits for the Retry-After in %s, and so do all others to that endpoint", async (_, retryAfter) => {
    await subscribe("/kpi");
    webhooks.receiver.on("/kpi", (nth, response) => {
      if (nth > 1) return 200;
      response.writeHead(429, { "retry-after": retryAfter() }).end();
      return undefined;
    });
    await deliver();
    await until(async () => (await webhooks.rows())[0]?.attempt === 1, "the first attempt");
    await process.consume("kpi.updated", update());
    await webhooks.ended(2);
    const [first, second, third] = webhooks.receiver.received().map(({ atMs }) => atMs) as [number, number, number];
    expect(Math.min(second, third) - first).toBeGreaterThan(1_800);
    expect(Math.max(second, third) - first).toBeLessThan(4_500);
  });

  test("that is answered 410 disables the subscriptions of the callback until someone enables them", async () => {
    const { id } = await subscribe("/kpi");
    await subscribe("/kpi", { kpiId: "KD9" });
    await subscribe("/other", { kpiId: "KD9" });
    webhooks.receiver.on("/kpi", (nth) => (nth === 1 ? 410 : 200));
    await deliver();
    expect(await webhooks.ended(1)).toMatchObject([{ status: "FAILED", attempt: 1, status_code: 410 }]);
    const { items } = await process.subscriptions.list({}, { size: 9, offset: 0 });
    expect(items.map(({ status }) => status)).toEqual(["0", "0", "1"]);
    expect(items[0]).toMatchObject({ disabled_at: expect.any(Date), disabled_reason: expect.stringContaining("410") });
    expect(process.log.lines.map(({ message }) => message)).toContain("a webhook endpoint was disabled");
    await process.consume("kpi.updated", update());
    expect(await webhooks.rows()).toHaveLength(1);

    const { subscription: enabled } = await process.subscriptions.update(id, { status: "1" }, actor);
    expect(enabled).toMatchObject({ status: "1", disabled_at: null, disabled_reason: null, failing_since: null });
    await process.consume("kpi.updated", update());
    await until(() => webhooks.receiver.received("/kpi").length === 2, "the next delivery");
  });

  test.each([
    ["resets the connection", reset, /socket|ECONNRESET|other side closed/i],
    ["redirects to loopback", redirect, /answered 302; redirects are not followed/],
  ])("to a receiver that %s fails, and is tried again", async (_, answering, reason) => {
    await subscribe("/kpi", { retryNum: 1 });
    webhooks.receiver.on("/kpi", (nth, response, received) => (nth === 1 ? answering(nth, response, received) : 200));
    await deliver();
    const [row] = await webhooks.ended(1);
    expect(row).toMatchObject({ status: "DELIVERED", attempt: 2 });
    const { attempts } = await process.deliveries.get(row?.id ?? "");
    expect(attempts[0]?.error).toMatch(reason);
    expect(webhooks.receiver.received("/elsewhere")).toEqual([]);
  });

  test("to a receiver that hangs fails at the timeout", async () => {
    const impatient = await webhooks.open({ settings: webhooks.settings({ timeoutSeconds: 1 }) });
    await subscribe("/kpi", { retryNum: 0 });
    webhooks.receiver.on("/kpi", hang);
    await deliver(impatient);
    expect(await webhooks.ended(1)).toMatchObject([
      { status: "FAILED", last_error: "there was no complete answer within 1000 ms" },
    ]);
  });

  test.each(["http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "http://169.254.169.254/latest"])(
    "to the private address %s is refused at once, and not tried again",
    async (url) => {
      const guarded = await webhooks.open({ allowPrivate: false });
      await process.subscriptions.create(subscription(url), actor);
      await deliver(guarded);
      expect(await webhooks.ended(1)).toMatchObject([
        { status: "FAILED", attempt: 1, last_error: expect.stringContaining("not a public address") },
      ]);
    },
  );

  test("whose subscription was deleted meanwhile is cancelled", async () => {
    const { id } = await subscribe("/kpi");
    await process.consume("kpi.updated", update());
    await process.subscriptions.remove(id, actor);
    process.sender.start();
    expect(await webhooks.ended(1)).toMatchObject([{ status: "CANCELLED", attempt: 0 }]);
    expect(webhooks.receiver.received()).toEqual([]);
    expect(await database.query("select from webhooks.endpoint")).toEqual([]);
  });

  test("goes to the new address of its subscription, with its new secret", async () => {
    const { id } = await subscribe("/old", { secret: "Query,t,old" });
    await process.consume("kpi.updated", update());
    const moved = { callbackUrl: webhooks.receiver.url("/new"), secret: "Query,t,new" };
    await process.subscriptions.update(id, moved, actor);
    process.sender.start();
    expect(await webhooks.ended(1)).toMatchObject([{ status: "DELIVERED", callback_url: moved.callbackUrl }]);
    expect(webhooks.receiver.received().map(({ path }) => path)).toEqual(["/new?t=new"]);
  });
});

describe("the alert DELIVERY_FAILED", () => {
  const watched = () =>
    webhooks.open({
      settings: webhooks.settings({ alerts: [{ name: "ops", url: webhooks.receiver.url("/ops"), retryNum: 0 }] }),
    });
  const alerts = () => webhooks.receiver.received("/ops").map(({ json }) => json);

  test("tells of a delivery that was given up, once an hour for a callback, and again after a success", async () => {
    const sending = await watched();
    await subscribe("/kpi", { retryNum: 0 });
    await subscribe("/other", { retryNum: 0 });
    webhooks.receiver.on("/kpi", (nth) => (nth === 3 ? 200 : 500));
    for (const ended of [2 + 1, 4 + 1, 6 + 1, 8 + 2]) {
      await sending.consume("kpi.updated", update());
      if (ended === 3) sending.sender.start();
      await webhooks.ended(ended);
    }
    expect(alerts()).toHaveLength(2);
    const [row] = await database.query<{ id: string }>(
      "select id from webhooks.delivery where status = 'FAILED' order by created_at, id",
    );
    expect(alerts()[0]).toEqual({
      event: "DELIVERY_FAILED",
      deliveryId: row?.id,
      callbackUrl: webhooks.receiver.url("/kpi"),
      deliveryEvent: "KPI_UPDATED",
      modelId: "MODEL-01",
      opTime: "20251219",
      attempts: 1,
      statusCode: 500,
      reason: expect.stringContaining("500"),
      timestamp: expect.any(String),
    });
    await database.query("update webhooks.endpoint set failure_alerted_at = now() - interval '61 minutes'");
    await sending.consume("kpi.updated", update());
    await webhooks.ended(10 + 3);
    expect(alerts()).toHaveLength(3);
  });

  test("tells of a delivery that lost its last process", async () => {
    const sending = await watched();
    await subscribe("/kpi");
    await sending.consume("kpi.updated", update());
    await database.query(
      "update webhooks.delivery set status = 'SENDING', due_at = null, session_id = 0, fence = 1, lost_count = 9",
    );
    await sending.reclaimer.runOnce();
    sending.sender.start();
    await until(() => alerts()[0], "the alert");
    expect(alerts()).toMatchObject([{ event: "DELIVERY_FAILED", reason: expect.any(String) }]);
  });

  test("is not sent for an alert that cannot be delivered itself", async () => {
    const sending = await watched();
    webhooks.receiver.on("/ops", () => 500);
    sending.sender.start();
    await sending.consume("model.failed", {
      modelId: "M",
      opTime: "1",
      generation: 1,
      message: "no",
      at: "2025-01-01T00:00:00Z",
    });
    await webhooks.ended(1);
    expect(await webhooks.rows()).toMatchObject([{ event: "MODEL_FAILED", status: "FAILED" }]);
  });
});

describe("an endpoint that has failed for days without a success", () => {
  const failing = (since: string) =>
    database.query(`update webhooks.endpoint set failing_since = now() - interval '${since}'`);

  test("is disabled when it fails again, and alerts are sent", async () => {
    const alerts = [{ name: "ops", url: webhooks.receiver.url("/ops"), retryNum: 0 }];
    const watched = await webhooks.open({ settings: webhooks.settings({ alerts }) });
    await subscribe("/kpi", { retryNum: 0 });
    await failing("5 days");
    webhooks.receiver.on("/kpi", () => 500);
    await deliver(watched);
    await until(() => webhooks.receiver.received("/ops")[0], "the alert");
    expect(webhooks.receiver.received("/ops")).toMatchObject([
      { json: { event: "ENDPOINT_DISABLED", callbackUrl: webhooks.receiver.url("/kpi"), reason: expect.any(String) } },
    ]);
    expect((await process.subscriptions.list({}, { size: 1, offset: 0 })).items).toMatchObject([{ status: "0" }]);
  });

  test("is not disabled before that time, nor after one success", async () => {
    await subscribe("/kpi", { retryNum: 1 });
    await failing("4 days");
    webhooks.receiver.on("/kpi", (nth) => (nth === 1 ? 500 : 200));
    await deliver();
    await webhooks.ended(1);
    expect((await process.subscriptions.list({}, { size: 1, offset: 0 })).items).toMatchObject([
      { status: "1", failing_since: null, disabled_at: null },
    ]);
  });
});

function redirect(_: number, response: Parameters<typeof hang>[1]): undefined {
  response.writeHead(302, { location: webhooks.receiver.url("/elsewhere") }).end();
}
