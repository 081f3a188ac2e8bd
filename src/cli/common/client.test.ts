/** The client and everything that can fail, over real HTTP against servers that misbehave on purpose. */
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { signal } from "../../../test/until.ts";
import { createClient, pathTo } from "./client.ts";

async function serverThat(answers: RequestListener): Promise<string> {
  const server = createServer(answers).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const clientOf = (url: string, key?: string) =>
  createClient({ flags: { url }, env: key === undefined ? {} : { MILLRACE_KEY: key } });
const get = (url: string) => clientOf(url).call({ method: "GET", path: "api" });

describe("a call", () => {
  test("sends key, query, headers and body, below the configured URL", async () => {
    const seen: unknown[] = [];
    const url = await serverThat((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += String(chunk)));
      request.on("end", () => {
        const { authorization, "content-type": type, "idempotency-key": idempotencyKey } = request.headers;
        seen.push([request.method, request.url, authorization, type, idempotencyKey, body]);
        response.setHeader("millrace-version", "0.0.0").end('{"ok":true}');
      });
    });
    const client = clientOf(`${url}/behind/a-proxy`, "mlr_key");
    const reply = await client.call({
      method: "PUT",
      path: pathTo`files/${"a b/ü?#%.csv"}`,
      query: { q: "x&y", page: undefined, dry: true },
      headers: { "idempotency-key": "k 1" },
      body: { worker: 'w "1"', limit: undefined },
    });
    expect(reply).toEqual({ ok: true });
    await clientOf(url).call({ method: "GET", path: "plain" });
    expect(seen).toEqual([
      [
        "PUT",
        "/behind/a-proxy/files/a%20b%2F%C3%BC%3F%23%25.csv?q=x%26y&dry=true",
        "Bearer mlr_key",
        "application/json",
        "k 1",
        '{"worker":"w \\"1\\""}',
      ],
      ["GET", "/plain", undefined, undefined, undefined, ""],
    ]);
  });

  test("that is refused throws the server's message with its code", async () => {
    const url = await serverThat((_, response) => {
      response.writeHead(409).end('{"error":"The lease is not yours.","code":"LEASE_LOST","details":{"shard":3}}');
    });
    await expect(get(url)).rejects.toMatchObject({
      message: "The lease is not yours. [LEASE_LOST]",
      exitCode: 3,
      status: 409,
      body: { details: { shard: 3 } },
    });
  });

  test.each([
    [400, 2],
    [401, 5],
    [403, 5],
    [404, 4],
    [409, 3],
    [413, 2],
    [429, 6],
    [500, 1],
    [503, 6],
  ])("answered with %i exits with %i", async (status, exitCode) => {
    const url = await serverThat((_, response) => response.writeHead(status).end('{"error":"No.","code":"X"}'));
    await expect(get(url)).rejects.toMatchObject({ exitCode });
  });

  test("for something that does not exist exits with 4, whatever the status", async () => {
    const url = await serverThat((_, response) =>
      response.writeHead(400).end('{"error":"No.","code":"RUN_NOT_FOUND"}'),
    );
    await expect(get(url)).rejects.toMatchObject({ exitCode: 4 });
  });

  test("that gets no reply in time fails", async () => {
    const url = await serverThat(() => undefined);
    await expect(clientOf(url).call({ method: "GET", path: "slow", timeoutMs: 50 })).rejects.toMatchObject({
      message: expect.stringContaining("(no answer in time)"),
      exitCode: 6,
    });
  });

  test("can be aborted", async () => {
    const hangUp = new AbortController();
    const url = await serverThat(() => hangUp.abort());
    await expect(clientOf(url).call({ method: "GET", path: "x", signal: hangUp.signal })).rejects.toThrow("aborted");
  });
});

describe("a stream", () => {
  const streamOf = (url: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
    clientOf(url, "mlr_key").stream({ method: "GET", path: "stream", ...options });
  const TYPE = { "content-type": "text/event-stream; charset=utf-8" };

  test("yields an empty chunk when it is open, then text with whole characters, until the server ends it", async () => {
    const letter = Buffer.from("ü");
    let response: ServerResponse | undefined;
    const url = await serverThat((request, answer) => {
      expect(request.headers).toMatchObject({ accept: "text/event-stream", authorization: "Bearer mlr_key" });
      response = answer.writeHead(200, TYPE);
      answer.flushHeaders();
    });
    const pieces: string[] = [];
    for await (const piece of streamOf(url)) {
      pieces.push(piece);
      if (pieces.length === 1) response?.write(letter.subarray(0, 1));
      if (pieces.length === 2) response?.end(letter.subarray(1));
    }
    expect(pieces[0]).toBe("");
    expect(pieces.join("")).toBe("ü");
  });

  test("that is refused, or is not a stream, throws like a call", async () => {
    const refused = await serverThat((_, response) =>
      response.writeHead(400).end('{"error":"No run.","code":"RUN_NOT_FOUND"}'),
    );
    await expect(streamOf(refused).next()).rejects.toMatchObject({ message: "No run. [RUN_NOT_FOUND]", exitCode: 4 });
    const other = await serverThat((_, response) => response.setHeader("millrace-version", "0").end('{"ok":true}'));
    await expect(streamOf(other).next()).rejects.toMatchObject({ message: expect.stringContaining("is not Millrace") });
  });

  test("that is idle too long fails with a transient error", async () => {
    const url = await serverThat((_, response) => response.writeHead(200, TYPE).write("data: 1"));
    const read = async () => {
      for await (const piece of streamOf(url, { timeoutMs: 50 })) void piece;
    };
    await expect(read()).rejects.toMatchObject({
      message: expect.stringContaining("(no answer in time)"),
      exitCode: 6,
    });
  });

  test("that is slow but not idle continues", async () => {
    const url = await serverThat((_, response) => {
      response.writeHead(200, TYPE);
      let left = 6;
      const drip = setInterval(() => {
        left -= 1;
        if (left > 0) return response.write(":");
        clearInterval(drip);
        response.end(".");
      }, 100);
    });
    const pieces: string[] = [];
    for await (const piece of streamOf(url, { timeoutMs: 500 })) pieces.push(piece);
    expect(pieces.join("")).toBe(":::::.");
  });

  test("that breaks is a transient error", async () => {
    const url = await serverThat((_, response) => {
      response.writeHead(200, TYPE).write("data: 1", () => response.destroy());
    });
    const read = async () => {
      for await (const piece of streamOf(url)) void piece;
    };
    await expect(read()).rejects.toMatchObject({ exitCode: 6 });
  });

  test("closes its connection when its reader leaves, and can be aborted", async () => {
    const closed = signal();
    const url = await serverThat((_, response) => {
      response.writeHead(200, TYPE).write("data: 1");
      response.on("close", closed.resolve);
    });
    for await (const opened of streamOf(url)) if (opened === "") break;
    await closed.promise;
    const hangUp = new AbortController();
    const read = async () => {
      for await (const piece of streamOf(url, { signal: hangUp.signal })) if (piece !== "") hangUp.abort();
    };
    await expect(read()).rejects.toThrow("aborted");
  });
});

describe("a server that is not Millrace is reported:", () => {
  test("no server", async () => {
    const gone = createServer().listen(0, "127.0.0.1");
    await once(gone, "listening");
    const { port } = gone.address() as AddressInfo;
    gone.close();
    await expect(get(`http://127.0.0.1:${port}`)).rejects.toMatchObject({
      message:
        `No Millrace answers at http://127.0.0.1:${port}/ (ECONNREFUSED). ` +
        "Start one with `millrace serve`, or set MILLRACE_URL to where it runs.",
      exitCode: 6,
    });
  });

  test("another server", async () => {
    const url = await serverThat((_, response) => response.end("<html>"));
    await expect(get(url)).rejects.toMatchObject({
      message: expect.stringContaining("HTTP 200, not JSON"),
      exitCode: 1,
    });
  });

  test.each([
    ["a list", 200, "[]"],
    ["an object", 200, '{"items":[{"id":1}],"total":1}'],
    ["null", 200, "null"],
    ["an error of its own", 404, '{"detail":"Not Found"}'],
    ["an error that has only our field", 500, '{"error":"Internal Server Error"}'],
  ])("another server with JSON: %s", async (_, status, body) => {
    const url = await serverThat((_request, response) => response.writeHead(status).end(body));
    await expect(get(url)).rejects.toMatchObject({
      message: `The server at ${url}/ is not Millrace (HTTP ${status}, JSON without the header millrace-version). Check MILLRACE_URL.`,
      exitCode: 1,
    });
  });

  test("a gateway that answers with JSON of its own, a transient error", async () => {
    const url = await serverThat((_, response) => response.writeHead(503).end('{"message":"no healthy upstream"}'));
    await expect(get(url)).rejects.toMatchObject({ exitCode: 6 });
  });

  test("a gateway without its server, a transient error", async () => {
    const url = await serverThat((_, response) => response.writeHead(502).end("Bad Gateway"));
    await expect(get(url)).rejects.toMatchObject({ exitCode: 6 });
  });

  test("a redirect, which is not followed with the key", async () => {
    let calls = 0;
    const url = await serverThat((_, response) => {
      calls += 1;
      response.writeHead(301, { location: "https://elsewhere.example/" }).end();
    });
    await expect(get(url)).rejects.toMatchObject({
      message: expect.stringContaining("a redirect to https://elsewhere.example/"),
    });
    expect(calls).toBe(1);
  });
});

test("a URL with a password is refused, and the password is not shown", () => {
  expect(() => clientOf("http://user:secret@127.0.0.1:9")).toThrow(
    /^MILLRACE_URL contains a user or a password\. ((?!secret).)*$/,
  );
});

test("a value that cannot be a path segment is refused", () => {
  for (const value of ["", ".", ".."]) expect(() => pathTo`files/${value}`).toThrow(`\`${value}\` is not a name.`);
  expect(pathTo`files/${"..."}`).toBe("files/...");
});
