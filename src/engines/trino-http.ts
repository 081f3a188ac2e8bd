/**
 * The requests of Trino's protocol: a statement is posted, and each answer names the address of the next, until one names
 * none. The login goes to the configured server only, whatever address an answer names.
 */
import { isRecord } from "../kernel/json/is-record.ts";
import { createOutbound, type OutboundAnswer, shownUrl } from "../kernel/net/outbound.ts";
import { type RetryPolicy, withRetry } from "../kernel/work/retry.ts";
import { EngineRefusal } from "./engine.ts";
import type { TrinoSettings } from "./settings.ts";
import { parsePage, type TypeSignature } from "./trino-values.ts";

/** What is read of an answer; Trino's `QueryResults` has more. */
export interface Page {
  /** Absent from the last. */
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
  /** Ends the query whose next page this would be. */
  cancel(uri: string): Promise<void>;
  close(): Promise<void>;
}

/** Trino answers within a second or so, with an empty page if it has none yet. */
const REQUEST_TIMEOUT_MS = 60_000;
const CANCEL_TIMEOUT_MS = 5_000;
/** Trino ends a page after about a megabyte, but a row is never divided. */
const PAGE_BYTES_MAX = 128 * 1024 * 1024;
/** Some 20 s in all, for a gateway that restarts. */
const RETRY: RetryPolicy = { maxAttempts: 10, baseMs: 100, factor: 2, capMs: 5_000, jitter: 0.5 };
/** Not taken on, hence safe to send again whatever it was. */
const NOT_TAKEN = new Set([429, 503]);
const MAY_PASS = new Set([...NOT_TAKEN, 502, 504]);
const LIMITS = { timeoutMs: REQUEST_TIMEOUT_MS, bodyLimitBytes: PAGE_BYTES_MAX };

class StatusError extends Error {
  readonly status: number;

  constructor(status: number, url: string) {
    const login = status === 401 || status === 403 ? " The login of the engine's settings is not accepted." : "";
    super(`Trino answered ${shownUrl(url)} with status ${status}.${login}`);
    this.name = "StatusError";
    this.status = status;
  }
}

export function createTrinoHttp(settings: TrinoSettings): TrinoHttp {
  const base = settings.url.replace(/\/+$/, "");
  const { origin } = new URL(base);
  // Where the warehouse is was chosen by the operator, so it may well be in a private network.
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
      const send = () => untilAnswered(signal, (late) => exchange({ ...request, ...LIMITS, signal: late }));
      const retryOn = (error: unknown) => error instanceof StatusError && NOT_TAKEN.has(error.status);
      return pageOf(await withRetry(send, { policy: RETRY, retryOn, signal }));
    },
    async next(uri, signal) {
      const request = { method: "GET", url: ownAddress(uri, origin), headers: login, ...LIMITS, signal } as const;
      // The same page may be asked for again, so an answer that was lost on its way is no loss.
      const retryOn = (error: unknown) => !(error instanceof StatusError) || MAY_PASS.has(error.status);
      return pageOf(await withRetry(() => exchange(request), { policy: RETRY, retryOn, signal }));
    },
    async cancel(uri) {
      const signal = AbortSignal.timeout(CANCEL_TIMEOUT_MS);
      try {
        await outbound.request({ method: "DELETE", url: ownAddress(uri, origin), headers: login, ...LIMITS, signal });
      } catch {
        // Trino ends by itself what nobody asks for any more.
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
    // One result wherever it is computed.
    "x-trino-time-zone": "UTC",
    // Without it Trino rounds times to milliseconds.
    "x-trino-client-capabilities": "PARAMETRIC_DATETIME",
    "content-type": "text/plain; charset=utf-8",
    ...(catalog === undefined ? {} : { "x-trino-catalog": catalog }),
    ...(schema === undefined ? {} : { "x-trino-schema": schema }),
  };
}

/** A statement that was sent runs, and only its answer tells how to end it: so the signal is obeyed a little later. */
async function untilAnswered<T>(signal: AbortSignal, work: (late: AbortSignal) => Promise<T>): Promise<T> {
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

function ownAddress(uri: string, origin: string): string {
  if (URL.canParse(uri) && new URL(uri).origin === origin) return uri;
  throw new Error(
    `Trino at ${origin} names ${shownUrl(uri)} as the address of its rows, which is another server, so it is not asked. ` +
      "Behind a proxy, let Trino know its own address: http-server.process-forwarded=true.",
  );
}

function pageOf({ body, truncated }: OutboundAnswer): Page {
  if (truncated) throw new EngineRefusal(`A page of the result is larger than ${PAGE_BYTES_MAX} bytes.`);
  try {
    const page = parsePage(body.toString("utf8"));
    if (isRecord(page) && typeof page["id"] === "string") return page;
  } catch {
    // Told below.
  }
  throw new Error("The answer is not what Trino answers to a statement. Does the url of the engine lead to a Trino?");
}
