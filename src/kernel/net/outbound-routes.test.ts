import { EventEmitter, once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request as requestOf,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  failureOf,
  listen,
  outboundThat,
  REQUEST,
  serve,
  serveTcp,
  serveTls,
  UNTIMED,
  unusedHost,
} from "./outbound.fixture.ts";
import { OutboundRefused } from "./outbound.ts";

describe("connections", () => {
  /** Answers with the number of connections so far, once `atOnce` requests have come. */
  async function counting(atOnce: number, headers: Record<string, string> = {}) {
    const sockets = new Set<Socket>();
    const held: (() => void)[] = [];
    let most = 0;
    const host = await serve((request, response) => {
      sockets.add(request.socket);
      most = Math.max(
        most,
        held.push(() => response.writeHead(200, headers).end(gzipSync(String(sockets.size)))),
      );
      if (held.length >= atOnce) for (const answer of held.splice(0)) answer();
    });
    return { url: `http://${host}/`, sockets, most: () => most };
  }

  test("are used again, also after a compressed body and a redirect", async () => {
    const { url, sockets } = await counting(1, { "content-encoding": "gzip" });
    // Without a limit, a second is opened for a request that comes in the same tick as the end of the one before.
    const outbound = outboundThat({ connections: 1 });
    for (let count = 0; count < 3; count += 1) {
      const answer = await outbound.request({ ...REQUEST, url, decompress: true });
      expect(answer.body.toString()).toBe("1");
    }
    expect(sockets.size).toBe(1);

    const redirected = new Set<Socket>();
    const host = await serve((request, response) => {
      redirected.add(request.socket);
      if (request.url === "/2") response.end();
      else response.writeHead(302, { location: "/2" }).end("moved");
    });
    await outbound.request({ ...REQUEST, url: `http://${host}/1`, redirects: 1 });
    expect(redirected.size).toBe(1);
  });

  test.each([
    [1, {}],
    [2, {}],
    [1, { connection: "close" }],
    [2, { connection: "close" }],
  ])("to one origin are at most %i; further requests wait for their turn (%j)", async (connections, headers) => {
    const { url, most } = await counting(connections, headers);
    const outbound = outboundThat({ connections });
    const answers = await Promise.all(Array.from({ length: 10 }, () => outbound.request({ ...REQUEST, url })));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(most()).toBe(connections);
  });

  test.each([1, 2])(
    "that cannot be made fail the requests that wait for them too (at most %i)",
    async (connections) => {
      const outbound = outboundThat({ connections });
      const url = `http://${await unusedHost()}/`;
      const failures = await Promise.all(
        Array.from({ length: 6 }, () => failureOf(outbound.request({ ...REQUEST, url }))),
      );
      expect(failures.map(({ reason, sent }) => ({ reason, sent }))).toEqual(
        failures.map(() => ({ reason: "unreachable", sent: false })),
      );
    },
  );

  test("end with the client: what runs fails, and so does what comes later", async () => {
    const host = await serve(() => void outbound.close());
    const outbound = outboundThat({});
    const url = `http://${host}/`;
    expect(await failureOf(outbound.request({ ...REQUEST, url }))).toMatchObject({ sent: true });
    for (const connectTimeoutMs of [10_000, 20_000]) {
      const failure = await failureOf(outbound.request({ ...REQUEST, url, connectTimeoutMs }));
      expect(failure).toMatchObject({ reason: "unreachable", sent: false });
    }
  });
});

describe("a proxy", () => {
  /** A forward proxy that notes what it is asked for. `refuse` may answer a request for a tunnel instead, and then returns true. */
  async function proxy(
    refuse: (socket: Socket) => boolean = () => false,
    onConnection: (socket: Socket) => void = () => {},
  ) {
    const asked: string[] = [];
    const note = ({ method, url, headers }: IncomingMessage) =>
      asked.push(`${method} ${url} ${headers["proxy-authorization"] ?? "nobody"}`);
    const forward: RequestListener = (incoming, response) => {
      note(incoming);
      const { "proxy-authorization": _, ...headers } = incoming.headers;
      const { method } = incoming;
      const outgoing = requestOf(String(incoming.url), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(outgoing.on("error", () => response.destroy()));
    };
    const server = createServer(forward).on("connection", onConnection);
    server.on("connect", (incoming: IncomingMessage, client: Socket) => {
      note(incoming);
      client.on("error", () => {});
      if (refuse(client)) return;
      const { hostname, port } = new URL(`http://${incoming.url}`);
      const target = connect(Number(port), hostname, () => {
        client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        target.pipe(client).pipe(target);
      });
      target.on("error", () => client.destroy());
    });
    return { host: await listen(server), asked };
  }

  beforeEach(() => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    return () => vi.unstubAllEnvs();
  });

  const echo: RequestListener = (request, response) => {
    response.write(`${request.method} ${request.url} ${request.headers.host} ${String(request.headers["x-mine"])} `);
    request.pipe(response);
  };
  const POST = { ...REQUEST, method: "POST", headers: { "x-mine": "1" }, body: "é" } as const;

  const answering = (status: number) => (client: Socket) => {
    client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
    return true;
  };

  test("gets http requests whole, and tunnels for https, one for several requests", async () => {
    const { host, asked } = await proxy();
    const [plain, secure] = [await serve(echo), await serveTls(echo)];
    const outbound = outboundThat({ connections: 1 });
    for (const scheme of ["http", "https", "https"]) {
      const target = scheme === "http" ? plain : secure;
      const request = { ...POST, url: `${scheme}://${target}/a?b=c`, proxy: `http://me%40home:p%3Aw@${host}` };
      const answer = await outbound.request(request);
      expect(answer.body.toString()).toBe(`POST /a?b=c ${target} 1 é`);
    }
    const login = `Basic ${Buffer.from("me@home:p:w").toString("base64")}`;
    expect(asked).toEqual([`POST http://${plain}/a?b=c ${login}`, `CONNECT ${secure} ${login}`]);
  });

  test("is used only by the requests that name it", async () => {
    const [one, other] = [await proxy(), await proxy()];
    const url = `http://${await serve((_, response) => response.end("here"))}/`;
    const outbound = outboundThat({});
    for (const via of [{ proxy: `http://${one.host}` }, { proxy: `http://u:p@${other.host}` }, {}]) {
      const answer = await outbound.request({ ...REQUEST, url, ...via });
      expect(answer.body.toString()).toBe("here");
    }
    expect([one.asked, other.asked]).toEqual([[`GET ${url} nobody`], [`GET ${url} Basic dTpw`]]);
  });

  test.each([
    ["answers 407", 407, "refused"],
    ["answers 502", 502, "unreachable"],
  ])("that %s to the request for a tunnel: nothing was sent, and the failure is %#", async (_, status, reason) => {
    const { host } = await proxy(answering(status));
    const request = { ...REQUEST, url: "https://example.invalid/", proxy: `http://me:secret@${host}` };
    expect(await failureOf(outboundThat({}).request(request))).toMatchObject({
      message: `the proxy ${host} answered ${status} to the request for a tunnel to example.invalid:443`,
      reason,
      sent: false,
    });
  });

  test("that refuses a tunnel only after a redirect: the request before was sent", async () => {
    let tunnels = 0;
    const { host } = await proxy((client) => ++tunnels > 1 && answering(407)(client));
    const target = await serveTls((_, response) => {
      response.writeHead(302, { location: "/elsewhere", connection: "close" }).end();
    });
    const request = { ...REQUEST, url: `https://${target}/`, proxy: `http://${host}`, redirects: 1 };
    const failure = await failureOf(outboundThat({}).request(request));
    expect(failure).toBeInstanceOf(OutboundRefused);
    expect(failure.sent).toBe(true);
  });

  test("that closes the connection or cannot be reached: nothing was sent", async () => {
    const { host, asked } = await proxy((client) => client.destroy().destroyed);
    for (const via of [host, await unusedHost()]) {
      const request = { ...REQUEST, url: "https://example.invalid/", proxy: `http://me:secret@${via}` };
      const failure = await failureOf(outboundThat({}).request(request));
      expect(failure).toMatchObject({ reason: "unreachable", sent: false });
      expect(failure.message).toMatch(new RegExp(`^the proxy ${via} does not open a tunnel: `));
    }
    expect(asked.length).toBe(1);
  });

  test("that does not answer: the connect time-out passes", async () => {
    const host = await serveTcp(() => {});
    const request = { ...UNTIMED, url: "https://example.invalid/", proxy: `http://${host}` };
    expect(await failureOf(outboundThat({}).request({ ...request, connectTimeoutMs: 50 }))).toMatchObject({
      reason: "timeout",
      sent: false,
    });
  });

  test("must be public or listed, and so must an IP address that is asked of it", async () => {
    const { host, asked } = await proxy();
    const [plain, secure] = [await serve(echo), await serveTls(echo)];
    const via = { ...REQUEST, proxy: `http://${host}` };
    for (const url of [`http://${plain}/`, `https://${secure}/`]) {
      const target = new URL(url).host;
      for (const [listed, missing] of [
        [[target], host],
        [[host], target],
        [[], target],
      ] as const) {
        const refusal = `127.0.0.1 is not a public address; add ${missing} to ALLOW_PRIVATE to permit it.`;
        const outbound = outboundThat({ allowPrivate: listed });
        expect(await failureOf(outbound.request({ ...via, url }))).toEqual(new OutboundRefused(refusal));
      }
      expect(asked).toEqual([]);
      const answer = await outboundThat({ allowPrivate: [host, target] }).request({ ...via, url });
      expect(answer.status).toBe(200);
      asked.length = 0;
    }
  });

  test.each(["https://h:1", "socks5://h:1", "h:1", "http://u:secret@ h", "http://h:1/secret"])(
    "is refused without repeating it, if it is %s",
    async (text) => {
      const failure = await failureOf(outboundThat({}).request({ ...REQUEST, url: "https://h/", proxy: text }));
      const sentence = "The URL of the proxy is not valid; write it as http://host:port.";
      expect(failure).toEqual(new OutboundRefused(sentence));
    },
  );

  test("may be another for every request: the connections of the longest unused are closed when nothing runs on them", async () => {
    const asked = new EventEmitter();
    let [connected, most] = [0, 0];
    const url = `http://${await serve((request, response) => {
      if (request.url === "/later") asked.emit("later", response);
      else if (request.url !== "/never") response.end("here");
    })}`;
    const { host } = await proxy(undefined, (socket) => {
      most = Math.max(most, ++connected);
      socket.once("close", () => --connected);
    });
    const outbound = outboundThat({});
    const isAsked = once(asked, "later");
    const later = outbound.request({ ...REQUEST, url: `${url}/later`, proxy: `http://later:p@${host}` });
    const never = failureOf(outbound.request({ ...REQUEST, url: `${url}/never`, proxy: `http://never:p@${host}` }));
    const [response] = (await isAsked) as [ServerResponse];
    for (let user = 0; user < 100; user += 1) {
      const answer = await outbound.request({ ...REQUEST, url, proxy: `http://${user}:p@${host}` });
      expect(answer.body.toString()).toBe("here");
    }
    // 64, and those of which the server does not know yet that they are closed.
    expect(most).toBeLessThan(80);
    response.end("at last");
    expect((await later).body.toString()).toBe("at last");
    await outbound.close();
    expect(await never).toMatchObject({ reason: "incomplete", sent: true });
  });
});
