/**
 * Every HTTP request to a URL that a user gave: a chain node of type `http`, a webhook. To prevent SSRF, the IP address is
 * checked when the connection is made, so DNS rebinding has no effect. Redirects are not followed.
 */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { urlToHttpOptions } from "node:url";
import { Agent, buildConnector, type Dispatcher, errors } from "undici";
import { isPublic } from "./public-address.ts";

export interface Outbound {
  request(request: OutboundRequest): Promise<OutboundAnswer>;
  /** Fails the requests that are still running. */
  close(): Promise<void>;
}

interface OutboundRequest {
  method: Dispatcher.HttpMethod;
  /** A user and password in it are sent as basic authentication, unless `headers` has `authorization`. */
  url: string;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** For the whole exchange, from the DNS lookup to the last byte of the response. */
  timeoutMs: number;
  /** The rest of a longer response body is not read. */
  bodyLimitBytes: number;
  /** Ends the exchange; `request` then throws the signal's reason. */
  signal: AbortSignal;
}

export interface OutboundAnswer {
  status: number;
  /** Names in lower case; the values of a repeated header are joined by commas. */
  headers: Record<string, string>;
  body: Buffer;
  /** The body was longer than `bodyLimitBytes`. */
  truncated: boolean;
}

/** The request is invalid or not permitted, so a retry fails as well. Any other error may be transient. */
export class OutboundRefused extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.name = "OutboundRefused";
  }
}

const CONNECT_TIMEOUT_MS = 10_000;

/** Some services require a user agent. Responses are not decompressed here, so none is requested compressed. */
const DEFAULT_HEADERS = { "user-agent": "millrace", "accept-encoding": "identity" };

export interface OutboundOptions {
  /** Whether addresses that are not public may be called. */
  allowPrivate: boolean;
  /** The setting that allows it, for the sentence of a refusal. */
  setting?: string;
}

export function createOutbound({ allowPrivate, setting }: OutboundOptions): Outbound {
  const agent = new Agent({
    connect: allowPrivate ? { timeout: CONNECT_TIMEOUT_MS } : connectToPublic(setting),
    // `timeoutMs` covers the whole exchange instead.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  return {
    async request(request) {
      const { timeoutMs, signal } = request;
      signal.throwIfAborted();
      const ending = new AbortController();
      const onAbort = () => ending.abort(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      const timer = setTimeout(
        () => ending.abort(new Error(`there was no complete answer within ${timeoutMs} ms`)),
        timeoutMs,
      );
      try {
        // undici ignores the signal until it is connected, hence the race.
        return await Promise.race([exchange(agent, request, ending.signal), whenAborted(ending.signal)]);
      } catch (error) {
        throw isMalformed(error) ? new OutboundRefused(error.message, { cause: error }) : error;
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      }
    },
    close: () => agent.destroy(),
  };
}

async function exchange(agent: Agent, request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
  const { method, body = null, bodyLimitBytes } = request;
  const url = parseUrl(request.url);
  const headers = { ...DEFAULT_HEADERS, ...basicAuthentication(url), ...request.headers };
  const answer = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers,
    body,
    signal,
  });
  return {
    status: answer.statusCode,
    headers: Object.fromEntries(
      Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join(", ")]),
    ),
    ...(await readUpTo(bodyLimitBytes, answer.body)),
  };
}

async function readUpTo(limit: number, stream: AsyncIterable<Buffer>): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    // Leaving the loop closes the connection, so the rest is not read.
    if (length > limit) break;
  }
  return { body: Buffer.concat(chunks, Math.min(length, limit)), truncated: length > limit };
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** undici's errors for an invalid request, such as a line break in a header. Their messages contain no values. */
function isMalformed(error: unknown): error is Error {
  return (
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.NotSupportedError ||
    error instanceof errors.RequestContentLengthMismatchError
  );
}

/** The URL for messages and logs: without user, password and query, which may be secret. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return "(no valid URL)";
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

function parseUrl(text: string): URL {
  if (!URL.canParse(text))
    throw new OutboundRefused("The URL is not valid; write a complete one, such as https://host/path.");
  const url = new URL(text);
  if (url.protocol === "http:" || url.protocol === "https:") return url;
  throw new OutboundRefused(`Only http and https URLs are allowed, and this one begins with ${url.protocol}`);
}

function basicAuthentication(url: URL): { authorization?: string } {
  if (url.username === "" && url.password === "") return {};
  let credentials: string;
  try {
    credentials = String(urlToHttpOptions(url).auth);
  } catch {
    throw new OutboundRefused("The user or password in the URL has a % that is not followed by two hex digits.");
  }
  return { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
}

function connectToPublic(setting: string | undefined): buildConnector.connector {
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: publicOnly(systemLookup, setting) });
  return (options, callback) => {
    // An IP address needs no lookup. (The URL parser has turned forms such as 0x7f.1 into 127.0.0.1.)
    const { hostname } = options;
    if (isIP(hostname) !== 0 && !isPublic(hostname)) callback(refusal(`${hostname} is`, setting), null);
    else connect(options, callback);
  };
}

/** Keeps only the public addresses of a lookup; an error if there are none. */
export function publicOnly(lookup: typeof systemLookup, setting: string | undefined): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const addresses = found.filter(({ address }) => isPublic(address));
      const [first] = addresses;
      if (!first) {
        const refused = found.map(({ address }) => address).join(", ");
        callback(refusal(`${hostname} resolves to ${refused}, which is`, setting), []);
      } else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function refusal(subject: string, setting: string | undefined): OutboundRefused {
  const advice = setting === undefined ? "" : `; set ${setting}=true to permit it`;
  return new OutboundRefused(`${subject} not a public address${advice}.`);
}
