/** The bytes of bodies that a process holds: how many, for whom, and until when. */
import { EventEmitter, once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { createBytesInFlight } from "./bytes-in-flight.ts";

describe("bytes in flight", () => {
  const limits = { keyBytesMax: 10, bytesMax: 25 };

  test("are limited for each key, and free again when they are given back", () => {
    const bytes = createBytesInFlight(limits);
    const giveBack = bytes.take("a", 6);
    bytes.take("a", 4);
    expect(() => bytes.take("a", 1)).toThrow(
      expect.objectContaining({ code: "TOO_MANY_BYTES", status: 503, retryAfterSeconds: 1 }),
    );
    giveBack();
    giveBack(); // Has no effect.
    bytes.take("a", 6);
    expect(() => bytes.take("a", 1)).toThrow("this key");
    bytes.take("b", 10);
  });

  test("are limited in all", () => {
    const bytes = createBytesInFlight(limits);
    for (const key of ["a", "b"]) bytes.take(key, 10);
    const giveBack = bytes.take("c", 5);
    expect(() => bytes.take("d", 1)).toThrow("all callers together");
    giveBack();
    bytes.take("d", 5);
  });

  test("of one body are accepted whatever its size, if nothing else is there", () => {
    const bytes = createBytesInFlight(limits);
    const giveBack = bytes.take("a", 1_000);
    expect(() => bytes.take("a", 1)).toThrow("this key");
    expect(() => bytes.take("b", 1)).toThrow("all callers");
    giveBack();
    bytes.take("b", 1);
  });
});

describe("a request", () => {
  const database = useDatabase();
  const MEBIBYTE = 1_048_576;
  const LARGE = JSON.stringify("x".repeat(40 * MEBIBYTE)); // Two of them are more than a key may have.
  const [began, goOn] = [signal(), signal()];
  const bodies = new EventEmitter();
  let http: TestHttp;

  beforeAll(async () => {
    http = await startHttp({
      db: database.db,
      bodyLimitBytes: 100 * MEBIBYTE,
      routes: (server) => {
        server.addHook("preParsing", (_request, _reply, payload, done) => {
          done(null, payload);
          bodies.emit("expected");
        });
        server.post("/take", { config: { scope: "admin" } }, async () => ({}));
        server.post("/fail", { config: { scope: "admin" } }, async () => {
          throw new Error("on purpose");
        });
        server.post("/wait", { config: { scope: "admin" } }, async () => {
          began.resolve();
          await goOn.promise;
          return {};
        });
      },
    });
  });
  afterAll(() => http.stop());

  const statusOf = async (path: string) => (await http.send(path, { body: LARGE })).status;
  const taken = (whose: string) => until(async () => (await statusOf("/take")) === 200, `the bytes of ${whose}`);

  /** Sends the head of a request, and what there is of its body. Resolves when the server expects more. */
  async function begin(header: string, body = ""): Promise<Socket> {
    const socket = connect(http.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const head = `POST /take HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nContent-Type: application/json`;
    const expected = once(bodies, "expected");
    // Once all is written, the server has read all but what fits into the buffers of the connection.
    await new Promise((resolve) => void socket.write(`${head}\r\n${header}\r\n\r\n${body}`, resolve));
    await expected;
    return socket;
  }
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

  test("gives its bytes back when it is answered, when it fails and when its caller disconnects", async () => {
    expect([await statusOf("/take"), await statusOf("/fail"), await statusOf("/take")]).toEqual([200, 500, 200]);

    const control = new AbortController();
    const waiting = fetch(`${http.url}/wait`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
      body: LARGE,
      signal: control.signal,
    });
    waiting.catch(() => {});
    await began.promise;
    const refused = await http.send("/take", { body: LARGE });
    expect(refused).toMatchObject({ status: 503, body: { code: "TOO_MANY_BYTES" } });
    expect(refused.headers.get("retry-after")).toBe("1");
    control.abort();
    await taken("the one that disconnected");
    goOn.resolve();
  });

  test.each([
    ["holds the bytes that it declares before they come", `Content-Length: ${40 * MEBIBYTE}`, '"'],
    ["of unknown length holds the bytes that have come", "Transfer-Encoding: chunked", chunk(LARGE)],
  ])("%s, until its caller disconnects", async (_, header, body) => {
    const slow = await begin(header, body);
    expect(await statusOf("/take")).toBe(503);
    slow.destroy();
    await taken("the slow one");
  });

  test("of unknown length may have a body of any size if nothing else is there", async () => {
    const socket = await begin("Transfer-Encoding: chunked", chunk(LARGE.slice(0, -1)) + chunk(LARGE.slice(1)));
    socket.write("0\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("that declares more than its limit is refused at once and holds nothing", async () => {
    const socket = await begin(`Content-Length: ${101 * MEBIBYTE}`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /);
    expect(await statusOf("/take")).toBe(200);
  });
});
