/**
 * The requests of Trino's protocol: a statement is posted, and each reply has the URI of the next page, until the last has
 * none. The login is sent only to the configured server, whatever URI a reply contains.
 */
import { rootCertificates } from "node:tls";
import { isRecord } from "../../kernel/json/is-record.ts";
import { createOutbound, type OutboundAnswer, OutboundFailed, shownUrl } from "../../kernel/net/outbound.ts";
import { type Mask, maskOf } from "../../kernel/secrets/mask.ts";
import { oneLine } from "../../kernel/text/sentences.ts";
import { type RetryPolicy, withRetry } from "../../kernel/work/retry.ts";
import { EngineRefusal } from "../engine.ts";
import type { TrinoSettings } from "../settings.ts";
import { parsePage, type TypeSignature } from "./values.ts";

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
  /** Throws NotAccepted if the statement was not, so that sending it again is safe. */
  submit(statement: string, signal: AbortSignal): Promise<Page>;
  /** Asks again where an answer was lost. Throws QueryLost if the server does not know the query. */
  next(uri: string, signal: AbortSignal): Promise<Page>;
  /** Cancels the query that `uri` is the next page of. */
  cancel(uri: string): Promise<void>;
  close(): Promise<void>;
}

/** The server is busy, restarts, or cannot be reached, so the statement did not begin. */
export class NotAccepted extends Error {
  override readonly name = "NotAccepted";
}

/** The server has answered for this query before and no longer knows it: it was restarted. */
export class QueryLost extends Error {
  override readonly name = "QueryLost";
}

/** Some two minutes in all, in which a coordinator with many catalogs has started. */
export const RESTART: RetryPolicy = { maxAttempts: 36, baseMs: 100, factor: 2, capMs: 5_000, jitter: 0.5 };

/** Trino answers within a second or so, with an empty page if it has none yet. */
const REQUEST_TIMEOUT_MS = 60_000;
const CANCEL_TIMEOUT_MS = 5_000;
/** Trino ends a page after about a megabyte, but never splits a row. */
const PAGE_BYTES_MAX = 128 * 1024 * 1024;
/** Of the text with which Trino gives its reason. */
const REASON_LENGTH_MAX = 500;
/** The server did not accept the statement. */
const BUSY = new Set([429, 503]);
const TRANSIENT = new Set([...BUSY, 502, 504]);
/** A certificate that is not accepted, or a name that does not exist, stays so. */
const UNREACHABLE = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "EAI_AGAIN"]);
const LIMITS = { timeoutMs: REQUEST_TIMEOUT_MS, bodyLimitBytes: PAGE_BYTES_MAX };

class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: number;

  constructor(status: number, sentence: string) {
    super(sentence);
    this.status = status;
  }
}

/** `ca` is the text of further certificates to trust. */
export function createTrinoHttp(settings: TrinoSettings, ca?: string): TrinoHttp {
  const base = settings.url.replace(/\/+$/, "");
  const { origin } = new URL(base);
  // The operator configured this address, so it may be in a private network.
  const outbound = createOutbound({
    allowPrivate: true,
    ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
  });
  const mask = maskOf([settings.password ?? "", settings.token ?? ""].filter(Boolean));
  const login = loginOf(settings);
  const session = { ...login, ...sessionOf(settings) };
  // Whether a page came from this address, so that a 404 is not that of a wrong URL.
  let hasAnswered = false;

  async function exchange(request: Parameters<typeof outbound.request>[0]): Promise<OutboundAnswer> {
    const answer = await outbound.request(request);
    if (answer.status === 200) return answer;
    throw new StatusError(answer.status, sentenceOf(answer, request.url, mask));
  }

  function isNotAccepted(error: unknown): boolean {
    if (error instanceof StatusError) return BUSY.has(error.status) || (error.status === 404 && hasAnswered);
    if (!(error instanceof OutboundFailed) || error.sent) return false;
    return UNREACHABLE.has(String((error.cause as NodeJS.ErrnoException | undefined)?.code));
  }

  return {
    async submit(statement, signal) {
      const request = { method: "POST", url: `${base}/v1/statement`, headers: session, body: statement } as const;
      try {
        const page = pageOf(await withLateAbort(signal, (late) => exchange({ ...request, ...LIMITS, signal: late })));
        hasAnswered = true;
        return page;
      } catch (error) {
        throw isNotAccepted(error) ? new NotAccepted((error as Error).message, { cause: error }) : error;
      }
    },
    async next(uri, signal) {
      const request = { method: "GET", url: onSameServer(uri, origin), headers: login, ...LIMITS, signal } as const;
      // A page can be requested again, so a lost reply is harmless.
      const retryOn = (error: unknown) => !(error instanceof StatusError) || TRANSIENT.has(error.status);
      try {
        return pageOf(await withRetry(() => exchange(request), { policy: RESTART, retryOn, signal }));
      } catch (error) {
        const isLost = error instanceof StatusError && error.status === 404;
        throw isLost ? new QueryLost(`${error.message} It was probably restarted.`, { cause: error }) : error;
      }
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

function sessionOf({ user, catalog, schema, session = {} }: TrinoSettings): Record<string, string> {
  const properties = Object.entries(session).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
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
    ...(properties.length === 0 ? {} : { "x-trino-session": properties.join(",") }),
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
    `Trino at ${origin} names ${shownUri(uri)} as the address of its next page, which is another server, so no request was sent there. ` +
      "If Trino runs behind a proxy, set http-server.process-forwarded=true on it.",
  );
}

/** A page of HTML is that of a proxy, and no reason. */
function sentenceOf({ status, headers, body }: OutboundAnswer, url: string, mask: Mask): string {
  const isText = !/html/i.test(headers["content-type"] ?? "");
  const reason = isText ? oneLine(mask.text(body.toString("utf8")), REASON_LENGTH_MAX) : "";
  const login = status === 401 || status === 403 ? " It does not accept the login from the engine's settings." : "";
  return `Trino answered ${shownUri(url)} with status ${status}${reason === "" ? "." : `: ${reason.replace(/\.?$/, ".")}`}${login}`;
}

/**
 * Without the slug behind the id of a query, and the number of the page: who knows the slug can read the result, and an error
 * is read by more people than that.
 */
function shownUri(uri: string): string {
  return shownUrl(uri).replace(/(\/v1\/statement\/\w+\/\w+)\/.*$/, "$1");
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
