/**
 * The HTTP server of every simulator: counts what arrives, holds the source's limits, lets faults strike in the transport, and
 * compresses for a client that accepts it. It listens on the loopback interface only.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { readBody } from "../../kernel/http/read-body.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Faults } from "./faults.ts";
import type { Answer, KeyedLimit, Source, SourceRequest } from "./source.ts";
import type { Limit, Traffic } from "./traffic.ts";

export interface ServerOptions {
  port: number;
  source: Source;
  faults: Faults;
  traffic: Traffic;
  /** Called after every answer of the source, before it is sent. */
  afterAnswer: (request: SourceRequest) => void;
  /** Answers requests below `/_simulator/`. */
  control: (request: ControlRequest) => Answer;
  clock: Clock;
  monotonicMs: () => number;
  /** What the fault `header-change` does to limits. */
  limits: { halved: boolean };
  /** Instead of the source's limits; `none` also removes the headers that state them. */
  rate: Limit | "none" | undefined;
  latencyMs: number;
  /** Instead of what the source or a fault says in Retry-After. */
  retryAfterSeconds: number | undefined;
  compress: boolean;
  /** How long the faults `latency` and `slow-drip` take. */
  faultDelayMs: number;
}

export interface ControlRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string;
}

export interface RunningServer {
  origin: string;
  close(): Promise<void>;
}

const CONTROL = "/_simulator/";
const BODY_BYTES_MAX = 16 * 1024 * 1024;
/** A GET with thousands of ids must reach the source, which answers 414. */
const HEADER_BYTES_MAX = 256 * 1024;
const COMPRESS_BYTES_MIN = 1024;
const DRIP_PIECES = 10;
const SKEW_MS = 3_600_000;
const RETRY_AFTER_SECONDS = 1;
/** Long, so that no client meets a connection that is just being closed. */
const KEEP_ALIVE_MS = 60_000;

const compressed = promisify<string, { level: number }, Buffer>(gzip);

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX }, (request, response) => {
    // A client that hangs up in the middle is no error of the simulator.
    handle(options, request, response).catch(() => response.destroy());
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(options.port, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function handle(options: ServerOptions, message: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(message.url ?? "/", "http://simulator");
  const body = (await readBody(message, { limit: BODY_BYTES_MAX })).toString();
  if (url.pathname.startsWith(CONTROL)) {
    const path = url.pathname.slice(CONTROL.length);
    const {
      status,
      type,
      body: text,
    } = options.control({ method: message.method ?? "", path, query: url.searchParams, body });
    response.writeHead(status, { "content-type": type }).end(text);
    return;
  }
  await serve(options, requestOf(message, url, body, options.faults), { message, response });
}

function requestOf(message: IncomingMessage, url: URL, body: string, faults: Faults): SourceRequest {
  const params = new URLSearchParams(url.searchParams);
  const type = message.headers["content-type"] ?? "application/x-www-form-urlencoded";
  if (body !== "" && type.startsWith("application/x-www-form-urlencoded"))
    for (const [name, value] of new URLSearchParams(body)) params.append(name, value);
  return {
    method: message.method ?? "",
    path: decoded(url.pathname).replace(/\/$/, ""),
    params,
    urlLength: (message.url ?? "").length,
    headers: message.headers,
    remoteAddress: message.socket.remoteAddress ?? "",
    strikes: (fault) => faults.strikes(fault, url.pathname),
  };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

async function serve(
  options: ServerOptions,
  request: SourceRequest,
  { message, response }: { message: IncomingMessage; response: ServerResponse },
): Promise<void> {
  const { source, traffic, rate } = options;
  const limit = limitOf(source, request, options);
  const arrival = traffic.arrive(limit.key, options.monotonicMs());
  let lost = false;
  response.once("close", () => arrival.leave(response.writableFinished && !lost ? response.statusCode : "lost"));
  const reset = () => {
    lost = true;
    message.socket.resetAndDestroy();
  };
  const count = arrival.countIn(limit.intervalMs);
  const admitted = rate === "none" || arrival.admit(limit);
  const rateHeaders = rate === "none" ? {} : source.rateHeaders(request, limit, Math.max(0, limit.requests - count));

  if (options.latencyMs > 0) await sleep(options.latencyMs);
  if (request.strikes("latency")) await sleep(options.faultDelayMs);
  if (request.strikes("reset-before-headers")) return reset();
  if (!admitted || request.strikes("http-429"))
    return send(options, request, response, source.tooMany(request, limit, count));
  const failure = failureOf(request);
  if (failure) return send(options, request, response, failure);
  if (request.strikes("header-change")) options.limits.halved = !options.limits.halved;
  const answer = source.answer(request);
  options.afterAnswer(request);
  if (request.strikes("answer-lost")) return reset();
  await send(options, request, response, { ...answer, headers: { ...rateHeaders, ...answer.headers } }, reset);
}

function limitOf(source: Source, request: SourceRequest, { rate, limits }: ServerOptions): KeyedLimit {
  const own = source.limitOf(request);
  const limit = rate === undefined || rate === "none" ? own : { key: own.key, ...rate };
  return limits.halved ? { ...limit, requests: Math.max(1, Math.floor(limit.requests / 2)) } : limit;
}

function failureOf(request: SourceRequest): Answer | undefined {
  const html = (status: number, title: string, headers = {}) => ({
    status,
    type: "text/html",
    headers,
    body: `<html><head><title>${status} ${title}</title></head><body><h1>${title}</h1></body></html>\n`,
  });
  if (request.strikes("http-500")) return html(500, "Internal Server Error");
  if (request.strikes("http-500-empty")) return { status: 500, type: "text/xml;charset=UTF-8", body: "" };
  if (request.strikes("http-503"))
    return html(503, "Service Unavailable", { "retry-after": String(RETRY_AFTER_SECONDS) });
  return undefined;
}

/** With `reset`, faults of the body may strike. */
async function send(
  options: ServerOptions,
  request: SourceRequest,
  response: ServerResponse,
  { status, type, headers = {}, body }: Answer,
  reset?: () => void,
): Promise<void> {
  const strikes = (fault: Parameters<SourceRequest["strikes"]>[0]) => reset !== undefined && request.strikes(fault);
  const whole = isXml(type) && strikes("control-character") ? withControlCharacter(body) : body;
  const text = strikes("truncated-body") ? whole.slice(0, Math.floor(whole.length / 2)) : whole;
  const zip = strikes("gzip") || (options.compress && accepts(request) && text.length >= COMPRESS_BYTES_MIN);
  const bytes = zip ? await compressed(text, { level: constants.Z_BEST_SPEED }) : Buffer.from(text);
  const now = options.clock.now() + (strikes("clock-skew") ? SKEW_MS : 0);
  response.writeHead(status, {
    date: new Date(now).toUTCString(),
    "content-type": strikes("wrong-content-type") ? "text/html;charset=ISO-8859-1" : type,
    "content-length": bytes.length,
    ...(zip ? { "content-encoding": "gzip" } : {}),
    ...headers,
    ...retryAfter(options, headers, strikes("retry-after-on-200")),
  });
  if (reset && request.strikes("reset-after-headers")) {
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), reset);
  } else if (strikes("slow-drip")) {
    await drip(response, bytes, options.faultDelayMs);
  } else {
    response.end(bytes);
  }
}

function isXml(type: string): boolean {
  return /\bxml\b/.test(type);
}

/** In its last text. */
function withControlCharacter(xml: string): string {
  const end = [...xml.matchAll(/\w(?=<\/)/g)].at(-1)?.index;
  return end === undefined ? xml : `${xml.slice(0, end)}\u000b${xml.slice(end)}`;
}

function retryAfter(
  { retryAfterSeconds }: ServerOptions,
  headers: Record<string, string>,
  isFault: boolean,
): Record<string, string> {
  const said = isFault ? String(RETRY_AFTER_SECONDS) : headers["retry-after"];
  return said === undefined
    ? {}
    : { "retry-after": retryAfterSeconds === undefined ? said : String(retryAfterSeconds) };
}

function accepts(request: SourceRequest): boolean {
  return /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
}

async function drip(response: ServerResponse, bytes: Buffer, durationMs: number): Promise<void> {
  const size = Math.max(1, Math.ceil(bytes.length / DRIP_PIECES));
  let start = 0;
  for (; start + size < bytes.length && !response.destroyed; start += size) {
    response.write(bytes.subarray(start, start + size));
    await sleep(durationMs / DRIP_PIECES);
  }
  // With the last piece, not after it: a client that has them all sends its next request, which would count as a second open one.
  response.end(bytes.subarray(start));
}
