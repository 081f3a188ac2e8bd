/**
 * The connections of outbound requests: directly, or through a proxy. Connections are kept and used again, by the
 * connect time-out and the proxy that they were made with.
 */
import type { Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher, errors, Pool } from "undici";
import { messageOf } from "../text/message-of.ts";
import { OutboundFailed, OutboundRefused } from "./outbound-errors.ts";
import type { Guard } from "./outbound-guard.ts";
import { basicCredentials, hostPortOf, parseProxyUrl } from "./outbound-url.ts";

export interface Routes {
  to(url: URL, settings: RouteSettings): Route;
  close(): Promise<void>;
}

interface RouteSettings {
  proxy: string | undefined;
  connectTimeoutMs: number;
}

interface Route {
  dispatcher: Dispatcher;
  origin: string;
  path: string;
  headers?: Record<string, string>;
}

/** The dispatchers of one proxy and connect time-out. */
interface Lane {
  route(url: URL): Route;
  dispatchers: readonly Dispatcher[];
}

/** A definition may name its own proxy and time-out, so there can be any number of lanes; the longest unused is closed. */
const LANES_MAX = 64;
/** `OutboundRequest` has the time-outs of a request. */
const UNLIMITED = { headersTimeout: 0, bodyTimeout: 0 };

export function createRoutes(guard: Guard, connections: number | undefined): Routes {
  const limits = connections === undefined ? UNLIMITED : { ...UNLIMITED, connections };
  const lanes = new Map<string, Lane>();
  const ending = new Set<Dispatcher>();
  let isClosed = false;

  function open({ proxy, connectTimeoutMs }: RouteSettings): Lane {
    const connect = failingOnReset(guard.connector(connectTimeoutMs));
    if (proxy === undefined) {
      const dispatcher = new Agent({ ...limits, connect });
      const route = (url: URL) => ({ dispatcher, origin: url.origin, path: url.pathname + url.search });
      return { route, dispatchers: [dispatcher] };
    }
    return openProxy(parseProxyUrl(proxy), connect, connectTimeoutMs);
  }

  /** https goes through a tunnel. http does not: many proxies permit tunnels to port 443 only. */
  function openProxy(proxy: URL, connect: buildConnector.connector, timeoutMs: number): Lane {
    const credentials = basicCredentials(proxy);
    const login = credentials === undefined ? {} : { "proxy-authorization": credentials };
    const plain = new Pool(proxy.origin, { ...limits, connect });
    const tunnels = new Pool(proxy.origin, { connect, headersTimeout: timeoutMs });
    const tunnelled = new Agent({
      ...limits,
      connect: failingOnReset(tunnelConnector(tunnels, proxy, login, timeoutMs)),
    });
    return {
      route: (url) =>
        url.protocol === "https:"
          ? { dispatcher: tunnelled, origin: url.origin, path: url.pathname + url.search }
          : {
              dispatcher: plain,
              origin: proxy.origin,
              path: url.origin + url.pathname + url.search,
              headers: { host: url.host, ...login },
            },
      dispatchers: [tunnelled, plain, tunnels],
    };
  }

  /** Those of its requests that still run are completed. */
  function retire({ dispatchers }: Lane): void {
    for (const dispatcher of dispatchers) {
      ending.add(dispatcher);
      void dispatcher.close().finally(() => ending.delete(dispatcher));
    }
  }

  return {
    to(url, settings) {
      if (isClosed) throw new errors.ClientDestroyedError();
      const key = JSON.stringify([settings.proxy, settings.connectTimeoutMs]);
      const lane = lanes.get(key) ?? open(settings);
      // Inserted again, so that the first is the one that was used the longest ago.
      lanes.delete(key);
      lanes.set(key, lane);
      const [oldest] = lanes;
      if (lanes.size > LANES_MAX && oldest) {
        lanes.delete(oldest[0]);
        retire(oldest[1]);
      }
      return lane.route(url);
    },
    async close() {
      isClosed = true;
      const dispatchers = [...ending, ...[...lanes.values()].flatMap((lane) => lane.dispatchers)];
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()));
    },
  };
}

function tunnelConnector(
  tunnels: Pool,
  proxy: URL,
  login: Record<string, string>,
  timeoutMs: number,
): buildConnector.connector {
  const secure = buildConnector({ timeout: timeoutMs });

  async function tunnelTo(target: string): Promise<Socket> {
    const request = { origin: proxy.origin, path: target, headers: { host: target, ...login } };
    const { socket, statusCode } = await tunnels.connect(request);
    if (statusCode === 200) return socket as Socket;
    socket.on("error", () => {}).destroy();
    const sentence = `the proxy ${proxy.host} answered ${statusCode} to the request for a tunnel to ${target}`;
    throw statusCode < 500
      ? new OutboundRefused(sentence)
      : new OutboundFailed(sentence, { reason: "unreachable", sent: false });
  }

  async function connect(options: buildConnector.Options, callback: buildConnector.Callback): Promise<void> {
    let httpSocket: Socket;
    try {
      httpSocket = await tunnelTo(hostPortOf(options));
    } catch (error) {
      // Not undici's own error: it would connect again after a SocketError, without end.
      return callback(error instanceof OutboundFailed ? error : proxyFailure(proxy, error), null);
    }
    secure({ ...options, httpSocket }, callback);
  }
  return (options, callback) => void connect(options, callback);
}

function proxyFailure(proxy: URL, error: unknown): OutboundFailed {
  const isTimeout = error instanceof errors.ConnectTimeoutError || error instanceof errors.HeadersTimeoutError;
  const reason = isTimeout ? "timeout" : "unreachable";
  const sentence = `the proxy ${proxy.host} does not open a tunnel: ${messageOf(error)}`;
  return new OutboundFailed(sentence, { reason, sent: false, cause: error });
}

/**
 * Where the end of the connection is the end of the body, undici takes ECONNRESET for that end, and so a part of a body
 * for the whole. It does not with another code.
 */
function failingOnReset(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    connect(options, (...result) => {
      const [, socket] = result;
      socket?.prependListener("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ECONNRESET") error.code = "ERR_CONNECTION_RESET";
      });
      callback(...result);
    });
  };
}
