import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { SELF_SIGNED } from "../../../test/self-signed.ts";
import { type Fault, startTrino, type TestTrino } from "../../../test/trino-server.ts";
import { until } from "../../../test/until.ts";
import { type Engine, EngineRefusal, type Engines, type QueryOptions } from "../engine.ts";
import { createEngines } from "../engines.ts";
import type { TrinoSettings } from "../settings.ts";

const PASSWORD = "correct horse";
const BASIC = `Basic ${Buffer.from(`etl:${PASSWORD}`).toString("base64")}`;
const ENDLESS = "select count(*) as n from generate_series(1, 100000000000) as t(i) where i % 3 = 7";

const database = useDatabase();
let trino: TestTrino;
let opened: Engines[] = [];
beforeEach(async () => {
  trino = await startTrino({ connection: database.connection });
});
afterEach(async () => {
  await Promise.all(opened.map((engines) => engines.close()));
  opened = [];
  await trino.stop();
});

function open(settings: Partial<TrinoSettings> = {}): Engine {
  const engines = createEngines(
    { warehouse: { kind: "trino", url: trino.url, user: "etl", ...settings } },
    { lakeDir: undefined },
  );
  opened.push(engines);
  return engines.get("warehouse");
}

const query = (engine: Engine, sql: string, options: Partial<QueryOptions> = {}) =>
  engine.query(sql, { signal: new AbortController().signal, rowsMax: 10_000, ...options });
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const status =
  (code: number): Fault =>
  (response) =>
    void response.writeHead(code, { location: "http://127.0.0.1:1/" }).end("not now");
const hangUp: Fault = (response) => void response.socket?.destroy();
const methods = () => trino.requests.map(({ method }) => method);

describe("a session", () => {
  test("sends user, source and time zone, with the statement only", async () => {
    await query(open({ catalog: "hive", schema: "sales" }), "select 1 as a");
    const [first, ...others] = trino.requests;
    expect(first).toMatchObject({ method: "POST", path: "/v1/statement", body: "select 1 as a" });
    expect(first?.headers).toMatchObject({
      "x-trino-user": "etl",
      "x-trino-catalog": "hive",
      "x-trino-schema": "sales",
      "x-trino-source": "millrace",
      "x-trino-time-zone": "UTC",
      "x-trino-client-capabilities": "PARAMETRIC_DATETIME",
    });
    expect(first?.headers.authorization).toBeUndefined();
    expect(others.every(({ method, headers }) => method === "GET" && !("x-trino-user" in headers))).toBe(true);
  });

  test.each([
    ["a password", { password: PASSWORD }, BASIC],
    ["a token", { token: "header.body.signature" }, "Bearer header.body.signature"],
  ])("may log in with %s, at every request", async (_, settings, authorization) => {
    await trino.stop();
    trino = await startTrino({ connection: database.connection, authorization });
    expect((await query(open(settings), "select 1 as a")).rows).toEqual([{ a: 1 }]);
    expect(new Set(trino.requests.map(({ headers }) => headers.authorization))).toEqual(new Set([authorization]));
  });

  test("with a login that is not accepted may be retried, and the error does not contain the login", async () => {
    await trino.stop();
    trino = await startTrino({ connection: database.connection, authorization: BASIC });
    const failure = await failureOf(query(open({ password: "SECRET" }), "select 1"));
    expect(String(failure)).toContain(
      "with status 401: Access Denied: Invalid credentials. It does not accept the login from the engine's settings.",
    );
    expect(failure).not.toBeInstanceOf(EngineRefusal);
    expect(JSON.stringify([String(failure), failure])).not.toMatch(/SECRET|U0VDUkVU/);
  });

  test.each([
    ["text on several lines", "text/plain", "Access Denied:\n no such user.", ": Access Denied: no such user. It"],
    ["a login that is repeated", "text/plain", "SECRET is wrong", ": *** is wrong. It"],
    ["a page of HTML", "text/html; charset=utf-8", "<html>Sign in</html>", ". It"],
    ["nothing", "text/plain", "", ". It"],
  ])("with a login that is not accepted shows the reason: %s", async (_, type, body, shown) => {
    trino.disturb("POST", (response) => void response.writeHead(403, { "content-type": type }).end(body));
    const failure = await failureOf(query(open({ password: "SECRET" }), "select 1"));
    expect(String(failure)).toContain(`with status 403${shown} does not accept the login`);
  });

  test("has the properties of the settings", async () => {
    const session = { query_max_run_time: "30m", "hive.target_max_file_size": "1GB, =", spill_enabled: true, n: 5 };
    await query(open({ session }), "select 1");
    expect(trino.requests[0]?.headers["x-trino-session"]).toBe(
      "query_max_run_time=30m,hive.target_max_file_size=1GB%2C%20%3D,spill_enabled=true,n=5",
    );
    await query(open(), "select 1");
    expect(trino.requests.at(-1)?.headers["x-trino-session"]).toBeUndefined();
  });

  test("trusts a private authority only where its certificate is in the settings", async () => {
    await trino.stop();
    trino = await startTrino({ connection: database.connection, tls: SELF_SIGNED });
    const folder = await mkdtemp(join(tmpdir(), "millrace-ca-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const ca = join(folder, "ca.pem");
    expect(String(await failureOf(query(open(), "select 1")))).toContain("self-signed certificate");
    expect(String(await failureOf(query(open({ ca }), "select 1")))).toContain(`names ${ca}, which cannot be read`);
    await writeFile(ca, SELF_SIGNED.key);
    const failure = await failureOf(query(open({ ca }), "select 1"));
    expect(failure).toBeInstanceOf(EngineRefusal);
    expect(String(failure)).toContain(
      `The \`ca\` of the engine \`warehouse\` in millrace.yaml names ${ca}, which has no`,
    );
    await writeFile(ca, `The authority of this test\n${SELF_SIGNED.cert}`);
    expect((await query(open({ ca }), "select 1 as a")).rows).toEqual([{ a: 1 }]);
  });

  test("may have a base path", async () => {
    const failure = await failureOf(query(open({ url: `${trino.url}/gateway/` }), "select 1"));
    expect(String(failure)).toContain(`${trino.url}/gateway/v1/statement with status 404`);
  });
});

describe("a server that is busy", () => {
  test("is retried", async () => {
    trino.disturb("POST", status(503), status(429));
    trino.disturb("GET", status(502), status(503), status(504), hangUp);
    expect((await query(open(), "select 1 as a")).rows).toEqual([{ a: 1 }]);
    expect(methods().filter((method) => method === "POST")).toHaveLength(3);
  });

  test("loses and repeats no row when a reply is lost", async () => {
    trino.disturb("GET", hangUp, hangUp, hangUp);
    const { rows } = await query(open(), "select generate_series(1, 4000) as i");
    expect(rows.map(({ i }) => i)).toEqual(Array.from({ length: 4_000 }, (_, index) => index + 1));
  });

  test.each([
    ["502", status(502)],
    ["504", status(504)],
    ["a broken connection", hangUp],
  ])("is not given a statement twice that it may have begun: %s", async (_, fault) => {
    trino.disturb("POST", fault);
    const failure = await failureOf(query(open(), "select 1"));
    expect(failure).toBeInstanceOf(Error);
    expect(failure).not.toBeInstanceOf(EngineRefusal);
    expect(methods()).toEqual(["POST"]);
  });

  test("does not keep a health check waiting", async () => {
    trino.disturb("POST", status(503));
    await expect(open().health()).rejects.toThrow("with status 503: not now.");
    expect(methods()).toEqual(["POST"]);
  });

  test("is not retried after an abort", async () => {
    trino.disturb("POST", ...Array.from({ length: 9 }, () => status(503)));
    const abort = new AbortController();
    const waiting = failureOf(query(open(), "select 1", { signal: abort.signal }));
    await until(() => methods().length >= 2, "a second try");
    const reason = new Error("stop");
    abort.abort(reason);
    expect(await waiting).toBe(reason);
  });
});

describe("a server that restarts", () => {
  const failing =
    (errorName: string, message: string): Fault =>
    (response) => {
      const error = { message, errorName, errorType: "INTERNAL_ERROR" };
      response.end(JSON.stringify({ id: "q", error, stats: { state: "FAILED" } }));
    };
  const starting = failing("SERVER_STARTING_UP", "Trino server is still initializing");
  const insert = "insert into counted values (1)";

  test("gets the statement when it is up: it answers that it starts", async () => {
    trino.disturb("POST", starting, starting);
    trino.disturb("GET", starting);
    expect((await query(open(), "select 1 as a")).rows).toEqual([{ a: 1 }]);
    expect(methods().filter((method) => method === "POST")).toHaveLength(4);
    await query(open(), "create table counted (a int)");
    trino.disturb("POST", starting);
    expect(await query(open(), insert)).toMatchObject({ rowCount: 1 });
  });

  test("gets the statement when it is up: it accepts no connection, and then knows no addresses", async () => {
    const engine = open();
    await query(engine, "select 1");
    const { url } = trino;
    await trino.stop();
    await until(
      async () => /ECONNREFUSED/.test(String(await failureOf(engine.health()))),
      "the end of its connections",
    );
    const waiting = query(engine, "select 2 as a");
    trino = await startTrino({ connection: database.connection, port: Number(new URL(url).port) });
    trino.disturb("POST", status(404));
    expect((await waiting).rows).toEqual([{ a: 2 }]);
  });

  test.each([
    ["NO_NODES_AVAILABLE", "No nodes available to run query"],
    ["GENERIC_INTERNAL_ERROR", "nodes is empty"],
  ])("gets what reads when it has a worker: %s", async (errorName, message) => {
    trino.disturb("GET", failing(errorName, message));
    expect((await query(open(), "select 1 as a")).rows).toEqual([{ a: 1 }]);
    trino.disturb("GET", failing(errorName, message));
    expect(String(await failureOf(query(open(), insert)))).toContain(`${errorName}: ${message}`);
  });

  test("gets what reads once more when it has lost it", async () => {
    trino.disturb("GET", status(404));
    expect((await query(open(), "select 1 as a")).rows).toEqual([{ a: 1 }]);
    trino.disturb("GET", status(404), status(404));
    const failure = await failureOf(query(open(), "select 1 as a"));
    expect(String(failure)).toContain("with status 404: not now. It was probably restarted.");
    expect(failure).not.toBeInstanceOf(EngineRefusal);
  });

  test("gets nothing again that may have changed something, or has given rows", async () => {
    trino.disturb("GET", status(404));
    expect(String(await failureOf(query(open(), insert)))).toContain("It was probably restarted.");
    expect(methods()).toEqual(["POST", "GET", "DELETE"]);
    const rows = open().stream("select generate_series(1, 50000) as i", {
      signal: new AbortController().signal,
      rowsMax: 100_000,
    });
    const all = async () => {
      for await (const _ of rows) trino.disturb("GET", status(404));
    };
    const failure = await failureOf(all());
    expect(String(failure)).toContain("It was probably restarted.");
    expect(methods().filter((method) => method === "POST")).toHaveLength(2);
  });

  test("is not waited for where the URL is wrong from the beginning", async () => {
    const failure = await failureOf(query(open({ url: `${trino.url}/gateway` }), "select 1"));
    expect(String(failure)).toContain("/gateway/v1/statement with status 404");
    expect(methods()).toEqual(["POST"]);
  });
});

describe("a query that is aborted", () => {
  test("is cancelled on the server", async () => {
    const abort = new AbortController();
    const endless = failureOf(query(open(), ENDLESS, { signal: abort.signal }));
    await until(() => trino.running().length === 1, "the query");
    const reason = new Error("stop");
    abort.abort(reason);
    expect(await endless).toBe(reason);
    expect(trino.cancelled).toEqual([ENDLESS]);
    expect(trino.running()).toEqual([]);
  });

  test("is cancelled even before its statement was answered", async () => {
    const abort = new AbortController();
    const reason = new Error("stop");
    trino.rewriteNextUri((uri) => {
      abort.abort(reason);
      return uri;
    });
    expect(await failureOf(query(open(), ENDLESS, { signal: abort.signal }))).toBe(reason);
    expect(methods()).toEqual(["POST", "DELETE"]);
    expect(trino.cancelled).toEqual([ENDLESS]);
  });

  test("is cancelled when it has too many rows, or enough", async () => {
    const engine = open();
    const sql = "select generate_series(1, 100000) as i";
    expect(await query(engine, sql, { rowsMax: 10 })).toMatchObject({ rowCount: 10, truncated: true });
    expect(trino.cancelled).toEqual([sql]);
    const rows = engine.stream(sql, { signal: new AbortController().signal, rowsMax: 2_000 });
    const all = async () => {
      for await (const _ of rows);
    };
    await expect(all()).rejects.toThrow("more than 2000 rows");
    expect(trino.cancelled).toEqual([sql, sql]);
  });

  test("ends here also when the server does not answer", async () => {
    trino.disturb("DELETE", hangUp);
    const failure = failureOf(query(open(), ENDLESS, { timeoutMs: 200 }));
    expect(String(await failure)).toContain("longer than its limit of 0.2 s");
  });
});

describe("an address on another server", () => {
  test("is not followed, and the login does not go there", async () => {
    const asked: unknown[] = [];
    const otherServer = createServer((request, response) => {
      asked.push(request.headers);
      response.end("{}");
    });
    await new Promise<void>((resolve) => otherServer.listen(0, "127.0.0.1", resolve));
    const elsewhere = `http://127.0.0.1:${(otherServer.address() as AddressInfo).port}`;
    trino.rewriteNextUri((uri) => uri.replace(trino.url, elsewhere));
    const failure = await failureOf(query(open({ password: PASSWORD }), "select 1"));
    expect(String(failure)).toContain(`names ${elsewhere}/v1/statement/queued/`);
    expect(String(failure)).toContain("which is another server, so no request was sent there");
    expect(failure).not.toBeInstanceOf(EngineRefusal);
    expect(asked).toEqual([]);
    otherServer.close();
  });

  test("is not followed through a redirect either", async () => {
    trino.disturb("POST", status(307));
    expect(String(await failureOf(query(open(), "select 1")))).toContain("with status 307");
    trino.disturb("GET", status(302));
    expect(String(await failureOf(query(open(), "select 1")))).toContain("with status 302");
  });
});

describe("a failure", () => {
  const failing =
    (error: Record<string, string>): Fault =>
    (response) =>
      void response.end(JSON.stringify({ id: "q", error, stats: { state: "FAILED" } }));

  test("of the SQL is a refusal in Trino's words", async () => {
    trino.disturb("POST", failing({ message: "line 1:8: Column 'x' cannot be resolved", errorType: "USER_ERROR" }));
    await expect(query(open(), "select x")).rejects.toThrow(
      new EngineRefusal("line 1:8: Column 'x' cannot be resolved"),
    );
  });

  test("of the SQL names the place in the SQL that was given", async () => {
    const sql = "select $text,\n  $text, no_such_column";
    await expect(query(open(), sql, { params: { text: "two\nlines" } })).rejects.toThrow(
      new EngineRefusal('line 2:10: column "no_such_column" does not exist'),
    );
  });

  test("names the query and not its slug, which opens its result", async () => {
    trino.disturb("GET", status(500));
    const failure = String(await failureOf(query(open(), "select 1")));
    const [, , , , id = "", slug = ""] = trino.requests.at(-1)?.path.split("/") ?? [];
    expect(slug).toMatch(/^y\w{32}$/);
    expect(failure).toContain(`/v1/statement/queued/${id} with status 500`);
    expect(failure).not.toContain(slug);
  });

  test.each([
    ["INTERNAL_ERROR", "REMOTE_TASK_ERROR"],
    ["INSUFFICIENT_RESOURCES", "CLUSTER_OUT_OF_MEMORY"],
    ["EXTERNAL", "HIVE_METASTORE_ERROR"],
    ["USER_ERROR", "ADMINISTRATIVELY_KILLED"],
  ])("of type %s, %s, may pass", async (errorType, errorName) => {
    trino.disturb("POST", failing({ message: "no luck", errorType, errorName }));
    const failure = await failureOf(query(open(), "select 1"));
    expect(failure).toEqual(new Error(`Trino failed with ${errorName}: no luck`));
    expect(failure).not.toBeInstanceOf(EngineRefusal);
  });

  test("to understand the reply is reported", async () => {
    for (const body of ["<html>Log in</html>", "[]", "{}", ""]) {
      trino.disturb("POST", (response) => void response.end(body));
      expect(String(await failureOf(query(open(), "select 1")))).toContain(
        "Does the `url` of the engine point to a Trino server?",
      );
    }
  });

  test("to reach the server makes the engine unhealthy until the server is back", async () => {
    const engine = open();
    trino.disturb("POST", hangUp);
    await expect(engine.health()).rejects.toThrow();
    await engine.health();
  });
});
