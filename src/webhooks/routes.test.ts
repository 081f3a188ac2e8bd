/** The API of subscriptions and deliveries, over real HTTP. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startHttp, type TestHttp } from "../../test/http.ts";
import { until } from "../../test/until.ts";
import type { Http } from "../kernel/http/server.ts";
import { createSecretBox } from "../kernel/secrets/cipher.ts";
import { webhookRoutes } from "./routes.ts";
import { type ProcessOptions, type TestProcess, update, useWebhooks } from "./webhooks.fixture.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);
let process: TestProcess;
let http: TestHttp;

async function serve(options: ProcessOptions = {}): Promise<void> {
  process = await webhooks.open(options);
  http = await startHttp({
    db: database.db,
    routes: (server) =>
      void server.register(async (scope) => webhookRoutes(scope as Http, { webhooks: process }), { prefix: "/api/v1" }),
  });
}
beforeEach(() => serve());
afterEach(() => http.stop());

const SUBSCRIPTIONS = "/api/v1/kpi/subscriptions";
const DELIVERIES = "/api/v1/kpi/deliveries";
const post = (path: string, body?: unknown) => http.send(path, { method: "POST", body });
const patch = (id: number | string, body: unknown) => http.send(`${SUBSCRIPTIONS}/${id}`, { method: "PATCH", body });
const subscribe = async (fields: Json = {}) => {
  const body = { kpiId: "KD1001", callbackUrl: webhooks.receiver.url("/kpi"), ...fields };
  const answer = await post(SUBSCRIPTIONS, body);
  expect(answer.status).toBe(201);
  return answer.body as Json & { id: number };
};

describe("a subscription", () => {
  test("is created with the defaults, and its signing key is shown once", async () => {
    const made = await subscribe({ secret: "Header,Authorization,Bearer xxx", teamName: "red", userId: "u1" });
    expect(made).toMatchObject({
      kpiId: "KD1001",
      retryNum: 8,
      status: "1",
      teamName: "red",
      userId: "u1",
      secretType: "Header",
      secretKey: "Authorization",
      signingKey: expect.stringMatching(/^whsec_.{44}$/),
    });
    const { signingKey, ...shown } = made;
    expect((await http.send(`${SUBSCRIPTIONS}/${made.id}`)).body).toEqual(shown);
    expect(await subscribe({ kpiId: "KD1002", teamName: "red" })).not.toHaveProperty("signingKey");
    expect(await subscribe({ teamName: "blue" })).toHaveProperty("signingKey");
    expect(signingKey).toBeDefined();
  });

  test("that is posted again, even many times at once, is one", async () => {
    const body = { kpiId: "KD1001", callbackUrl: "https://x.example/again", teamName: "red", secret: "Query,t,a,b" };
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => post(SUBSCRIPTIONS, body)));
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 200, 200, 200, 200, 201,
    ]);
    expect(new Set(answers.map(({ body: { id } }) => id)).size).toBe(1);
    expect(answers.filter(({ body: { signingKey } }) => signingKey !== undefined)).toHaveLength(1);
    expect(await database.query("select count(*)::int as n from webhooks.metrics_webhook_subscription")).toEqual([
      { n: 1 },
    ]);
    expect((await post(`${SUBSCRIPTIONS}?dryRun=true`, body)).body).toMatchObject({ id: answers[0]?.body["id"] });
    // A field that is left out is not compared: it may have been changed since.
    const [{ id } = { id: 0 }] = answers.map(({ body: made }) => made as { id: number });
    await patch(id, { retryNum: 2, status: 0 });
    expect(await post(SUBSCRIPTIONS, body)).toMatchObject({ status: 200, body: { id, retryNum: 2, status: "0" } });
  });

  test.each([
    ["secret", { secret: "Query,t,other" }],
    ["secret", { secret: null }],
    ["retryNum", { retryNum: 5 }],
    ["userId", { userId: "u2" }],
    ["status", { status: 0 }],
  ])("that is posted again with another %s is refused, with the way to change it", async (field, other) => {
    const body = {
      kpiId: "KD1001",
      callbackUrl: "https://x.example/other",
      secret: "Query,t,a",
      retryNum: 1,
      userId: "u1",
    };
    const { id } = (await post(SUBSCRIPTIONS, body)).body as { id: number };
    expect(await post(SUBSCRIPTIONS, { ...body, ...other })).toMatchObject({
      status: 409,
      body: {
        code: "SUBSCRIPTION_EXISTS",
        error:
          `Subscription ${id} has this KPI, callback and team already, with another \`${field}\`. ` +
          `Change it: PATCH /api/v1/kpi/subscriptions/${id}.`,
      },
    });
  });

  test("cannot be changed into another that is there", async () => {
    const first = await subscribe({ teamName: "red" });
    const { id } = await subscribe({ teamName: "blue" });
    expect(await patch(id, { teamName: "red" })).toMatchObject({
      status: 409,
      body: { code: "SUBSCRIPTION_EXISTS", details: { id: first.id } },
    });
    expect(await patch(id, { teamName: "blue", retryNum: 1 })).toMatchObject({ status: 200 });
  });

  test("is changed in the fields that are sent, and null removes a secret", async () => {
    const { id, ...before } = await subscribe({ secret: "Query,t,hunter2" });
    const changed = await patch(id, { retryNum: 7, status: 0, secret: null });
    expect(changed).toMatchObject({
      status: 200,
      body: { retryNum: 7, status: "0", secretType: null, secretKey: null },
    });
    expect(changed.body["kpiId"]).toBe(before["kpiId"]);
    const moved = await patch(id, { callbackUrl: "https://new.example/hook" });
    expect(moved.body).toMatchObject({ callbackUrl: "https://new.example/hook", signingKey: expect.any(String) });
    expect(await database.query("select callback_url from webhooks.endpoint")).toEqual([
      { callback_url: "https://new.example/hook" },
    ]);
  });

  test("is deleted, with its endpoint if it was the last", async () => {
    const [one, other] = [await subscribe(), await subscribe({ kpiId: "KD1002" })];
    const remove = (id: number) => http.send(`${SUBSCRIPTIONS}/${id}`, { method: "DELETE" });
    expect(await remove(one.id)).toMatchObject({ status: 200, body: { id: one.id } });
    expect(await database.query("select from webhooks.endpoint")).toHaveLength(1);
    await remove(other.id);
    expect(await database.query("select from webhooks.endpoint")).toEqual([]);
    expect(await remove(one.id)).toMatchObject({ status: 404, body: { code: "SUBSCRIPTION_NOT_FOUND" } });
  });

  test("is found by KPI, team, status and part of its fields", async () => {
    const a = await subscribe({ kpiId: "A", teamName: "red", status: "0" });
    const b = await subscribe({ kpiId: "B", teamName: "blue", callbackUrl: "https://b.example/50%" });
    const found = async (query: string) => {
      const { body } = await http.send(`${SUBSCRIPTIONS}?${query}`);
      return { ids: (body["items"] as Json[]).map(({ id }) => id), total: body["total"] };
    };
    expect(await found("")).toEqual({ ids: [a.id, b.id], total: 2 });
    expect(await found("kpiId=A")).toEqual({ ids: [a.id], total: 1 });
    expect(await found("teamName=blue&status=1")).toEqual({ ids: [b.id], total: 1 });
    expect(await found("status=0")).toEqual({ ids: [a.id], total: 1 });
    expect(await found("q=B.EXAMPLE/50%25")).toEqual({ ids: [b.id], total: 1 });
    expect(await found("page=2&size=1")).toEqual({ ids: [b.id], total: 2 });
    expect(await found("kpiId=C")).toEqual({ ids: [], total: 0 });
  });

  test("can be tested, and the answer is shown without the secret", async () => {
    const { id } = await subscribe({ secret: "Query,token,hunter2" });
    webhooks.receiver.on("/kpi", (nth, response, { path }) => {
      if (nth === 1) return 200;
      response.writeHead(500).end(`what is ${path}?`);
      return undefined;
    });
    expect(await post(`${SUBSCRIPTIONS}/${id}:test`)).toMatchObject({
      status: 200,
      body: { delivered: true, statusCode: 200, error: null },
    });
    expect((await post(`${SUBSCRIPTIONS}/${id}:test`)).body).toMatchObject({
      delivered: false,
      statusCode: 500,
      answer: "what is /kpi?token=[redacted]?",
    });
    expect(webhooks.receiver.received()[0]).toMatchObject({
      path: "/kpi?token=hunter2",
      json: { event: "TEST", affectedKpiIds: ["KD1001"] },
      headers: { "webhook-signature": expect.any(String) },
    });
    expect(await webhooks.rows()).toEqual([]);
  });

  test("has its key rotated", async () => {
    const { id, signingKey } = await subscribe();
    const { body } = await post(`${SUBSCRIPTIONS}/${id}:rotate`);
    expect(body).toMatchObject({ id, signingKey: expect.stringMatching(/^whsec_/) });
    expect(body["signingKey"]).not.toBe(signingKey);
    const hours = (Date.parse(String(body["previousValidUntil"])) - Date.now()) / 3_600_000;
    expect(hours).toBeCloseTo(24, 1);
  });

  test("has its changes in the audit log, without secrets", async () => {
    await database.query("truncate kernel.audit_log");
    const { id } = await subscribe({ secret: "Query,token,hunter2" });
    await patch(id, { secret: "Query,token,hunter3", retryNum: 3 });
    await post(`${SUBSCRIPTIONS}/${id}:rotate`);
    await post(`${SUBSCRIPTIONS}/${id}:test`);
    await http.send(`${SUBSCRIPTIONS}/${id}`, { method: "DELETE" });
    const rows = await database.query<Json>("select action, target, details from kernel.audit_log order by id");
    expect(rows.map(({ action }) => action)).toEqual(
      ["create", "update", "rotate", "test", "delete"].map((what) => `subscription.${what}`),
    );
    expect(rows[1]).toMatchObject({
      details: { secretChanged: true, changes: [{ field: "retryNum", from: expect.any(Number), to: 3 }] },
    });
    expect(JSON.stringify(rows)).not.toMatch(/hunter|whsec/);
  });

  test("is refused without a secret key, with a sentence", async () => {
    await http.stop();
    await serve({ secrets: createSecretBox(undefined) });
    expect(await post(SUBSCRIPTIONS, { kpiId: "K", callbackUrl: "https://x.example" })).toMatchObject({
      status: 503,
      body: { code: "SECRETS_UNAVAILABLE", error: expect.stringContaining("MILLRACE_SECRET_KEY") },
    });
  });
});

describe("an invalid subscription", () => {
  const good = { kpiId: "KD1001", callbackUrl: "https://x.example/" };
  test.each([
    [{}, "VALIDATION_FAILED", "lacks the field"],
    [{ ...good, kpiId: "" }, "VALIDATION_FAILED", "kpiId"],
    [{ ...good, kpiId: "x".repeat(65) }, "VALIDATION_FAILED", "kpiId"],
    [{ ...good, callbackUrl: `https://x.example/${"x".repeat(512)}` }, "VALIDATION_FAILED", "callbackUrl"],
    [{ ...good, callbackUrl: "x.example/hook" }, "CALLBACK_URL_INVALID", "write it in full"],
    [{ ...good, callbackUrl: "ftp://x.example" }, "CALLBACK_URL_INVALID", "only http and https"],
    [{ ...good, callbackUrl: "https://u:hunter2@x.example" }, "CALLBACK_URL_INVALID", "put them into `secret`"],
    [{ ...good, secret: "hunter2" }, "SECRET_INVALID", "Type,Key,Value"],
    [{ ...good, secret: "header,X-Key,hunter2" }, "SECRET_INVALID", "Did you mean `Header`?"],
    [{ ...good, secret: 5 }, "VALIDATION_FAILED", "secret"],
    [{ ...good, retryNum: -1 }, "VALIDATION_FAILED", "retryNum"],
    [{ ...good, retryNum: 21 }, "VALIDATION_FAILED", "retryNum"],
    [{ ...good, retryNum: "3" }, "VALIDATION_FAILED", "retryNum"],
    [{ ...good, status: "2" }, "VALIDATION_FAILED", "status"],
    [{ ...good, teamName: "a\nb" }, "VALIDATION_FAILED", "teamName"],
    [{ ...good, callback: "x" }, "VALIDATION_FAILED", "unknown field `callback`"],
  ])("%j is refused", async (body, code, words) => {
    const { id } = await subscribe();
    for (const answer of [await post(SUBSCRIPTIONS, body), ...("kpiId" in body ? [await patch(id, body)] : [])]) {
      expect(answer).toMatchObject({ status: 400, body: { code, error: expect.stringContaining(words) } });
      expect(JSON.stringify(answer.body)).not.toContain("hunter2");
    }
    expect(await database.query("select from webhooks.metrics_webhook_subscription")).toHaveLength(1);
    expect(JSON.stringify(http.lines)).not.toContain("hunter2");
  });
});

test("a subscription with several faults is refused with all of them", async () => {
  const body = { kpiId: "KD1001", callbackUrl: "x.example/hook", secret: "hunter2" };
  expect(await post(SUBSCRIPTIONS, body)).toMatchObject({
    status: 400,
    body: {
      code: "CALLBACK_URL_INVALID",
      details: { others: [{ code: "SECRET_INVALID", error: expect.stringContaining("Type,Key,Value") as string }] },
    },
  });
});

describe("what does not exist", () => {
  test.each(["0", "-1", "1.5", "abc", "2147483647", "99999999999", "1:2"])("subscription %s is 404", async (id) => {
    const path = `${SUBSCRIPTIONS}/${encodeURIComponent(id)}`;
    const answers = [
      await http.send(path),
      await http.send(path, { method: "DELETE" }),
      await patch(encodeURIComponent(id), {}),
      await post(`${path}:test`),
      await post(`${path}:rotate`),
    ];
    for (const { status, body } of answers) {
      expect({ status, code: body["code"] }).toEqual({ status: 404, code: "SUBSCRIPTION_NOT_FOUND" });
    }
  });

  test.each([randomUUID(), "abc"])("delivery %s is 404", async (id) => {
    for (const { status, body } of [
      await http.send(`${DELIVERIES}/${id}`),
      await post(`${DELIVERIES}/${id}:redeliver`),
    ]) {
      expect({ status, code: body["code"] }).toEqual({ status: 404, code: "DELIVERY_NOT_FOUND" });
    }
  });

  test.each(["status=LOST", "since=yesterday", "after=abc", "limit=0", "opTime=%20", "subscriptionId=x", "kpi=1"])(
    "a list by %s is 400",
    async (query) => {
      expect((await http.send(`${DELIVERIES}?${query}`)).status).toBe(400);
    },
  );

  test.each([{}, { since: "yesterday" }, { since: "2025-01-01T00:00:00Z", url: "x" }])(
    "a recovery by %j is 400",
    async (body) => {
      expect((await post(`${DELIVERIES}:recover`, body)).status).toBe(400);
    },
  );
});

describe("deliveries", () => {
  const list = async (query = "") => {
    const { body } = await http.send(`${DELIVERIES}?${query}`);
    return body as { items: (Json & { id: string; opTime: string })[]; next: string | null };
  };
  const opTimes = async (query = "") => (await list(query)).items.map(({ opTime }) => opTime);

  test("are listed newest first, in pages, with filters", async () => {
    const { id } = await subscribe();
    await subscribe({ kpiId: "KD9", callbackUrl: "http://127.0.0.1:9/", retryNum: 0 });
    for (const opTime of ["1", "2", "3"]) await process.consume("kpi.updated", update({ opTime }));
    process.sender.start();
    await webhooks.ended(3);
    const since = new Date().toISOString();
    await process.consume("kpi.updated", update({ opTime: "4", modelId: "MODEL-02", affectedKpiIds: ["KD9"] }));
    await webhooks.ended(4);

    expect(await opTimes()).toEqual(["4", "3", "2", "1"]);
    const first = await list("limit=3");
    expect(first.items.map(({ opTime }) => opTime)).toEqual(["4", "3", "2"]);
    expect(await list(`limit=3&after=${first.next}`)).toMatchObject({ items: [{ opTime: "1" }], next: null });
    expect(await opTimes("status=FAILED")).toEqual(["4"]);
    expect(await opTimes("modelId=MODEL-01&opTime=2")).toEqual(["2"]);
    expect(await opTimes(`since=${since}`)).toEqual(["4"]);
    expect(await opTimes(`subscriptionId=${id}`)).toEqual(["3", "2", "1"]);
    expect(await opTimes(`callbackUrl=${encodeURIComponent("http://127.0.0.1:9/")}`)).toEqual(["4"]);
  });

  test("say why they wait, and so do their subscriptions", async () => {
    const { id } = await subscribe();
    webhooks.receiver.on("/kpi", (_, response) => {
      response.setHeader("retry-after", "60");
      return 429;
    });
    process.sender.start();
    await process.consume("kpi.updated", update());
    const first = await until(
      async () => (await list("status=PENDING")).items.find((one) => one["attempts"] === 1),
      "429",
    );
    await process.consume("kpi.updated", update({ opTime: "2" }));
    const endpoint = { heldUntil: expect.any(String), failingSince: expect.any(String), disabledReason: null };
    expect((await list("opTime=2")).items).toMatchObject([{ attempts: 0, error: null, endpoint }]);
    expect((await http.send(`${DELIVERIES}/${first.id}`)).body).toMatchObject({ endpoint });
    const { heldUntil, failingSince } = endpoint;
    expect((await http.send(`${SUBSCRIPTIONS}/${id}`)).body).toMatchObject({ pending: 2, heldUntil, failingSince });
    const other = await subscribe({ kpiId: "KD1002" });
    expect((await http.send(`${SUBSCRIPTIONS}/${other.id}`)).body).toMatchObject({ pending: 0 });
    // What has passed holds nothing.
    await database.query("update webhooks.endpoint set held_until = now() - interval '1 s'");
    expect((await http.send(`${SUBSCRIPTIONS}/${id}`)).body).toMatchObject({ heldUntil: null });
  });

  test("are sent again under the same id, with all their retries", async () => {
    await subscribe({ retryNum: 0 });
    webhooks.receiver.on("/kpi", (nth) => (nth === 1 ? 500 : 200));
    await process.consume("kpi.updated", update());
    process.sender.start();
    const [row] = await webhooks.ended(1);
    expect(row).toMatchObject({ status: "FAILED" });
    expect(await post(`${DELIVERIES}/${row?.id}:redeliver`)).toMatchObject({ status: 200, body: { id: row?.id } });
    await until(async () => (await webhooks.rows())[0]?.status === "DELIVERED", "the second attempt");
    expect((await http.send(`${DELIVERIES}/${row?.id}`)).body).toMatchObject({
      status: "DELIVERED",
      attempts: 2,
      payload: { event: "KPI_UPDATED" },
      log: [
        { attempt: 1, statusCode: 500, error: "The receiver answered 500." },
        { attempt: 2, statusCode: 200, error: null },
      ],
    });
    const ids = webhooks.receiver.received().map(({ headers }) => headers["webhook-id"]);
    expect(ids).toEqual([row?.id, row?.id]);
  });

  test("are not sent again while they are being sent, or when no subscription is enabled", async () => {
    const { id } = await subscribe();
    await process.consume("kpi.updated", update());
    const [row] = await webhooks.rows();
    await database.query("update webhooks.delivery set status = 'SENDING', due_at = null, session_id = 1, fence = 1");
    const again = () => post(`${DELIVERIES}/${row?.id}:redeliver`);
    expect(await again()).toMatchObject({
      status: 409,
      body: { code: "DELIVERY_WRONG_STATE", error: expect.stringContaining("being sent") },
    });
    await database.query(
      "update webhooks.delivery set status = 'FAILED', ended_at = now(), session_id = null, fence = null",
    );
    await patch(id, { status: "0" });
    expect(await again()).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("none of its subscriptions") },
    });
    expect(await webhooks.rows()).toMatchObject([{ status: "FAILED" }]);
    await patch(id, { status: "1", callbackUrl: "https://new.example/" });
    expect((await again()).body).toMatchObject({ status: "PENDING", callbackUrl: "https://new.example/" });
  });

  test("that failed since a time are recovered together, to the present addresses of their subscriptions", async () => {
    const { id } = await subscribe({ callbackUrl: webhooks.receiver.url("/wrong"), retryNum: 0 });
    webhooks.receiver.on("/wrong", () => 404);
    for (const opTime of ["old", "1", "2"]) await process.consume("kpi.updated", update({ opTime }));
    process.sender.start();
    await webhooks.ended(3);
    await database.query("update webhooks.delivery set created_at = now() - interval '1 day' where op_time = 'old'");
    await patch(id, { callbackUrl: webhooks.receiver.url("/right") });
    const since = new Date(Date.now() - 3_600_000).toISOString();
    expect((await post(`${DELIVERIES}:recover`, { since, callbackUrl: "https://other.example" })).body).toEqual({
      recovered: 0,
    });
    expect((await post(`${DELIVERIES}:recover?dryRun=true`, { since })).body).toEqual({ recovered: 2 });
    expect((await post(`${DELIVERIES}:recover`, { since })).body).toEqual({ recovered: 2 });
    await webhooks.ended(3);
    const seen = webhooks.receiver.received("/right").map(({ json }) => json["opTime"]);
    expect(new Set(seen)).toEqual(new Set(["1", "2"]));
    expect((await post(`${DELIVERIES}:recover`, { since })).body).toEqual({ recovered: 0 });
  });

  test("of a model, an opTime, a subscription or a status are recovered without the others", async () => {
    const { id } = await subscribe({ callbackUrl: webhooks.receiver.url("/odd"), retryNum: 0 });
    let isUp = false;
    webhooks.receiver.on("/odd", () => (isUp ? 200 : 500));
    for (const opTime of ["1", "2"]) await process.consume("kpi.updated", update({ opTime }));
    await process.consume("kpi.updated", update({ opTime: "1", modelId: "MODEL-02" }));
    process.sender.start();
    await webhooks.ended(3);
    isUp = true;
    const since = "1970-01-01T00:00:00Z";
    const count = async (which: Json) =>
      (await post(`${DELIVERIES}:recover?dryRun=true`, { since, ...which })).body["recovered"];
    expect(await count({})).toBe(3);
    expect(await count({ modelId: "MODEL-02" })).toBe(1);
    expect(await count({ opTime: "1" })).toBe(2);
    expect(await count({ opTime: "1", subscriptionId: id })).toBe(2);
    expect(await count({ subscriptionId: id + 1 })).toBe(0);
    expect(await count({ status: "DELIVERED" })).toBe(0);
    expect((await post(`${DELIVERIES}:recover`, { since, opTime: "1" })).body).toEqual({ recovered: 2 });
    await webhooks.ended(3);
    expect(await count({})).toBe(1);
    expect(await count({ status: "DELIVERED" })).toBe(2);
    expect((await post(`${DELIVERIES}:recover`, { since, status: "PENDING" })).status).toBe(400);
  });

  test("show the KPIs, the latency, and the request without its secrets", async () => {
    await subscribe({ callbackUrl: webhooks.receiver.url("/seen"), secret: "Header,Authorization,Bearer hunter2" });
    await subscribe({ callbackUrl: webhooks.receiver.url("/query?a=1"), secret: "Query,token,hunter2" });
    await process.consume("kpi.updated", update());
    process.sender.start();
    await webhooks.ended(2);
    const { items } = await list();
    expect(items).toMatchObject(
      items.map(() => ({ kpiIds: ["KD1001", "KD1002"], durationMs: expect.any(Number) as unknown })),
    );
    const details = await Promise.all(items.map(async ({ id }) => (await http.send(`${DELIVERIES}/${id}`)).body));
    const requests = details.map((one) => one["request"] as { url: string; headers: Json });
    const seen = requests.find(({ url }) => url.endsWith("/seen"));
    expect(seen?.headers).toMatchObject({ authorization: "•••", "webhook-signature": "v1,•••" });
    expect(requests.map(({ url }) => url)).toContain(webhooks.receiver.url("/query?a=1&token=•••"));
  });
});

test("secrets and signing keys are in no row, reply or log line", async () => {
  const wanted = ["Query,token,hunter2", "Header,Authorization,Bearer hunter2", 'Body,json,{"pass":"hunter2"}'];
  const keys: unknown[] = [];
  for (const [index, secret] of wanted.entries()) {
    const { id, signingKey } = await subscribe({
      secret,
      callbackUrl: webhooks.receiver.url(`/${index}`),
      retryNum: 1,
    });
    keys.push(signingKey, (await post(`${SUBSCRIPTIONS}/${id}:rotate`)).body["signingKey"]);
    webhooks.receiver.on(`/${index}`, (_, response, received) => {
      response.writeHead(500).end(JSON.stringify(received)); // Echoes the whole request.
      return undefined;
    });
  }
  await subscribe({ secret: "Query,token,hunter2", callbackUrl: "http://127.0.0.1:9/", retryNum: 0 });
  await process.consume("kpi.updated", update());
  process.sender.start();
  const rows = await webhooks.ended(4);
  expect(
    webhooks.receiver
      .received()
      .filter(({ path, headers, body }) => JSON.stringify([path, headers, body]).includes("hunter2")),
  ).toHaveLength(6);

  const stored = await Promise.all(
    ["delivery", "delivery_attempt", "metrics_webhook_subscription", "endpoint"].map((table) =>
      database.query(`select * from webhooks.${table}`),
    ),
  );
  const replies = [await http.send(SUBSCRIPTIONS), await http.send(DELIVERIES)];
  for (const { id } of rows) replies.push(await http.send(`${DELIVERIES}/${id}`));
  const audited = await database.query("select * from kernel.audit_log");
  const everything = JSON.stringify([stored, replies.map(({ body }) => body), audited, process.log.lines, http.lines]);
  expect(everything).toContain("[redacted]");
  expect(everything).not.toContain("hunter2");
  expect(everything).not.toContain("whsec_");
  expect(keys).toHaveLength(6);
  for (const key of keys) expect(everything).not.toContain(String(key).replace("whsec_", ""));
});

test("the routes need their scopes", async () => {
  const { key } = await http.keys.create(database.db, { name: "reader", scopes: ["kpi:read"] }, "test");
  const asReader = (path: string, body?: unknown) =>
    http.send(path, { headers: { authorization: `Bearer ${key}` }, ...(body === undefined ? {} : { body }) });
  expect((await asReader(SUBSCRIPTIONS)).status).toBe(200);
  expect((await asReader(SUBSCRIPTIONS, { kpiId: "K", callbackUrl: "https://x.example" })).status).toBe(403);
});
