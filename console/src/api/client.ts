/** Calls of the public API, by the cookie of the session. */
import { serverClock } from "./clock.ts";
import { createConnectivity } from "./connectivity.ts";

/** What the API answers to a request that it refuses: a sentence and a stable code. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** How long the server asks to wait before the same request. */
  readonly retryAfterMs: number;
  /** The same request is safe to send again: it did nothing, or a second one changes nothing more. */
  readonly isRepeatable: boolean;

  constructor(
    status: number,
    { error, code, details }: { error: string; code: string; details?: Record<string, unknown> },
    { retryAfterMs = 0, isRepeatable = false }: { retryAfterMs?: number; isRepeatable?: boolean } = {},
  ) {
    super(error);
    this.isRepeatable = isRepeatable;
    this.retryAfterMs = retryAfterMs;
    this.status = status;
    this.code = code;
    this.details = details ?? {};
  }
}

export interface Reply<Data> {
  data: Data;
  /** The reply contains all changes with a hint up to this one. */
  rev: bigint;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
interface CallOptions {
  method?: Method;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

/** Called when the session has expired or there is none. */
let onSignedOut = (): void => {};
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

export async function call<Data>(
  path: string,
  { method = "GET", body, headers, signal }: CallOptions = {},
): Promise<Reply<Data>> {
  const { response, text } = await send(path, {
    method,
    ...(signal && { signal }),
    headers: {
      ...headers,
      // Writes by cookie need it: a page of another site cannot send it.
      ...(method !== "GET" && { "x-millrace-console": "1" }),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) {
    const error = new ApiError(response.status, problemIn(text, response), {
      retryAfterMs: retryAfterMsIn(response),
      isRepeatable: mayRepeat(method, response.status, problemIn(text, response).code),
    });
    if (response.status === 401) onSignedOut();
    throw error;
  }
  return {
    data: (text === "" ? undefined : JSON.parse(text)) as Data,
    rev: BigInt(response.headers.get("millrace-rev") ?? "0"),
  };
}

/** A write; returns the response body. */
export async function act<Data = unknown>(path: string, method: Exclude<Method, "GET">, body?: unknown): Promise<Data> {
  return (await call<Data>(path, { method, ...(body !== undefined && { body }) })).data;
}

const PROBE_MS = 2_000;
/** Statuses that a proxy returns for an unreachable server. */
const GATEWAY = [502, 504];

export const connectivity = createConnectivity(probe, () => new Promise((resolve) => setTimeout(resolve, PROBE_MS)));

/** Checks whether the server responds, with a small public endpoint. */
export async function probe(): Promise<void> {
  await send("/healthz", { method: "GET" }).catch(() => {});
}

/** With these the server refuses a request before it does anything. */
const NOT_DONE = ["OVERLOADED", "SENDING_TOO_FAST", "TOO_MANY_BYTES", "SHUTTING_DOWN"];
/** With these it is unknown whether a request was carried out: the database may have been lost at its commit. */
const OUTCOME_UNKNOWN = [0, 502, 503, 504];

/** PUT and DELETE may be repeated by their definition, whatever has become of the first. */
function mayRepeat(method: Method, status: number, code: string): boolean {
  if (status === 429 || NOT_DONE.includes(code)) return true;
  return OUTCOME_UNKNOWN.includes(status) && method !== "POST" && method !== "PATCH";
}

async function send(
  path: string,
  init: RequestInit & { method: Method },
): Promise<{ response: Response; text: string }> {
  const sentMs = Date.now();
  try {
    const response = await fetch(path, { ...init, credentials: "same-origin" });
    serverClock.learn(response.headers.get("date"), sentMs);
    const text = await response.text(); // The body can fail too.
    if (GATEWAY.includes(response.status)) connectivity.unanswered(sentMs);
    else connectivity.answered();
    return { response, text };
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    connectivity.unanswered(sentMs);
    const problem = { error: "The server is not responding.", code: "SERVER_AWAY" };
    throw new ApiError(0, problem, { isRepeatable: mayRepeat(init.method, 0, problem.code) });
  }
}

/** A proxy may name an hour for its maintenance, and the page is to notice when that is over earlier. */
const RETRY_AFTER_MAX_MS = 60_000;

function retryAfterMsIn({ headers }: Response): number {
  return Math.min(1_000 * (Number(headers.get("retry-after")) || 0), RETRY_AFTER_MAX_MS);
}

function problemIn(text: string, { status, statusText }: Response): { error: string; code: string } {
  try {
    const problem = JSON.parse(text) as { error?: unknown };
    if (typeof problem.error === "string") return problem as { error: string; code: string };
  } catch {
    // A proxy returns HTML.
  }
  return { error: `The server answered ${status} ${statusText}.`, code: "UNEXPECTED" };
}

/** A path with its parameters encoded: pathTo`/api/v1/runs/${id}`. */
export function pathTo(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.reduce((text, part, index) => `${text}${encodeURIComponent(values[index - 1] ?? "")}${part}`);
}

/** With the parameters that have a value. */
export function withQuery(
  base: string,
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") params.set(name, String(value));
  return params.size === 0 ? base : `${base}?${params}`;
}
