/** The API of models and tasks, over real HTTP. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { until } from "../../../test/until.ts";
import type { Http } from "../../kernel/http/server.ts";
import { tableName } from "../graph/names.ts";
import { taskRoutes } from "./routes.ts";
import { BUILTIN, SETTINGS, type TestTasks, useTasks } from "./tasks.fixture.ts";

const database = useDatabase();
const tasks = useTasks(database);
let process: TestTasks;
let http: TestHttp;

beforeEach(async () => {
  process = tasks.open({
    settings: { ...SETTINGS, credentials: [{ name: "MODEL_KEY", origin: tasks.models.origin }] },
  });
  http = await startHttp({
    db: database.db,
    routes: (server) =>
      void server.register(async (scope) => taskRoutes(scope as Http, { tasks: process }), {
        prefix: "/api/v1/lineage",
      }),
  });
  await tasks.tenant("1", null);
});
afterEach(() => http.stop());

const ONE = "/api/v1/lineage/tenants/1";
const post = (path: string, body?: unknown) => http.send(path, { method: "POST", body });
const put = (body: unknown, tenant = ONE) => http.send(`${tenant}/model`, { method: "PUT", body });

async function failed(count: number): Promise<string[]> {
  const tenant = { id: "1", code: "tenant-1", model: BUILTIN };
  const assets = await tasks.columns("1", count);
  await database.db.tx((tx) => process.enqueue(tx, tenant, assets));
  await database.query("update lineage.ol_async_task set status = 'DEAD', retry_count = 5, last_error = 'no'");
  return (await tasks.rows()).map(({ id }) => id);
}

describe("a model", () => {
  test("is chosen, shown and taken away", async () => {
    expect((await http.send(`${ONE}/model`)).body).toEqual({ model: null });
    const model = tasks.served({ summary: true, credentialRef: "env:MODEL_KEY" });
    expect(await put(model)).toMatchObject({ status: 200, body: { model } });
    expect((await http.send(`${ONE}/model`)).body).toEqual({ model });
    expect(await http.send(`${ONE}/model`, { method: "DELETE" })).toMatchObject({ status: 200, body: { model: null } });
    expect((await http.send(`${ONE}/model`)).body).toEqual({ model: null });
    expect(await database.query("select action, target from kernel.audit_log order by id")).toEqual([
      { action: "tenant.model", target: "1" },
      { action: "tenant.model-remove", target: "1" },
    ]);
  });

  test("that is built in has 384 dimensions unless told otherwise", async () => {
    const embedding = { provider: "builtin", model: "hash-v1" };
    expect((await put({ embedding })).body).toEqual({ model: { embedding: { ...embedding, dimension: 384 } } });
  });

  test.each([
    [{}, "body must not have fewer than 1 item"],
    [
      { embedding: { provider: "builtin", model: "best", dimension: 64 } },
      "The provider builtin has one model for this: hash-v1.",
    ],
    [{ summary: { provider: "builtin", model: "hash-v1" } }, "The provider builtin has one model for this: rules-v1."],
    [
      { summary: { provider: "builtin", model: "rules-v1", credentialRef: "env:MODEL_KEY" } },
      "The provider builtin takes neither endpoint nor credentialRef.",
    ],
    [
      { embedding: { provider: "openai", model: "x" } },
      "embedding.dimension is missing: write how many numbers the model's vectors have.",
    ],
    [
      { embedding: { provider: "openai", model: "x", dimension: 8, credentialRef: "env:MILLRACE_SECRET_KEY" } },
      "The settings allow no credential MILLRACE_SECRET_KEY: list it under lineage.tasks.credentials with the origin it may be sent to.",
    ],
    [
      {
        embedding: {
          provider: "openai",
          model: "x",
          dimension: 8,
          endpoint: "https://evil.example/v1",
          credentialRef: "env:MODEL_KEY",
        },
      },
      "The settings do not let the credential MODEL_KEY be sent to https://evil.example.",
    ],
    ...["user@", "user:secret@", ":secret@"].map((info): [object, string] => [
      { embedding: { provider: "openai", model: "x", dimension: 8, endpoint: `https://${info}models.example/v1` } },
      "The endpoint holds a user or a password: name a credential instead.",
    ]),
  ])("%j is refused", async (body, error) => {
    const { status, body: reply } = await put(body);
    expect(status).toBe(400);
    if (error.startsWith("body")) expect(reply["code"]).toBe("VALIDATION_FAILED");
    else expect(reply["error"]).toBe(error);
    expect((await http.send(`${ONE}/model`)).body).toEqual({ model: null });
  });

  test.each([
    { embedding: { provider: "openai", model: "x", dimension: 8, credentialRef: "sk-1234" } },
    { embedding: { provider: "cohere", model: "x", dimension: 8 } },
    { embedding: { provider: "builtin", model: "hash-v1", dimension: 7 } },
    { embedding: { provider: "openai", model: "x", dimension: 8, endpoint: "ftp://x" } },
    { default: { provider: "builtin", model: "hash-v1" } },
  ])("%j is not even a model", async (body) => {
    expect(await put(body)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  });
});

describe("tasks", () => {
  test("are listed by status and type, a page at a time", async () => {
    await failed(5);
    await database.query(
      "update lineage.ol_async_task set status = 'SUCCEEDED' where id = (select min(id) from lineage.ol_async_task)",
    );
    expect((await http.send(`${ONE}/tasks?size=2&page=2`)).body).toMatchObject({ page: 2, size: 2, total: 5 });
    const dead = await http.send(`${ONE}/tasks?status=DEAD&type=EMBEDDING`);
    expect(dead.body).toMatchObject({
      total: 4,
      items: [{ status: "DEAD", type: "EMBEDDING", resourceType: "COLUMN", lastError: "no" }, {}, {}, {}],
    });
    expect((await http.send(`${ONE}/tasks?type=SQL_SUMMARY`)).body).toMatchObject({ items: [], total: 0 });
    const pages = await Promise.all([1, 2, 3].map((page) => http.send(`${ONE}/tasks?size=2&page=${page}`)));
    const ids = pages.flatMap(({ body }) => (body["items"] as { id: string }[]).map(({ id }) => id));
    expect(new Set(ids).size).toBe(5);
    expect((await http.send(`${ONE}/tasks?status=LOST`)).status).toBe(400);
  });

  test("are shown with their attempts, and batches apart", async () => {
    await put(BUILTIN);
    const tenant = { id: "1", code: "tenant-1", model: BUILTIN };
    const table = await tasks.asset("1", tableName("gravitino", "lake", "sales", "orders"));
    await database.db.tx((tx) => process.enqueue(tx, tenant, [table]));
    await process.worker.runOnce();
    const [row] = await tasks.ended();
    expect((await http.send(`${ONE}/tasks/${row?.id}`)).body).toMatchObject({
      id: row?.id,
      status: "SUCCEEDED",
      resourceId: table.id,
      attempts: [{ attemptNo: 1, status: "SUCCEEDED", inputSize: 1, errorType: null, latencyMs: expect.any(Number) }],
    });
    expect((await http.send(`${ONE}/batches`)).body).toMatchObject({
      total: 1,
      items: [{ type: "EMBEDDING", status: "SUCCEEDED", plannedSize: 1, successCount: 1, failedCount: 0 }],
    });
  });

  test("are reset and canceled, one or all", async () => {
    const [first, second] = await failed(4);
    expect(await post(`${ONE}/tasks/${first}:reset`)).toMatchObject({
      status: 200,
      body: { status: "PENDING", retryCount: 0 },
    });
    expect(await post(`${ONE}/tasks/${first}:reset`)).toMatchObject({
      status: 409,
      body: { error: `Cannot reset task ${first}: it is PENDING. One can reset what is FAILED, DEAD, CANCELED.` },
    });
    expect(await post(`${ONE}/tasks/${second}:cancel`)).toMatchObject({ status: 200, body: { status: "CANCELED" } });
    expect(await post(`${ONE}/tasks/${second}:cancel`)).toMatchObject({
      status: 409,
      body: { code: "TASK_WRONG_STATE" },
    });
    expect(await post(`${ONE}/tasks:reset`, { status: "DEAD" })).toMatchObject({ status: 200, body: { reset: 2 } });
    expect((await post(`${ONE}/tasks:reset`, { status: "SUCCEEDED" })).status).toBe(400);
    expect((await tasks.rows()).map(({ status }) => status)).toEqual(["PENDING", "CANCELED", "PENDING", "PENDING"]);
    const audited = await database.query<{ action: string }>(
      "select action from kernel.audit_log where action like 'task.%' order by id",
    );
    expect(audited.map(({ action }) => action).slice(-3)).toEqual(["task.reset", "task.cancel", "task.reset-all"]);
  });

  test("that there are none of, or that are no ids, are not found", async () => {
    for (const id of ["999999", "0", "x", "99999999999999999999", "%00"]) {
      for (const send of [() => http.send(`${ONE}/tasks/${id}`), () => post(`${ONE}/tasks/${id}:reset`)]) {
        expect((await send()).status, id).toBe(id === "%00" ? 400 : 404);
      }
    }
  });
});

describe("a key that is bound to a tenant", () => {
  const PATHS = ["/model", "/tasks", "/batches", "/tasks/1"];

  async function keyOf(tenantId: number) {
    const scopes = ["lineage:read", "lineage:write"] as const;
    const { key } = await http.keys.create(database.db, { name: "bound", scopes, tenantId }, "test");
    return { authorization: `Bearer ${key}` };
  }

  test("reaches its own, and to it no other exists", async () => {
    const [id] = await failed(1);
    await tasks.tenant("2", null);
    const headers = await keyOf(2);
    expect((await http.send("/api/v1/lineage/tenants/2/model", { headers })).status).toBe(200);
    for (const path of PATHS) {
      const unknown = await http.send(`/api/v1/lineage/tenants/77${path}`, { headers });
      const other = await http.send(ONE + path, { headers });
      expect(other).toMatchObject({ status: 404, body: { code: "TENANT_NOT_FOUND", error: "There is no tenant 1." } });
      expect(unknown.status).toBe(404);
    }
    for (const action of [`/tasks/${id}:reset`, `/tasks/${id}:cancel`, "/tasks:reset"]) {
      expect((await http.send(ONE + action, { method: "POST", headers, body: {} })).status).toBe(404);
    }
    // A task of another tenant is not there under one's own either.
    expect((await http.send(`/api/v1/lineage/tenants/2/tasks/${id}`, { headers })).status).toBe(404);
    expect((await http.send(`/api/v1/lineage/tenants/2/tasks/${id}:reset`, { method: "POST", headers })).status).toBe(
      404,
    );
    expect((await tasks.rows())[0]?.status).toBe("DEAD");
  });

  test("does not choose where the tenant's metadata are sent: every client that sends events has such a key", async () => {
    const headers = await keyOf(1);
    for (const [method, body] of [["PUT", BUILTIN], ["DELETE"]] as const) {
      const refused = await http.send(`${ONE}/model`, { method, headers, ...(body ? { body } : {}) });
      expect(refused).toMatchObject({ status: 403, body: { code: "FORBIDDEN", details: { scope: "admin" } } });
    }
    expect((await put(BUILTIN)).status).toBe(200);
  });

  test("any key is told that a tenant does not exist", async () => {
    for (const id of ["77", "x", "-1", "01", "99999999999999999999"]) {
      for (const path of ["/model", "/tasks", "/batches"]) {
        expect(await http.send(`/api/v1/lineage/tenants/${id}${path}`), id + path).toMatchObject({
          status: 404,
          body: { code: "TENANT_NOT_FOUND" },
        });
      }
    }
  });
});

test("the backlog is a metric that is counted now and then, and never while nobody looks", async () => {
  await failed(3);
  await process.registry.render();
  await until(
    async () => (await process.registry.render()).includes('millrace_lineage_tasks{type="EMBEDDING",status="DEAD"} 3'),
    "the count",
  );
});
