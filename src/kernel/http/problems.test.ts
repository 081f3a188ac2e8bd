/** Error answers: each has a sentence and a code, and failures of the server are logged. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { trackingError } from "../../../src/tracking/catalogue.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { until } from "../../../test/until.ts";
import { openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { actionPath } from "./action-path.ts";
import type { Http } from "./server.ts";

const SLEEP = statement("test.problems.sleep", "select pg_sleep(60) /* to be interrupted */");
const NONSENSE = statement("test.problems.nonsense", "select 1/0");

const database = useDatabase();
const config = { scope: "admin" } as const;
let http: TestHttp;

const thrown: Record<string, unknown> = {
  "a bug": new Error("the password is hunter2"),
  "a text": "the password is hunter2",
  "an error with a status": Object.assign(new Error("hunter2 was refused there"), { statusCode: 404 }),
  nothing: undefined,
};

function routes(server: Http): void {
  for (const [index, value] of Object.values(thrown).entries()) {
    server.get(`/throws/${index}`, { config }, async () => {
      throw value;
    });
  }
  server.get("/sleep", { config }, () => database.db.rows(SLEEP));
  server.get("/nonsense", { config }, () => database.db.rows(NONSENSE));
  server.get("/conflict", { config }, async () => {
    throw trackingError("STAGE_UNKNOWN", { stage: "x" }, { allowed: "`a`, `b`", hint: "" });
  });
  server.get("/files/:filename", { config }, async ({ params }) => params);
  server.post("/files/register", { config }, async () => ({}));
  server.put("/things/:id", { config }, async () => ({}));
  server.post(actionPath("/things/:id", "run"), { config }, async () => ({}));
  server.route({ url: "/both", method: ["PUT", "DELETE"], config, handler: async () => ({}) });
}

beforeAll(async () => {
  http = await startHttp({ db: database.db, routes });
});
afterAll(() => http.stop());

describe("an error of the catalogue", () => {
  test("is answered with its status, sentence, code and details, and is not logged", async () => {
    const before = http.lines.length;
    const { status, body } = await http.send("/conflict");
    expect(status).toBe(400);
    expect(body).toEqual({
      error: "There is no stage `x` here. Use one of `a`, `b`.",
      code: "STAGE_UNKNOWN",
      details: { stage: "x" },
    });
    expect(http.lines.length).toBe(before);
  });
});

describe("a bug", () => {
  test.each(Object.keys(thrown).map((name, index) => [name, index]))(
    "is answered without its message: %s was thrown",
    async (_, index) => {
      const answer = await http.send(`/throws/${index}`, { headers: { "x-request-id": `bug-${index}` } });
      expect(answer.status).toBe(500);
      expect(answer.body).toEqual({
        error: `The server failed to handle the request. Its log has the details under request bug-${index}.`,
        code: "INTERNAL",
        details: { requestId: `bug-${index}` },
      });
    },
  );

  test("is in the log with its message, its stack and the request's id", async () => {
    await http.send("/throws/0", { headers: { "x-request-id": "find-me" } });
    const line = http.lines.find(({ requestId }) => requestId === "find-me");
    expect(line).toMatchObject({
      level: 50,
      msg: "a request failed",
      err: { message: "the password is hunter2", stack: expect.stringContaining("problems.test.ts") },
    });
  });

  test("in a statement is a bug too, not an unavailable database", async () => {
    expect(await http.send("/nonsense")).toMatchObject({ status: 500, body: { code: "INTERNAL" } });
  });
});

describe("an unknown path", () => {
  const hintFor = async (path: string, method = "GET") => {
    const { status, body } = await http.send(path, { method });
    expect(status).toBe(404);
    expect(body["code"]).toBe("ROUTE_NOT_FOUND");
    return body["error"];
  };

  test("is answered with the nearest one and its methods", async () => {
    expect(await hintFor("/file/registre", "POST")).toBe(
      "There is no POST /file/registre here. Did you mean POST /files/register?",
    );
    expect(await hintFor("/confict?x=1")).toBe("There is no GET /confict here. Did you mean GET /conflict?");
    expect(await hintFor("/something/else")).toBe("There is no GET /something/else here. The reference is at /docs.");
  });

  test("with this method is answered with the methods that it has, and a path that was probably meant", async () => {
    const send = (path: string) => http.send(path, { method: "POST" });
    const both = await send("/both");
    expect(both).toMatchObject({
      status: 405,
      body: { code: "METHOD_NOT_ALLOWED", error: "There is no POST /both here. It takes DELETE, PUT." },
    });
    expect(both.headers.get("allow")).toBe("DELETE, PUT");
    expect((await send("/files/registre")).body["error"]).toMatch(/Did you mean POST \/files\/register\?$/);
  });

  test("of an action is not taken for the id of a thing", async () => {
    expect((await http.send("/things/1:run", { method: "POST" })).status).toBe(200);
    const put = await http.send("/things/1:run", { method: "PUT" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await http.send("/things/1:other", { method: "PUT" })).status).toBe(200);
    expect((await http.send("/things/1%3Arun", { method: "PUT" })).status).toBe(200);
  });

  test("is answered before the body is read, whatever it holds", async () => {
    const noJson = { headers: { "content-type": "text/plain" }, body: "not JSON" };
    expect((await http.send("/nowhere", { method: "POST", ...noJson })).status).toBe(404);
    expect((await http.send("/both", { method: "POST", ...noJson })).status).toBe(405);
    expect((await http.send("/both", { method: "QUERY" })).status).toBe(405);
  });

  test("is truncated in the answer", async () => {
    expect(String(await hintFor(`/${"x".repeat(5_000)}`)).length).toBeLessThan(400);
  });
});

describe("a URL that cannot be parsed", () => {
  test.each(["/files/%zz", "/files/%", "/files/%c3%28", "/files/%ed%a0%80", "/nowhere/%ff"])(
    "%s is refused",
    async (path) => {
      expect(await http.send(path)).toMatchObject({
        status: 400,
        body: {
          code: "VALIDATION_FAILED",
          error: "The path has a `%` that is not followed by the code of a UTF-8 character.",
        },
      });
    },
  );

  test("a part of the path may have 2048 characters and not one more", async () => {
    expect((await http.send(`/files/${"x".repeat(2_048)}`)).status).toBe(200);
    expect(await http.send(`/files/${"x".repeat(2_049)}`)).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED", error: "A part of the path is too long." },
    });
  });

  test("a URL that is longer than the limit of Node is refused with a sentence", async () => {
    expect(await raw(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)).toEqual({
      head: expect.stringMatching(/^HTTP\/1.1 400 /),
      body: { code: "VALIDATION_FAILED", error: "The URL and the headers are too long together." },
    });
  });

  test("bytes that are not HTTP are refused with a sentence", async () => {
    expect(await raw("hello\r\n\r\n")).toEqual({
      head: expect.stringMatching(/^HTTP\/1.1 400 /),
      body: { code: "VALIDATION_FAILED", error: "This is not a complete HTTP request." },
    });
  });

  async function raw(request: string): Promise<{ head: string; body: unknown }> {
    const socket = connect(http.port, "127.0.0.1");
    socket.write(request);
    const [head = "", body = ""] = (await text(socket)).split("\r\n\r\n");
    return { head, body: JSON.parse(body) };
  }
});

describe("an unavailable database", () => {
  const unavailable = {
    status: 503,
    body: {
      code: "DATABASE_UNAVAILABLE",
      error: "The database does not answer. Try again in 2 s.",
      details: { seconds: 2 },
    },
  };

  test.each([
    ["ends its connection", "pg_terminate_backend"],
    ["cuts the statement off", "pg_cancel_backend"],
  ])("during a statement (it %s) is answered with 503 and Retry-After", async (_, end) => {
    const answering = http.send("/sleep");
    await until(async () => {
      const ended = await database.query(
        `select ${end}(pid) from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'
         and datname = current_database()`,
      );
      return ended.length > 0;
    }, "the statement to run");
    const answer = await answering;
    expect(answer).toMatchObject(unavailable);
    expect(answer.headers.get("retry-after")).toBe("2");
    expect(http.lines.at(-1)).toMatchObject({ level: 40, msg: "a request failed" });
  });

  test("is answered with 503 for stored keys and for statements", async () => {
    const away = openDb({ connection: { connectionString: `postgres://nobody@127.0.0.1:${await closedPort()}/x` } });
    const cut = await startHttp({
      db: away,
      routes: (server) => void server.get("/nonsense", { config }, () => away.rows(NONSENSE)),
    });
    try {
      const authorization = `Bearer mlr_${"A".repeat(43)}`;
      expect(await cut.send("/nonsense", { headers: { authorization } })).toMatchObject(unavailable);
      const answer = await cut.send("/nonsense");
      expect(answer).toMatchObject(unavailable);
      expect(answer.headers.get("retry-after")).toBe("2");
    } finally {
      await cut.stop();
      await away.close();
    }
  });

  async function closedPort(): Promise<number> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    return port;
  }
});
