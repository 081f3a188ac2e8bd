import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { answerWith, failureOf, outboundThat, REQUEST, serve } from "./outbound.fixture.ts";
import type { Outbound, OutboundRequest } from "./outbound.ts";

const TEXT = "half a line of text, ".repeat(40);
const ASK = { ...REQUEST, decompress: true };
const MEBIBYTE = 1_048_576;

async function read(
  outbound: Outbound,
  host: string,
  request: Omit<OutboundRequest, "url"> = ASK,
): Promise<{ length: number; error: unknown }> {
  const { body } = await outbound.open({ ...request, url: `http://${host}/` });
  let length = 0;
  try {
    for await (const chunk of body) length += chunk.length;
  } catch (error) {
    return { length, error };
  }
  return { length, error: undefined };
}

describe("a compressed body", () => {
  test.each([
    ["gzip", gzipSync(TEXT)],
    ["GZIP", gzipSync(TEXT)],
    ["x-gzip", gzipSync(TEXT)],
    ["deflate", deflateSync(TEXT)],
    ["deflate", deflateRawSync(TEXT)],
    ["br", brotliCompressSync(TEXT)],
    ["identity", Buffer.from(TEXT)],
    ["gzip", Buffer.concat([gzipSync(TEXT.slice(0, 100)), gzipSync(TEXT.slice(100))])],
  ])("is asked for and decompressed: %s", async (encoding, body) => {
    const accepted: unknown[] = [];
    const host = await serve((request, response) => {
      accepted.push(request.headers["accept-encoding"]);
      response.writeHead(200, { "content-encoding": encoding, "content-length": body.length });
      for (const byte of body) response.write(Buffer.from([byte]));
      response.end();
    });
    const answer = await outboundThat({}).request({ ...ASK, url: `http://${host}/` });
    expect(answer.body.toString()).toBe(TEXT);
    expect(accepted).toEqual(["gzip, deflate, br"]);
    expect(answer).toMatchObject({ truncated: false, headers: { "content-encoding": encoding } });
  });

  test("is left as it is, unless the caller asks for more", async () => {
    const host = await serve((_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end("as it is"));
    expect((await outboundThat({}).request({ ...REQUEST, url: `http://${host}/` })).body.toString()).toBe("as it is");
  });

  test("may be empty, and has none after HEAD", async () => {
    const host = await serve((_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end());
    for (const method of ["GET", "HEAD"]) {
      const answer = await outboundThat({}).request({ ...ASK, method, url: `http://${host}/` });
      expect(answer.body.length).toBe(0);
    }
  });

  test.each([
    ["gzip", Buffer.from("not compressed"), /^the body is not complete gzip: incorrect header check$/],
    ["br", Buffer.from("not compressed"), /^the body is not complete br: /],
    ["zstd", Buffer.from("x"), /^the content-encoding of the body is zstd, and only gzip, deflate, br can be read$/],
    ["gzip, br", Buffer.from("x"), /^the content-encoding of the body is gzip, br, and only/],
  ])("that is not what it says is an error: %s", async (encoding, body, message) => {
    const host = await serve((_, response) => response.writeHead(200, { "content-encoding": encoding }).end(body));
    const failure = await failureOf(outboundThat({}).request({ ...ASK, url: `http://${host}/` }));
    expect(failure).toMatchObject({ reason: "unreadable", sent: true });
    expect(failure.message).toMatch(message);
  });
});

describe("the limits of a body", () => {
  test.each([
    ["gzip", gzipSync(Buffer.alloc(64 * MEBIBYTE))],
    ["br", brotliCompressSync(Buffer.alloc(64 * MEBIBYTE))],
  ])("end what decompresses to more, after as many bytes as are permitted: %s", async (encoding, bomb) => {
    const host = await serve((_, response) => response.writeHead(200, { "content-encoding": encoding }).end(bomb));
    const limits = { ...ASK, bodyLimitBytes: MEBIBYTE, wireLimitBytes: bomb.length };
    const failure = { message: "the decompressed body is larger than 1048576 bytes", reason: "too-large", sent: true };
    expect(await read(outboundThat({}), host, limits)).toEqual({
      length: MEBIBYTE,
      error: expect.objectContaining(failure),
    });
    expect(await failureOf(outboundThat({}).request({ ...limits, url: `http://${host}/` }))).toMatchObject(failure);
  });

  test("end what is received without end and decompresses to nothing", async () => {
    const nothing = gzipSync("");
    const closed: Promise<unknown>[] = [];
    const host = await serve((_, response) => {
      closed.push(once(response, "close"));
      response.writeHead(200, { "content-encoding": "gzip" });
      const more = () => {
        while (response.write(nothing));
        response.once("drain", more);
      };
      more();
    });
    const failure = await failureOf(
      outboundThat({}).request({ ...ASK, url: `http://${host}/`, wireLimitBytes: 50_000 }),
    );
    expect(failure).toMatchObject({ message: "the compressed body is larger than 50000 bytes", reason: "too-large" });
    await Promise.all(closed);
  });

  test("hold for a body that is not compressed, whatever was asked for", async () => {
    const host = await serve((_, response) => response.end("x".repeat(1_001)));
    const outbound = outboundThat({});
    const failure = { message: "the body is larger than 1000 bytes", reason: "too-large" };
    expect(await read(outbound, host)).toMatchObject({ length: 1_000, error: failure });
    expect(await read(outbound, host, { ...ASK, decompress: false })).toMatchObject({ length: 1_000, error: failure });
    expect(await failureOf(outbound.request({ ...ASK, url: `http://${host}/` }))).toMatchObject(failure);
  });
});

describe("a body that ends early is an error, not a short body:", () => {
  const part = gzipSync(TEXT).subarray(0, 30);
  const rest = "x".repeat(10);

  test.each([
    ["fewer bytes than its length", "HTTP/1.1 200 OK\r\ncontent-length: 100", rest],
    ["fewer bytes than its length, closing", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 100", rest],
    ["no last chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked", "5\r\nabcde\r\n"],
    ["no last chunk, closing", "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked", "5\r\nabcde\r\n"],
    ["gzip without its end", `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${part.length}`, part],
    ["gzip without its end, closing", "HTTP/1.1 200 OK\r\ncontent-encoding: gzip", part],
    ["brotli without its end", "HTTP/1.1 200 OK\r\ncontent-encoding: br", brotliCompressSync(TEXT).subarray(0, 30)],
  ])("%s", async (_, head, body) => {
    const host = await answerWith(head, body, (socket) => socket.end());
    expect(await failureOf(outboundThat({}).request({ ...ASK, url: `http://${host}/` }))).toMatchObject({
      name: "OutboundFailed",
      reason: "incomplete",
      sent: true,
    });
  });

  test.each([
    ["a reset", "HTTP/1.1 200 OK\r\ncontent-length: 100"],
    ["a reset where the end of the connection is the end of the body", "HTTP/1.1 200 OK\r\nconnection: close"],
    ["a reset of a compressed body", "HTTP/1.1 200 OK\r\ncontent-encoding: gzip"],
  ])("%s", async (_, head) => {
    const reset = new EventEmitter();
    const body = head.includes("gzip") ? part : rest;
    const host = await answerWith(head, body, (socket) => reset.once("now", () => socket.resetAndDestroy()));
    const answer = await outboundThat({}).open({ ...ASK, decompress: false, url: `http://${host}/` });
    const chunks: Buffer[] = [];
    const reading = (async () => {
      for await (const chunk of answer.body) {
        chunks.push(chunk);
        reset.emit("now");
      }
    })();
    expect(await failureOf(reading)).toMatchObject({ name: "OutboundFailed", reason: "incomplete", sent: true });
    expect(Buffer.concat(chunks).length).toBe(body.length);
  });
});

describe("an open answer", () => {
  /** Sends without end, as long as someone reads. */
  async function endless(): Promise<{ host: string; closed: Promise<unknown> }> {
    const opened = new EventEmitter();
    const closed = once(opened, "closed");
    const host = await serve((_, response) => {
      response.once("close", () => opened.emit("closed"));
      const chunk = gzipSync(randomBytes(65_536));
      response.writeHead(200, { "content-encoding": "gzip" });
      const more = () => {
        while (response.write(chunk));
        response.once("drain", more);
      };
      more();
    });
    return { host, closed };
  }
  const LARGE = { ...ASK, bodyLimitBytes: 1_000 * MEBIBYTE };

  test("has its head before its body", async () => {
    const steps = new EventEmitter();
    const host = await serve((_, response) => {
      response.writeHead(201, { "x-mine": "1" }).flushHeaders();
      steps.once("body", () => response.end("body"));
    });
    const { body, ...head } = await outboundThat({}).open({ ...ASK, url: `http://${host}/` });
    expect(head).toMatchObject({ status: 201, headers: { "x-mine": "1" } });
    steps.emit("body");
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("body");
  });

  test("comes whole, also if it is large and its reader slow", async () => {
    const large = randomBytes(4 * MEBIBYTE);
    const host = await serve((_, response) => response.end(large));
    const { body } = await outboundThat({}).open({ ...LARGE, url: `http://${host}/` });
    const chunks: Buffer[] = [];
    for await (const chunk of body) {
      chunks.push(chunk);
      await setImmediate();
    }
    expect(Buffer.concat(chunks).equals(large)).toBe(true);
  });

  test.each([true, false])("closes the connection when its reader stops (decompressing: %s)", async (decompress) => {
    const { host, closed } = await endless();
    const { body } = await outboundThat({}).open({ ...LARGE, decompress, url: `http://${host}/` });
    for await (const _ of body) break;
    await closed;
  });

  test("closes the connection when it is not read at all", async () => {
    const { host, closed } = await endless();
    const { close } = await outboundThat({}).open({ ...LARGE, url: `http://${host}/` });
    close();
    await closed;
  });

  test.each(["aborted", "closed"] as const)("that was %s before it is read has no short body", async (how) => {
    const host = await serve((_, response) => response.write("begun"));
    const stop = new AbortController();
    const { body, close } = await outboundThat({}).open({ ...ASK, url: `http://${host}/`, signal: stop.signal });
    if (how === "aborted") stop.abort(new Error("stopped by someone"));
    else close();
    await setImmediate();
    const reading = (async () => {
      for await (const _ of body);
    })();
    const failure = how === "aborted" ? { message: "stopped by someone" } : { reason: "incomplete", sent: true };
    expect(await failureOf(reading)).toMatchObject(failure);
  });

  test("ends with the reason of the signal, and by the time-out of the whole exchange", async () => {
    const { host, closed } = await endless();
    const stop = new AbortController();
    const { body } = await outboundThat({}).open({ ...LARGE, url: `http://${host}/`, signal: stop.signal });
    const drain = async (chunks: AsyncIterable<Buffer>) => {
      for await (const _ of chunks) stop.abort(new Error("stopped by someone"));
    };
    await expect(drain(body)).rejects.toThrow("stopped by someone");
    await closed;

    const slow = await serve((_, response) => response.write("begun"));
    const timed = await outboundThat({}).open({ ...ASK, url: `http://${slow}/`, timeoutMs: 100 });
    expect(await failureOf(drain(timed.body))).toMatchObject({
      message: "there was no complete answer within 100 ms",
      reason: "timeout",
      sent: true,
    });
  });
});
