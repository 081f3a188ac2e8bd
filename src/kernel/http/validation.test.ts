/** Validation at the edge, over real HTTP: what is converted, what is refused, and the sentences that say why. */
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { Body, Time } from "./schemas.ts";

const database = useDatabase();
let http: TestHttp;

const Thing = Body({
  name: Type.Optional(Type.String({ minLength: 2, maxLength: 5 })),
  shard: Type.Optional(Type.Integer({ minimum: 0, maximum: 9 })),
  ready: Type.Optional(Type.Boolean()),
  at: Type.Optional(Time),
  kind: Type.Optional(Type.Enum(["new", "done"] as const)),
  word: Type.Optional(Type.String({ pattern: "^[a-z]+$", description: "Small letters." })),
  code: Type.Optional(Type.String({ pattern: "^[0-9]+$" })),
  items: Type.Optional(Type.Array(Body({ filename: Type.String() }), { minItems: 1, maxItems: 2 })),
});

beforeAll(async () => {
  const config = { scope: "admin" } as const;
  http = await startHttp({
    db: database.db,
    routes(server) {
      server.post("/body", { config, schema: { body: Thing } }, async ({ body }) => body);
      server.post("/strict", { config, schema: { body: Body({ id: Type.String() }) } }, async ({ body }) => body);
      server.get(
        "/query",
        {
          config,
          schema: {
            querystring: Body({
              limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
              all: Type.Optional(Type.Boolean()),
              q: Type.Optional(Type.String()),
              after: Type.Optional(Time),
            }),
          },
        },
        async ({ query }) => query,
      );
      server.get(
        "/path/:number/:id",
        { config, schema: { params: Body({ number: Type.Integer(), id: Type.String({ format: "uuid" }) }) } },
        async ({ params }) => params,
      );
    },
  });
});
afterAll(() => http.stop());

/** The sentence of the refusal. */
async function refusal(path: string, body?: unknown): Promise<unknown> {
  const answer = await http.send(path, { body });
  expect(answer).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  return answer.body["error"];
}

describe("a body", () => {
  test.each([
    [{ shard: "1" }, "The field `shard` must be an integer."],
    [{ shard: 1.5 }, "The field `shard` must be an integer."],
    [{ shard: null }, "The field `shard` must be an integer."],
    [{ shard: -1 }, "The field `shard` must be >= 0."],
    [{ shard: 10 }, "The field `shard` must be <= 9."],
    [{ ready: "true" }, "The field `ready` must be a boolean."],
    [{ ready: 1 }, "The field `ready` must be a boolean."],
    [{ name: 12 }, "The field `name` must be a string."],
    [{ name: "" }, "The field `name` must not have fewer than 2 characters."],
    [{ name: "abcdef" }, "The field `name` must not have more than 5 characters."],
    [{ kind: "old" }, "The field `kind` must be one of `new`, `done`."],
    [{ kind: "dnoe" }, "The field `kind` must be one of `new`, `done` (did you mean `done`?)."],
    [{ word: "A" }, "The field `word` is not acceptable: Small letters."],
    [{ code: "A" }, 'The field `code` must match pattern "^[0-9]+$".'],
    [{ items: {} }, "The field `items` must be an array."],
    [{ items: [] }, "The field `items` must not have fewer than 1 item."],
    [{ items: [{ filename: "a" }, {}] }, "The field `items[1]` lacks the field `filename`."],
    [{ items: [{ filename: 1 }] }, "The field `items[0].filename` must be a string."],
    [[], "The body must be an object."],
    [null, "The body must be an object."],
    ["text", "The body must be an object."],
  ])("is taken as it is: %j is refused", async (body, sentence) => {
    // A text goes as the JSON text that it is.
    expect(await refusal("/body", typeof body === "string" ? JSON.stringify(body) : body)).toBe(sentence);
  });

  test("that lacks a field is answered with its name, and with the misspelt one that was sent", async () => {
    expect(await refusal("/strict", {})).toBe("The body lacks the field `id`.");
    expect(await refusal("/strict", { size: 1, di: "x" })).toBe("The body lacks the field `id` (you sent `di`).");
  });

  test("with an unknown field is refused, with the field that was probably meant", async () => {
    expect(await refusal("/body", { shrad: 1 })).toBe(
      "The body has the unknown field `shrad` (did you mean `shard`?).",
    );
    expect(await refusal("/body", { nothingLikeIt: 1 })).toBe("The body has the unknown field `nothingLikeIt`.");
    expect(await refusal("/body", { items: [{ filename: "a", filenam: "b" }] })).toBe(
      "The field `items[0]` has the unknown field `filenam` (did you mean `filename`?).",
    );
    expect(await refusal("/body", { ["x".repeat(500)]: 1 })).toBe(
      `The body has the unknown field \`${"x".repeat(64)}\`.`,
    );
  });

  test("with names of every object's own members is refused like any other unknown one", async () => {
    for (const name of ["constructor", "toString", "hasOwnProperty"]) {
      expect(await refusal("/body", { [name]: 1 })).toBe(`The body has the unknown field \`${name}\`.`);
      expect(await refusal("/strict", { [name]: 1 })).toMatch(/lacks the field `id`|unknown field/);
    }
  });
});

describe("a time", () => {
  test.each([
    "2025-01-01T00:00:00Z",
    "2025-01-01t23:59:59.123456z",
    "2024-02-29T00:00:00+08:00",
    "2025-06-30T12:00:00-03:30",
  ])("may be %s", async (at) => {
    expect(await http.send("/body", { body: { at } })).toMatchObject({ status: 200, body: { at } });
  });

  test.each([
    "2025-01-01",
    "2025-01-01T00:00:00",
    "2025-13-01T00:00:00Z",
    "2025-02-30T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "2025-04-31T12:00:00+02:00",
    "2025-01-01T25:00:00Z",
    "2025-01-01T24:00:00Z",
    "2025-01-01T00:60:00Z",
    "2025-01-01T00:00:00+16:00",
    "2025-01-01T00:00:00+00:60",
    "0000-01-01T00:00:00Z",
    "yesterday",
    "",
    "2025-01-01T00:00:00Z\n",
    "2025-01-01 00:00:00Z",
  ])("may not be %j", async (at) => {
    expect(await refusal("/body", { at })).toBe("The field `at` must be a time like 2025-01-01T00:00:00Z.");
  });

  test("in a query string may have its plus sign unencoded", async () => {
    expect((await http.send("/query?after=2025-01-01T00:00:00+08:00")).status).toBe(200);
    expect((await http.send("/query?after=2025-01-01T00:00:00%2B08:00")).status).toBe(200);
  });
});

describe("a query string", () => {
  test("is converted, and gets its defaults", async () => {
    expect((await http.send("/query?limit=5&all=true&q=12")).body).toEqual({ limit: 5, all: true, q: "12" });
    expect((await http.send("/query")).body).toEqual({ limit: 20 });
  });

  test.each([
    ["limit=abc", "The parameter `limit` must be an integer."],
    ["limit=", "The parameter `limit` must be an integer."],
    ["limit=1.5", "The parameter `limit` must be an integer."],
    ["limit=1&limit=2", "The parameter `limit` must be an integer."],
    ["limit=0", "The parameter `limit` must be >= 1."],
    ["limit=99999999999999999999", "The parameter `limit` must be <= 100."],
    ["all=yes", "The parameter `all` must be a boolean."],
    ["lmit=5", "The query string has the unknown parameter `lmit` (did you mean `limit`?)."],
    ["after=now", "The parameter `after` must be a time like 2025-01-01T00:00:00Z."],
  ])("?%s is refused", async (query, sentence) => {
    expect(await refusal(`/query?${query}`)).toBe(sentence);
  });
});

describe("a path", () => {
  const id = "01890000-0000-7000-8000-00000000000A";

  test("is converted", async () => {
    expect((await http.send(`/path/12/${id}`)).body).toEqual({ number: 12, id });
  });

  test.each([
    [`x/${id}`, "The path's `number` must be an integer."],
    ["1/1", "The path's `id` must be a UUID."],
    [`1/${id}0`, "The path's `id` must be a UUID."],
  ])("/%s is refused", async (path, sentence) => {
    expect(await refusal(`/path/${path}`)).toBe(sentence);
  });
});

test("a NUL in the address is refused before it reaches the database", async () => {
  const refused = {
    status: 400,
    body: {
      code: "INVALID_TEXT",
      error: "The address contains a NUL character (`%00`), which cannot be stored. Send well-formed Unicode.",
    },
  };
  expect(await http.send("/query?q=a%00b")).toMatchObject(refused);
  expect(await http.send("/path/%00/x")).toMatchObject(refused);
  expect((await http.send("/query?q=%2500")).body).toMatchObject({ q: "%00" });
});
