/**
 * The requests of Trino's protocol: a statement is posted, and each reply has the URI of the next page, until the last has
 * none. The login is sent only to the configured server, whatever URI a reply contains.
 */
import { isRecord } from "../kernel/json/is-record.ts";
import { createOutbound, type OutboundAnswer, shownUrl } from "../kernel/net/outbound.ts";
import { type RetryPolicy, withRetry } from "../kernel/work/retry.ts";
import { EngineRefusal } from "./engine.ts";
import type { TrinoSettings } from "./settings.ts";
import { parsePage, type TypeSignature } from "./trino-values.ts";

/** The fields that are used; Trino's `QueryResults` has more. */
export interface Page {
  /** Absent on the last page. */
  nextUri?: string;
  columns?: { name: string; typeSignature: TypeSignature }[];
  data?: unknown[][];
  /** Present for a statement that returns no rows of its own. */
  updateType?: string;
  updateCount?: number;
  error?: { message: string; errorName?: string; errorType?: string };
}

export interface TrinoHttp {
  submit(statement: string, signal: AbortSignal): Promise<Page>;
  next(uri: string, signal: AbortSignal): Promise<Page>;
  /** Cancels the query that `uri` is the next page of. */
  cancel(uri: string): Promise<void>;
  close(): Promise<void>;
}

/** Trino answers within a second or so, with an empty page if it has none yet. */
const REQUEST_TIMEOUT_MS = 60_000;
const CANCEL_TIMEOUT_MS = 5_000;
/** Trino ends a page after about a megabyte, but never splits a row. */
const PAGE_BYTES_MAX = 128 * 1024 * 1024;
/** About 20 s in all, enough for a gateway to restart. */
const RETRY: RetryPolicy = { maxAttempts: 10, baseMs: 100, factor: 2, capMs: 5_000, jitter: 0.5 };
/** The server did not accept the statement, so sending it again is safe. */
const NOT_ACCEPTED = new Set([429, 503]);
const TRANSIENT = new Set([...NOT_ACCEPTED, 502, 504]);
const LIMITS = { timeoutMs: REQUEST_TIMEOUT_MS, bodyLimitBytes: PAGE_BYTES_MAX };

class StatusError extends Error {
  readonly status: number;

  constructor(status: number, url: string) {
    const login = status === 401 || status === 403 ? " It does not accept the login from the engine's settings." : "";
    super(`Trino answered ${shownUrl(url)} with status ${status}.${login}`);
    this.name = "StatusError";
    this.status = status;
  }
}

export function createTrinoHttp(settings: TrinoSettings): TrinoHttp {
  const base = settings.url.replace(/\/+$/, "");
  const { origin } = new URL(base);
  // The operator configured this address, so it may be in a private network.
  const outbound = createOutbound({ allowPrivate: true });
  const login = loginOf(settings);
  const session = { ...login, ...sessionOf(settings) };

  async function exchange(request: Parameters<typeof outbound.request>[0]): Promise<OutboundAnswer> {
    const answer = await outbound.request(request);
    if (answer.status !== 200) throw new StatusError(answer.status, request.url);
    return answer;
  }

  return {
    async submit(statement, signal) {
      const request = { method: "POST", url: `${base}/v1/statement`, headers: session, body: statement } as const;
      const send = () => withLateAbort(signal, (late) => exchange({ ...request, ...LIMITS, signal: late }));
      const retryOn = (error: unknown) => error instanceof StatusError && NOT_ACCEPTED.has(error.status);
      return pageOf(await withRetry(send, { policy: RETRY, retryOn, signal }));
    },
    async next(uri, signal) {
      const request = { method: "GET", url: onSameServer(uri, origin), headers: login, ...LIMITS, signal } as const;
      // A page can be requested again, so a lost reply is harmless.
      const retryOn = (error: unknown) => !(error instanceof StatusError) || TRANSIENT.has(error.status);
      return pageOf(await withRetry(() => exchange(request), { policy: RETRY, retryOn, signal }));
    },
    async cancel(uri) {
      const signal = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
      try {
        await outbound.request({ method: "DELETE", url: onSameServer(uri, origin), headers: login, ...LIMITS, signal });
      } catch {
        // Trino abandons a query that nobody polls.
      }
    },
    close: outbound.close,
  };
}

function loginOf({ user, password, token }: TrinoSettings): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

function sessionOf({ user, catalog, schema }: TrinoSettings): Record<string, string> {
  return {
    "x-trino-user": user,
    "x-trino-source": "millrace",
    // The same result in every time zone.
    "x-trino-time-zone": "UTC",
    // Without it Trino rounds times to milliseconds.
    "x-trino-client-capabilities": "PARAMETRIC_DATETIME",
    "content-type": "text/plain; charset=utf-8",
    ...(catalog === undefined ? {} : { "x-trino-catalog": catalog }),
    ...(schema === undefined ? {} : { "x-trino-schema": schema }),
  };
}

/** A posted statement runs, and only the reply has the URI to cancel it. So an abort waits a while for the reply. */
async function withLateAbort<T>(signal: AbortSignal, work: (late: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const follow = () => {
    timer = setTimeout(() => late.abort(signal.reason), CANCEL_TIMEOUT_MS);
  };
  signal.addEventListener("abort", follow, { once: true });
  try {
    return await work(late.signal);
  } finally {
    signal.removeEventListener("abort", follow);
    clearTimeout(timer);
  }
}

function onSameServer(uri: string, origin: string): string {
  if (URL.canParse(uri) && new URL(uri).origin === origin) return uri;
  throw new Error(
    `Trino at ${origin} names ${shownUrl(uri)} as the address of its next page, which is another server, so no request was sent there. ` +
      "If Trino runs behind a proxy, set http-server.process-forwarded=true on it.",
  );
}

function pageOf({ body, truncated }: OutboundAnswer): Page {
  if (truncated) throw new EngineRefusal(`A page of the result is larger than ${PAGE_BYTES_MAX} bytes.`);
  try {
    const page = parsePage(body.toString("utf8"));
    if (isRecord(page) && typeof page["id"] === "string") return page;
  } catch {
    // Reported below.
  }
  throw new Error("The reply is not one of Trino's. Does the `url` of the engine point to a Trino server?");
}
