import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import {
  failureOf,
  outboundThat,
  REQUEST,
  serve,
  serveTcp,
  serveTls,
  UNTIMED,
  unusedHost,
} from "./outbound.fixture.ts";
import { OutboundRefused, shownUrl } from "./outbound.ts";

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

  test("returns the response that follows an interim one", async () => {
    const host = await serve((_, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" }, () => response.end("here"));
    });
    const answer = await outboundThat({}).request({ ...REQUEST, url: `http://${host}/` });
    expect(answer).toMatchObject({ status: 200, body: Buffer.from("here") });
    expect(answer.headers).not.toHaveProperty("link");
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
    const host = await serveTcp(() => {});
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

describe("the connect time-out", () => {
  test("ends the wait for a connection, before anything is sent", async () => {
    const host = await serveTcp(() => {});
    const request = { ...UNTIMED, url: `https://${host}/`, connectTimeoutMs: 50 };
    expect(await failureOf(outboundThat({}).request(request))).toMatchObject({
      message: "there was no connection within 50 ms",
      reason: "timeout",
      sent: false,
    });
  });
});

describe("the read time-out", () => {
  const request = { ...UNTIMED, readTimeoutMs: 50 };
  const failure = { message: "nothing was received for 50 ms", reason: "timeout", sent: true };

  test("ends the wait for headers", async () => {
    const host = await serve(() => {});
    expect(await failureOf(outboundThat({}).request({ ...request, url: `http://${host}/` }))).toMatchObject(failure);
  });

  test("ends the wait for more of a body", async () => {
    const host = await serve((_, response) => response.write("begun"));
    const { status, body } = await outboundThat({}).open({ ...request, url: `http://${host}/` });
    expect(status).toBe(200);
    const chunks: string[] = [];
    const read = async () => {
      for await (const chunk of body) chunks.push(chunk.toString());
    };
    expect(await failureOf(read())).toMatchObject(failure);
    expect(chunks).toEqual(["begun"]);
  });

  test.each(["connectTimeoutMs", "readTimeoutMs"])(
    "is, as the one to connect, from 1 ms to 120 s: %s",
    async (name) => {
      const url = `http://${await serve((_, response) => response.end())}/`;
      const outbound = outboundThat({});
      for (const ms of [0, 120_001]) {
        expect(await failureOf(outbound.request({ ...REQUEST, url, [name]: ms }))).toEqual(
          new OutboundRefused(`A time-out of ${ms} ms is not allowed; set one from 1 to 120000 ms.`),
        );
      }
      expect(await outbound.request({ ...REQUEST, url, [name]: 120_000 })).toMatchObject({ status: 200 });
    },
  );
});

describe("a failure", () => {
  test.each([
    ["a name that does not exist", async () => "http://a..b/", /ENOTFOUND/],
    ["a refused connection", async () => `http://${await unusedHost()}/`, /ECONNREFUSED/],
    ["a certificate that nobody signed", async () => `https://${await serveTls((_, r) => r.end())}/`, /self-signed/],
  ])("says that nothing was sent: %s", async (_, urlOf, message) => {
    const failure = await failureOf(outboundThat({}).request({ ...REQUEST, url: await urlOf() }));
    expect(failure).toMatchObject({ name: "OutboundFailed", reason: "unreachable", sent: false });
    expect(failure.message).toMatch(message);
  });

  test("says that the request was sent, if the connection ends without an answer", async () => {
    const host = await serve((request) => request.socket.destroy());
    const failure = await failureOf(outboundThat({}).request({ ...REQUEST, url: `http://${host}/` }));
    expect(failure).toMatchObject({ name: "OutboundFailed", reason: "incomplete", sent: true });
  });

  test("says that nothing was sent, if the time was over while it waited for its turn; and it is not sent later", async () => {
    const paths: unknown[] = [];
    const asked = new EventEmitter();
    const host = await serve((request, response) => {
      paths.push(request.url);
      if (request.url === "/first") asked.emit("first", response);
      else response.end();
    });
    const outbound = outboundThat({ connections: 1 });
    const isAsked = once(asked, "first");
    const first = outbound.request({ ...REQUEST, url: `http://${host}/first` });
    const [response] = (await isAsked) as [ServerResponse];
    const second = outbound.request({ ...REQUEST, url: `http://${host}/second`, timeoutMs: 20 });
    expect(await failureOf(second)).toMatchObject({ reason: "timeout", sent: false });
    response.end();
    await first;
    await outbound.request({ ...REQUEST, url: `http://${host}/third` });
    expect(paths).toEqual(["/first", "/third"]);
  });
});

describe("redirects, where they are permitted", () => {
  const path = (request: { url?: string | undefined }) => Number(request.url?.slice(1));

  test("are followed to the same origin, with the same headers, and up to their number", async () => {
    const seen: unknown[] = [];
    const host = await serve((request, response) => {
      seen.push(`${request.url} ${String(request.headers["x-mine"])} ${request.headers.authorization}`);
      const left = path(request);
      if (left === 0) response.end("here");
      else response.writeHead(302, { location: `/${left - 1}` }).end("not here");
    });
    const outbound = outboundThat({});
    const request = { ...REQUEST, headers: { "x-mine": "1" }, redirects: 3 };
    const answer = await outbound.request({ ...request, url: `http://u:p@${host}/3` });
    expect(answer.body.toString()).toBe("here");
    expect(seen).toEqual(["/3", "/2", "/1", "/0"].map((one) => `${one} 1 Basic dTpw`));
    expect(answer).not.toHaveProperty("notFollowed");

    for (const redirects of [3, 99]) {
      const fourth = await outbound.request({ ...request, url: `http://${host}/4`, redirects });
      expect(fourth).toMatchObject({ status: 302, notFollowed: "there were more than 3 redirects" });
    }
  });

  test("of another method or to another origin are returned, and why", async () => {
    let elsewhere = 0;
    const other = await serve((_, response) => {
      elsewhere += 1;
      response.end();
    });
    const host = await serve((request, response) => {
      const location = request.url === "/away" ? `http://${other}/?secret` : String(request.url);
      response.writeHead(307, { location }).end("moved");
    });
    const outbound = outboundThat({});
    const posted = await outbound.request({ ...REQUEST, method: "POST", url: `http://${host}/here`, redirects: 1 });
    expect(posted).toMatchObject({ status: 307, notFollowed: "only redirects of GET and HEAD are followed" });
    const away = await outbound.request({ ...REQUEST, url: `http://${host}/away`, redirects: 1 });
    expect(away).toMatchObject({ status: 307, notFollowed: `it leads to another origin, http://${other}` });
    expect(away.body.toString()).toBe("moved");
    const nowhere = await outbound.request({ ...REQUEST, url: `http://${host}//`, redirects: 1 });
    expect(nowhere).toMatchObject({ status: 307, notFollowed: "its location is not a URL" });
    expect(elsewhere).toBe(0);
  });

  test("do not hide that the first request was sent", async () => {
    const host = await serve((request, response) => {
      if (request.url === "/2") request.socket.destroy();
      else response.writeHead(302, { location: "/2", connection: "close" }).end();
    });
    const url = `http://${host}/1`;
    expect(await failureOf(outboundThat({}).request({ ...REQUEST, url, redirects: 1 }))).toMatchObject({ sent: true });
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

  test("permits only the listed hosts, with their ports, and says what to add for others", async () => {
    const host = await serve((_, response) => response.end("here"));
    const other = await serve((_, response) => response.end("not here"));
    const named = host.replace("127.0.0.1", "LocalHost");
    const outbound = outboundThat({ allowPrivate: [host, named] });
    for (const one of [host, named]) {
      const answer = await outbound.request({ ...REQUEST, url: `http://${one}/` });
      expect(answer.body.toString()).toBe("here");
    }
    const refused = await failureOf(outbound.request({ ...REQUEST, url: `http://${other}/` }));
    expect(refused).toEqual(
      new OutboundRefused(`127.0.0.1 is not a public address; add ${other} to ALLOW_PRIVATE to permit it.`),
    );
    const otherNamed = other.replace("127.0.0.1", "localhost");
    const { message } = await failureOf(outbound.request({ ...REQUEST, url: `http://${otherNamed}/` }));
    expect(message).toMatch(/^localhost resolves to .*127\.0\.0\.1.*, which is not a public address; add /);
    expect(message).toContain(`; add ${otherNamed} to ALLOW_PRIVATE to permit it.`);
  });

  test("permits http to listed hosts only, if it permits https only", async () => {
    const host = await serve((_, response) => response.end("here"));
    const outbound = outboundThat({ allowPrivate: [host], httpsOnly: true });
    expect(await outbound.request({ ...REQUEST, url: `http://${host}/` })).toMatchObject({ status: 200 });
    expect(await failureOf(outbound.request({ ...REQUEST, url: "http://example.invalid/" }))).toEqual(
      new OutboundRefused(
        "Only https URLs are allowed, and this one begins with http:; add example.invalid:80 to ALLOW_PRIVATE to permit it.",
      ),
    );
    expect(await failureOf(outbound.request({ ...REQUEST, url: "https://a..b/" }))).toMatchObject({
      reason: "unreachable",
    });
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

test("shownUrl omits the parts that may be secret", () => {
  expect(shownUrl("https://me:secret@host:8443/a/b?token=secret#secret")).toBe("https://host:8443/a/b");
  expect(shownUrl("http://me:secret@ho st/")).toBe("(no valid URL)");
});
