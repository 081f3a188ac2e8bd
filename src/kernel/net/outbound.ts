/**
 * Every HTTP request to a URL that a user gave: a chain node of type `http`, a webhook, a harvested source. Which addresses
 * may be called is decided by `outbound-guard.ts`. Redirects are followed only where the caller asks for it, and never to
 * another origin.
 */
import type { Dispatcher } from "undici";
import { ACCEPTED_ENCODINGS, readWithin } from "./outbound-body.ts";
import { dispatch, type Received } from "./outbound-dispatch.ts";
import { OutboundRefused } from "./outbound-errors.ts";
import { beginExchange, type Exchange } from "./outbound-exchange.ts";
import { createGuard, type Guard, type GuardOptions } from "./outbound-guard.ts";
import { createRoutes, type Routes } from "./outbound-routes.ts";
import { basicCredentials, parseUrl } from "./outbound-url.ts";

export { OutboundFailed, OutboundRefused } from "./outbound-errors.ts";

export interface Outbound {
  /** Throws OutboundFailed, or the reason of the signal. */
  request(request: OutboundRequest): Promise<OutboundAnswer>;
  /** As `request`, but returns when the headers are there. The body is then read, or `close` called. */
  open(request: OutboundRequest): Promise<OpenAnswer>;
  /** Fails the requests that are still running. */
  close(): Promise<void>;
}

export interface OutboundRequest {
  method: Dispatcher.HttpMethod;
  /** A user and password in it are sent as basic authentication, unless `headers` has `authorization`. */
  url: string;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** For the whole exchange, from the DNS lookup to the last byte of the response. No limit if unset. */
  timeoutMs?: number;
  /** For the connection with its TLS handshake, or the tunnel of a proxy. 10,000 if unset. */
  connectTimeoutMs?: number;
  /** Without a byte of the response. If unset, 30,000, or none where `timeoutMs` is set. */
  readTimeoutMs?: number;
  /** Asks for a compressed body and decompresses it. The headers stay as they were received. */
  decompress?: boolean;
  /** Of the body, decompressed if it is. The rest of a longer one is not read. */
  bodyLimitBytes: number;
  /** Of a compressed body as it is received. `bodyLimitBytes` if unset. */
  wireLimitBytes?: number;
  /** How many redirects are followed: of GET and HEAD, to the same origin, at most 3. None if unset. */
  redirects?: number;
  /** `http://user:password@host:port`. It resolves the names, so only an IP address in `url` is checked. */
  proxy?: string;
  /** Ends the exchange; `request` then throws the signal's reason. */
  signal: AbortSignal;
}

interface AnswerHead {
  status: number;
  /** Names in lower case; the values of a repeated header are joined by commas. */
  headers: Record<string, string>;
  /** Why the answer is a redirect although `redirects` is set. */
  notFollowed?: string;
}

export interface OutboundAnswer extends AnswerHead {
  body: Buffer;
  /** The body was longer than `bodyLimitBytes`. Never with `decompress`: then it is an error. */
  truncated: boolean;
}

export interface OpenAnswer extends AnswerHead {
  /** Can be read once. Throws OutboundFailed if it is longer than its limit or ends early. */
  body: AsyncIterable<Buffer>;
  /** Closes the connection of a body that is not read to its end. Leaving the loop over `body` does so too. */
  close(): void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const READ_TIMEOUT_MS = 30_000;
const TIMEOUT_MS_MAX = 120_000;
const REDIRECTS_MAX = 3;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];

/** Some services require a user agent. */
const USER_AGENT = "millrace";

export interface OutboundOptions extends GuardOptions {
  /** To one origin at a time; further requests wait. No limit if unset. */
  connections?: number;
}

export function createOutbound({ connections, ...rules }: OutboundOptions): Outbound {
  const guard = createGuard(rules);
  const routes = createRoutes(guard, connections);

  async function receive(request: OutboundRequest): Promise<Answer> {
    const timeouts = timeoutsOf(request);
    const exchange = beginExchange({ ...timeouts, timeoutMs: request.timeoutMs, signal: request.signal });
    try {
      return await follow({ guard, routes, exchange, request, ...timeouts });
    } catch (error) {
      exchange.end();
      throw exchange.failureOf(error);
    }
  }

  return {
    async open(request) {
      const answer = await receive(request);
      return { ...answer.head, body: readOnce(answer, chunksOf(answer, request)), close: () => endOf(answer) };
    },
    async request(request) {
      const answer = await receive(request);
      const read = request.decompress
        ? readWhole(chunksOf(answer, request))
        : readUpTo(request.bodyLimitBytes, answer.body);
      return { ...answer.head, ...(await settled(answer, read)) };
    },
    close: routes.close,
  };
}

/** An answer whose body has yet to be read. */
interface Answer {
  exchange: Exchange;
  head: AnswerHead;
  body: Received["body"];
}

function chunksOf({ head, body }: Answer, request: OutboundRequest): AsyncIterable<Buffer> {
  const { bodyLimitBytes, wireLimitBytes = bodyLimitBytes, decompress = false } = request;
  return readWithin(
    { wireLimitBytes, bodyLimitBytes },
    body,
    decompress ? head.headers["content-encoding"] : undefined,
  );
}

async function* readOnce(answer: Answer, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    throw answer.exchange.failureOf(error);
  } finally {
    endOf(answer);
  }
}

async function settled<T>(answer: Answer, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw answer.exchange.failureOf(error);
  } finally {
    endOf(answer);
  }
}

/** Closes the connection, unless the body was read to its end. */
function endOf({ exchange, body }: Answer): void {
  exchange.end();
  body.destroy();
}

async function readUpTo(limit: number, stream: AsyncIterable<Buffer>): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit) break;
  }
  return { body: Buffer.concat(chunks, Math.min(length, limit)), truncated: length > limit };
}

async function readWhole(stream: AsyncIterable<Buffer>): Promise<{ body: Buffer; truncated: false }> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return { body: Buffer.concat(chunks), truncated: false };
}

interface Timeouts {
  connectTimeoutMs: number;
  readTimeoutMs: number;
}

function timeoutsOf({ connectTimeoutMs = CONNECT_TIMEOUT_MS, readTimeoutMs, timeoutMs }: OutboundRequest): Timeouts {
  for (const given of [connectTimeoutMs, readTimeoutMs ?? READ_TIMEOUT_MS]) {
    if (given >= 1 && given <= TIMEOUT_MS_MAX) continue;
    throw new OutboundRefused(`A time-out of ${given} ms is not allowed; set one from 1 to ${TIMEOUT_MS_MAX} ms.`);
  }
  return { connectTimeoutMs, readTimeoutMs: readTimeoutMs ?? (timeoutMs === undefined ? READ_TIMEOUT_MS : 0) };
}

interface Call extends Timeouts {
  guard: Guard;
  routes: Routes;
  exchange: Exchange;
  request: OutboundRequest;
}

/** Returns the first answer that is no redirect to be followed. */
async function follow(call: Call): Promise<Answer> {
  const { request, exchange } = call;
  const allowed = Math.min(request.redirects ?? 0, REDIRECTS_MAX);
  let url = parseUrl(request.url);
  const credentials = basicCredentials(url);
  const headers = {
    "user-agent": USER_AGENT,
    "accept-encoding": request.decompress ? ACCEPTED_ENCODINGS : "identity",
    ...(credentials === undefined ? {} : { authorization: credentials }),
    ...request.headers,
  };
  for (let followed = 0; ; followed += 1) {
    const received = await send(call, url, headers);
    const next = allowed === 0 ? undefined : redirectOf(received, url, request.method);
    if (next === undefined) return answerOf(received, exchange);
    if (typeof next === "string") return answerOf(received, exchange, next);
    if (followed === allowed) return answerOf(received, exchange, `there were more than ${allowed} redirects`);
    // A body that has come with its headers, as most do, leaves the connection for the next request.
    received.body.destroy();
    url = next;
  }
}

function send(call: Call, url: URL, headers: Record<string, string>): Promise<Received> {
  const { guard, routes, exchange, request, connectTimeoutMs, readTimeoutMs } = call;
  guard.check(url);
  const { dispatcher, origin, path, headers: added } = routes.to(url, { proxy: request.proxy, connectTimeoutMs });
  const options = {
    origin,
    path,
    method: request.method,
    headers: added ? { ...added, ...headers } : headers,
    body: request.body ?? null,
    headersTimeout: readTimeoutMs,
    bodyTimeout: readTimeoutMs,
  };
  return dispatch(dispatcher, options, exchange);
}

function answerOf({ status, headers, body }: Received, exchange: Exchange, notFollowed?: string): Answer {
  const values = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")]);
  const head = { status, headers: Object.fromEntries(values) as Record<string, string> };
  return { exchange, head: notFollowed === undefined ? head : { ...head, notFollowed }, body };
}

/** Where a redirect leads, or the reason not to follow it; nothing if the answer is none. */
function redirectOf({ status, headers }: Received, url: URL, method: string): URL | string | undefined {
  if (!REDIRECT_STATUSES.includes(status)) return undefined;
  if (method !== "GET" && method !== "HEAD") return "only redirects of GET and HEAD are followed";
  const location = String(headers["location"]);
  if (!URL.canParse(location, url.href)) return "its location is not a URL";
  const target = new URL(location, url);
  return target.origin === url.origin ? target : `it leads to another origin, ${target.origin}`;
}

/** The URL for messages and logs: without user, password and query, which may be secret. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return "(no valid URL)";
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
