import type { LookupAddress, lookup } from "node:dns";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createOutbound, type Outbound, OutboundRefused, publicOnly, shownUrl } from "./outbound.ts";

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

function outboundThat({ allowPrivate }: { allowPrivate: boolean }): Outbound {
  const outbound = createOutbound({ allowPrivate, setting: "ALLOW_PRIVATE" });
  cleanUps.push(() => outbound.close());
  return outbound;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return listen(server, () => server.closeAllConnections());
}

async function listen(server: Server, drop: () => void): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanUps.push(async () => {
    drop();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const never = new AbortController().signal;
const REQUEST = { method: "GET", headers: {}, timeoutMs: 10_000, bodyLimitBytes: 1_000, signal: never } as const;

describe("a request", () => {
  test("reaches the server unchanged, and returns the whole response", async () => {
    const host = await serve((request, response) => {
      response.writeHead(201, { "X-Twice": ["a", "b"], ETag: '"1"' });
      response.write(`${request.method} ${request.url} ${String(request.headers["x-mine"])} `);
      request.pipe(response);
    });
    const outbound = outboundThat({ allowPrivate: true });
    const url = `http://${host}/a%20b?c=d#e`;
    const answer = await outbound.request({ ...REQUEST, method: "POST", url, headers: { "x-mine": "1" }, body: "é" });
    expect(answer).toMatchObject({ status: 201, headers: { "x-twice": "a, b", etag: '"1"' }, truncated: false });
    expect(answer.body.toString()).toBe("POST /a%20b?c=d 1 é");
  });

  test("has a user agent and refuses compression, unless the caller sets these headers", async () => {
    const host = await serve(({ headers }, response) => {
      response.end(`${headers["user-agent"]} ${headers["accept-encoding"]}`);
    });
    const outbound = outboundThat({ allowPrivate: true });
    const ask = async (headers: Record<string, string>) =>
      (await outbound.request({ ...REQUEST, url: `http://${host}/`, headers })).body.toString();
    expect(await ask({})).toBe("millrace identity");
    expect(await ask({ "user-agent": "me" })).toBe("me identity");
  });

  test("sends the user and password of the URL as basic authentication", async () => {
    const host = await serve(({ headers }, response) => response.end(headers.authorization));
    const outbound = outboundThat({ allowPrivate: true });
    const url = `http://me%40home:p%3Aw@${host}/`;
    const answer = await outbound.request({ ...REQUEST, url });
    expect(answer.body.toString()).toBe(`Basic ${Buffer.from("me@home:p:w").toString("base64")}`);
    const own = await outbound.request({ ...REQUEST, url, headers: { authorization: "Bearer x" } });
    expect(own.body.toString()).toBe("Bearer x");
  });

  test("does not follow a redirect", async () => {
    const paths: unknown[] = [];
    const host = await serve((request, response) => {
      paths.push(request.url);
      response.writeHead(302, { location: "/elsewhere" }).end();
    });
    const answer = await outboundThat({ allowPrivate: true }).request({ ...REQUEST, url: `http://${host}/` });
    expect(answer).toMatchObject({ status: 302, headers: { location: "/elsewhere" } });
    expect(paths).toEqual(["/"]);
  });

  test("reads no more of a body than its limit", async () => {
    let closed: Promise<unknown> | undefined;
    const host = await serve((request, response) => {
      if (request.url === "/fits") return response.end("x".repeat(1_000));
      closed = once(response, "close");
      const more = () => {
        while (response.write("x".repeat(10_000)));
        response.once("drain", more);
      };
      more();
    });
    const outbound = outboundThat({ allowPrivate: true });
    const fits = await outbound.request({ ...REQUEST, url: `http://${host}/fits` });
    expect({ length: fits.body.length, truncated: fits.truncated }).toEqual({ length: 1_000, truncated: false });
    const endless = await outbound.request({ ...REQUEST, url: `http://${host}/endless` });
    expect({ length: endless.body.length, truncated: endless.truncated }).toEqual({ length: 1_000, truncated: true });
    await closed;
  });

  test.each([
    ["ftp://host/x", /^Only http and https URLs are allowed, and this one begins with ftp:$/],
    ["file:///etc/passwd", /begins with file:$/],
    ["/relative", /^The URL is not valid/],
    ["http://user:secret@ho st/", /^The URL is not valid/],
    ["http://us%er:secret@host/", /^The user or password in the URL has a %/],
  ])("to %s is refused without repeating it", async (url, sentence) => {
    const error = await outboundThat({ allowPrivate: true })
      .request({ ...REQUEST, url })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OutboundRefused);
    expect((error as Error).message).toMatch(sentence);
    expect((error as Error).message).not.toContain("secret");
  });

  test.each([
    { "x-mine": "two\r\nlines: secret" },
    { "x mine": "secret" },
    { expect: "secret" },
    { "content-length": "99" },
  ])("with invalid headers is refused: %j", async (headers) => {
    const host = await serve((_, response) => response.end());
    const request = { ...REQUEST, method: "POST", url: `http://${host}/`, headers, body: "x" } as const;
    const error = await outboundThat({ allowPrivate: true })
      .request(request)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OutboundRefused);
    expect((error as Error).message).not.toContain("secret");
  });
});

describe("the time-out", () => {
  const timeoutMs = 50;
  const message = "there was no complete answer within 50 ms";

  test("covers the wait for a connection", async () => {
    const sockets = new Set<Socket>();
    const server = createTcpServer((socket) => sockets.add(socket));
    const host = await listen(server, () => sockets.forEach((socket) => socket.destroy()));
    const outbound = outboundThat({ allowPrivate: true });
    await expect(outbound.request({ ...REQUEST, url: `https://${host}/`, timeoutMs })).rejects.toThrow(message);
  });

  test("covers the wait for a response", async () => {
    const host = await serve(() => {});
    const outbound = outboundThat({ allowPrivate: true });
    await expect(outbound.request({ ...REQUEST, url: `http://${host}/`, timeoutMs })).rejects.toThrow(message);
  });

  test("covers a slow body", async () => {
    const host = await serve((_, response) => {
      const timer = setInterval(() => response.write("."), 5);
      response.once("close", () => clearInterval(timer));
    });
    const outbound = outboundThat({ allowPrivate: true });
    await expect(outbound.request({ ...REQUEST, url: `http://${host}/`, timeoutMs })).rejects.toThrow(message);
  });
});

describe("the signal", () => {
  test("ends an exchange with its reason and closes the connection", async () => {
    const stop = new AbortController();
    let closed: Promise<unknown> | undefined;
    const host = await serve((_, response) => {
      closed = once(response, "close");
      stop.abort(new Error("stopped by someone"));
    });
    const request = { ...REQUEST, url: `http://${host}/`, signal: stop.signal };
    await expect(outboundThat({ allowPrivate: true }).request(request)).rejects.toThrow("stopped by someone");
    await closed;
  });

  test("that is already aborted prevents the request", async () => {
    let requests = 0;
    const host = await serve((_, response) => {
      requests += 1;
      response.end();
    });
    const request = { ...REQUEST, url: `http://${host}/`, signal: AbortSignal.abort(new Error("too late")) };
    await expect(outboundThat({ allowPrivate: true }).request(request)).rejects.toThrow("too late");
    expect(requests).toBe(0);
  });
});

describe("the guard", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1"],
    ["2130706433", "127.0.0.1"],
    ["0x7f.1", "127.0.0.1"],
    ["0177.0.0.1", "127.0.0.1"],
    ["127.0.0.1.", "127.0.0.1"],
    ["１２７.0.0.1", "127.0.0.1"],
    ["0", "0.0.0.0"],
    ["10.0.0.5", "10.0.0.5"],
    ["169.254.169.254", "169.254.169.254"],
    ["[::1]", "::1"],
    ["[::]", "::"],
    ["[::ffff:127.0.0.1]", "::ffff:7f00:1"],
    ["[64:ff9b::7f00:1]", "64:ff9b::7f00:1"],
    ["[fd00:ec2::254]", "fd00:ec2::254"],
  ])("refuses http://%s", async (host, address) => {
    const outbound = outboundThat({ allowPrivate: false });
    for (const scheme of ["http", "https"]) {
      const error = await outbound
        .request({ ...REQUEST, url: `${scheme}://${host}:9/` })
        .catch((thrown: unknown) => thrown);
      expect(error).toEqual(
        new OutboundRefused(`${address} is not a public address; set ALLOW_PRIVATE=true to permit it.`),
      );
    }
  });

  test("refuses a name that resolves to such an address, on every request, unless private addresses are permitted", async () => {
    let requests = 0;
    const host = await serve((_, response) => {
      requests += 1;
      response.end();
    });
    const url = `http://${host.replace("127.0.0.1", "localhost")}/`;
    const guarded = outboundThat({ allowPrivate: false });
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      const error = await guarded.request({ ...REQUEST, url }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OutboundRefused);
      expect((error as Error).message).toMatch(
        /^localhost resolves to .*127\.0\.0\.1.*, which is not a public address; /,
      );
    }
    expect(requests).toBe(0);
    await outboundThat({ allowPrivate: true }).request({ ...REQUEST, url });
    expect(requests).toBe(1);
  });
});

describe("publicOnly", () => {
  const finding = (...addresses: string[]) =>
    ((_name: string, _options: object, callback: (error: null, found: LookupAddress[]) => void) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      )) as unknown as typeof lookup;

  const resolve = (name: string, options: { all?: boolean }, resolver: typeof lookup) =>
    new Promise<unknown>((found, failed) => {
      publicOnly(resolver, "ALLOW_PRIVATE")(name, options, (error, ...result) =>
        error ? failed(error) : found(result),
      );
    });

  test("keeps the public addresses of a name that has others as well", async () => {
    const mixed = finding("10.0.0.5", "1.1.1.1", "::1", "2606:4700::1");
    expect(await resolve("mixed.test", { all: true }, mixed)).toEqual([
      [
        { address: "1.1.1.1", family: 4 },
        { address: "2606:4700::1", family: 6 },
      ],
    ]);
    expect(await resolve("mixed.test", {}, mixed)).toEqual(["1.1.1.1", 4]);
  });

  test("refuses a name that has none, and names what it resolves to", async () => {
    await expect(resolve("db.test", { all: true }, finding("10.0.0.5", "::ffff:1.1.1.1"))).rejects.toEqual(
      new OutboundRefused(
        "db.test resolves to 10.0.0.5, ::ffff:1.1.1.1, which is not a public address; " +
          "set ALLOW_PRIVATE=true to permit it.",
      ),
    );
  });
});

test("shownUrl omits the parts that may be secret", () => {
  expect(shownUrl("https://me:secret@host:8443/a/b?token=secret#secret")).toBe("https://host:8443/a/b");
  expect(shownUrl("http://me:secret@ho st/")).toBe("(no valid URL)");
});
