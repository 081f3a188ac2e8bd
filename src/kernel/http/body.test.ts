/** The limits of a JSON body, over real HTTP: its size, type, syntax and text. */
import { once } from "node:events";
import { connect } from "node:net";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { signal } from "../../../test/until.ts";

const LIMIT = 10_000;
const database = useDatabase();
let http: TestHttp;
let handled = 0;
const hungUp = signal();

beforeAll(async () => {
  http = await startHttp({
    db: database.db,
    bodyLimitBytes: LIMIT,
    routes(server) {
      server.addHook("onRequestAbort", async (_request) => hungUp.resolve());
      server.post("/echo", { config: { scope: "admin" } }, async ({ body }) => {
        handled += 1;
        return { body };
      });
      server.post("/named", { config: { scope: "admin" }, schema: { body: Type.Object({}) } }, async () => ({}));
    },
  });
});
afterAll(() => http.stop());

const echo = (body: unknown, headers: Record<string, string> = {}) => http.send("/echo", { body, headers });

describe("size", () => {
  const ofLength = (length: number) => JSON.stringify("x".repeat(length - 2));

  test("a body of exactly the limit is read and one byte more is not", async () => {
    expect((await echo(ofLength(LIMIT))).status).toBe(200);
    expect(await echo(ofLength(LIMIT + 1))).toMatchObject({
      status: 413,
      body: {
        code: "BODY_TOO_LARGE",
        error: "The body is larger than the limit of 10000 bytes. Send less at a time.",
        details: { limit: LIMIT },
      },
    });
  });

  test("a body that does not say its length is cut off at the limit too", async () => {
    const response = await fetch(`${http.url}/echo`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
      body: new Blob([ofLength(LIMIT), " "]).stream(),
      duplex: "half",
    });
    expect(response.status).toBe(413);
  });

  test("a body that ends halfway is not logged as a failure of the database", async () => {
    const socket = connect(http.port, "127.0.0.1");
    socket.write(
      `POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
    );
    await once(socket, "data"); // It now waits for the body.
    socket.write('{"half":', () => socket.destroy());
    await hungUp.promise;
    expect(http.lines).toEqual([]);
  });
});

describe("content type", () => {
  test.each(["application/json", "application/json; charset=utf-8", "Application/JSON"])("takes %s", async (type) => {
    expect(await echo("{}", { "content-type": type })).toMatchObject({ status: 200, body: { body: {} } });
  });

  test.each(["text/plain", "application/xml", "application/x-www-form-urlencoded", "json", ";"])(
    "refuses %s",
    async (type) => {
      expect(await echo("{}", { "content-type": type })).toMatchObject({
        status: 415,
        body: {
          code: "UNSUPPORTED_MEDIA_TYPE",
          error: "The body must be JSON: send `Content-Type: application/json`.",
        },
      });
    },
  );

  test("refuses a body without a type", async () => {
    const response = await fetch(`${http.url}/echo`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
      body: Buffer.from("{}"),
    });
    expect(response.status).toBe(415);
  });
});

describe("syntax", () => {
  test.each(["", "   ", "\n\t"])("an empty body (%j) is refused as such", async (body) => {
    expect(await echo(body)).toMatchObject({
      status: 400,
      body: { code: "MALFORMED_JSON", error: "The body is not valid JSON: it is empty." },
    });
  });

  test("a missing body is refused where one is needed", async () => {
    expect(await http.send("/named", { method: "POST" })).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED", error: "The body must be an object." },
    });
  });

  test.each(["{", "{'a':1}", '{"a":1,}', "NaN", '{"a":1} x', '"\t"', '"\0"', "undefined"])(
    "%j is refused with what is wrong in it",
    async (body) => {
      expect(await echo(body)).toMatchObject({
        status: 400,
        body: { code: "MALFORMED_JSON", error: expect.stringMatching(/^The body is not valid JSON: .+\.$/) },
      });
    },
  );

  test("a byte order mark is ignored", async () => {
    expect(await echo(Buffer.from('\ufeff{"a":1}'))).toMatchObject({ status: 200, body: { body: { a: 1 } } });
  });

  test("64 levels are accepted and more are refused", async () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect((await echo(nested(64))).status).toBe(200);
    for (const body of [nested(65), nested(LIMIT / 2), '{"a":'.repeat(1_500) + '"\\u0041"' + "}".repeat(1_500)]) {
      expect(await echo(body)).toMatchObject({
        status: 400,
        body: {
          code: "BODY_TOO_COMPLEX",
          error: expect.stringMatching(/^The body is nested more than 64 levels deep/),
        },
      });
    }
  });
});

describe("text", () => {
  test.each([
    ["NUL", '{"a":{"B":["x\\u0000"]}}', "The field `a.B[0]` contains a NUL character"],
    ["NUL in a field name", '{"A":{"x\\u0000":1}}', "A field name in `A` contains a NUL character"],
    ["an unpaired high surrogate", '{"a":"\\ud800"}', "The field `a` contains an unpaired surrogate"],
    ["an unpaired low surrogate", '{"a":"x\\uDC00y"}', "The field `a` contains an unpaired surrogate"],
    ["an unpaired surrogate in a name", '{"\\udfff":1}', "A field name in the body contains an unpaired surrogate"],
    ["an unpaired surrogate and nothing else", '"\\ud800"', "The body contains an unpaired surrogate"],
    ["Latin-1", Buffer.from('{"a":"é"}', "latin1"), "The body contains bytes that are not UTF-8"],
    ["an encoded surrogate", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), "The body contains bytes that are not UTF-8"],
    ["half a character", Buffer.from([0x22, 0xe2, 0x82, 0x22]), "The body contains bytes that are not UTF-8"],
  ])("%s is refused, and the place is named", async (_, body, sentence) => {
    const before = handled;
    expect(await echo(body)).toMatchObject({
      status: 400,
      body: { code: "INVALID_TEXT", error: `${sentence}, which cannot be stored. Send well-formed Unicode.` },
    });
    expect(handled).toBe(before);
  });

  test("all other text is accepted unchanged", async () => {
    const text = { "加载 \u{1f600}": "é\u0001\u007f\ufffd\u202e\uffff", __pro: "__proto__ \\u0000" };
    expect((await echo(text)).body).toEqual({ body: text });
    expect((await echo('{"a":"\\ud83d\\ude00"}')).body).toEqual({ body: { a: "\u{1f600}" } });
  });

  test.each(['{"__proto__":{"admin":true}}', '{"a":[{"__proto__":1}]}', '{"__pr\\u006fto__":1}'])(
    "a field named __proto__ is refused: %s",
    async (body) => {
      expect(await echo(body)).toMatchObject({
        status: 400,
        body: { error: "The body has a field named `__proto__`, which is never accepted." },
      });
    },
  );
});
