import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { noHints } from "../../../test/no-hints.ts";
import { createSecretBox } from "./cipher.ts";
import { createNamedSecrets } from "./named-secrets.ts";
import { secretRoutes } from "./secret-routes.ts";

const database = useDatabase();
let http: TestHttp;

beforeAll(async () => {
  const { db } = database;
  const secrets = createNamedSecrets({ db, hints: noHints, box: createSecretBox(randomBytes(32)) });
  http = await startHttp({ db, bodyLimitBytes: 100_000, routes: (routes) => secretRoutes(routes, { db, secrets }) });
  return () => http.stop();
});

const put = (name: string, body: unknown) => http.send(`/secrets/${name}`, { method: "PUT", body });
const TIME = expect.stringMatching(/^\d{4}-.*Z$/);

test("a secret is set, replaced, listed and deleted, and no reply contains its value", async () => {
  const shown = { name: "SHOP_TOKEN", createdAt: TIME, updatedAt: TIME, updatedBy: "MILLRACE_ADMIN_KEY" };
  const answers = [
    await put("SHOP_TOKEN", { value: "open sesame" }),
    await put("SHOP_TOKEN", { value: "open barley" }),
    await http.send("/secrets"),
    await http.send("/secrets/SHOP_TOKEN", { method: "DELETE" }),
  ];
  expect(answers.map(({ status, body }) => [status, body])).toEqual([
    [200, shown],
    [200, shown],
    [200, { items: [shown] }],
    [200, shown],
  ]);
  expect((await http.send("/secrets")).body).toEqual({ items: [] });
});

test("setting and deleting a secret is audited, without the value", async () => {
  await put("AUDITED", { value: "open sesame" });
  await http.send("/secrets/AUDITED", { method: "DELETE" });
  const rows = await database.query<{ action: string; target: string; details: object }>(
    "select action, target, details from kernel.audit_log where target = 'AUDITED' order by id",
  );
  expect(rows).toEqual([
    { action: "secret.set", target: "AUDITED", details: {} },
    { action: "secret.delete", target: "AUDITED", details: {} },
  ]);
});

describe("bad input", () => {
  test.each(["1ST", "a-b", "a.b", "a%20b", "%C3%A4", "x".repeat(129)])("the name %s is refused", async (name) => {
    expect(await put(name, { value: "some value" })).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED" },
    });
  });

  test.each([
    {},
    { value: "abc" },
    { value: "     " },
    { value: 12_345 },
    { value: "x".repeat(32_769) },
    { value: "some value", more: 1 },
  ])("an invalid body is refused without repeating its value", async (body) => {
    const answer = await put("TOKEN", body);
    expect(answer).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
    if ("value" in body) expect(JSON.stringify(answer.body)).not.toContain(String(body.value));
  });

  test.each(['{"value": open-sesame}', '{"value": "open-sesame', '{"value": "open-sesame" "more": 1}', "open-sesame"])(
    "a body that is not JSON is refused without repeating it: %s",
    async (body) => {
      const answer = await put("TOKEN", body);
      expect(answer).toMatchObject({ status: 400, body: { code: "MALFORMED_JSON" } });
      expect(JSON.stringify(answer.body)).not.toMatch(/sesame|open-/);
    },
  );

  test("a secret that does not exist cannot be deleted", async () => {
    const answer = await http.send("/secrets/NONE", { method: "DELETE" });
    expect(answer).toMatchObject({ status: 404, body: { code: "SECRET_NOT_FOUND" } });
  });

  test("a key without the scope admin is refused", async () => {
    const { db } = database;
    const { key } = await db.tx((tx) => http.keys.create(tx, { name: "writer", scopes: ["chain:write"] }, "test"));
    const headers = { authorization: `Bearer ${key}` };
    for (const [path, method] of [
      ["/secrets", "GET"],
      ["/secrets/A", "PUT"],
      ["/secrets/A", "DELETE"],
    ] as const) {
      const answer = await http.send(path, {
        method,
        headers,
        ...(method === "PUT" ? { body: { value: "abcd" } } : {}),
      });
      expect(answer).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
    }
  });
});
