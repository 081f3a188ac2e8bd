/** The HTTP client of all commands that call a running server, with messages for everything that can fail. */
import { loadClientConfig } from "../../kernel/config/client.ts";
import type { Flags } from "../../kernel/config/read-settings.ts";
import { OperatorError } from "../../kernel/errors.ts";
import { VERSION_HEADER } from "../../kernel/http/version-header.ts";
import { CATALOGUE } from "../../modules.ts";
import { EXIT, exitCodeOf } from "./exit-codes.ts";

export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Made with `pathTo`. */
  path: string;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** In addition to those of every call. */
  headers?: Readonly<Record<string, string>>;
  /** Fields that are undefined are not sent. */
  body?: object;
  /** Instead of `body`: JSON text that is sent unchanged. */
  json?: string;
  /** How long the server may wait before it answers, as in a long poll. */
  waitSeconds?: number;
  /** The limit of the whole call, without `waitSeconds`. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface Client {
  /** The server's address, without credentials. */
  url: string;
  hasKey: boolean;
  /** The reply of a successful call; throws an OperatorError otherwise. */
  call<Reply>(request: Request): Promise<Reply>;
  /** The same for a reply that is a file of this type, such as `text/csv`. */
  download(request: Request, type: string): Promise<Downloaded>;
  /**
   * The text of an event stream, in chunks, until the server ends it; the first chunk is empty and means that the stream is
   * open. Throws like `call`, also if nothing arrives for `timeoutMs`.
   */
  stream(request: Request): AsyncGenerator<string, void>;
}

export interface Downloaded {
  text: string;
  headers: Headers;
}

/** The server answered with an error. */
export class Refusal extends OperatorError {
  readonly status: number;
  /** The reply: `{ error, code, details? }`. */
  readonly body: unknown;

  constructor(sentence: string, status: number, body: unknown) {
    const code = (body as { code?: unknown } | null)?.code;
    super(sentence, exitCodeOf(status, typeof code === "string" ? code : undefined));
    this.name = "Refusal";
    this.status = status;
    this.body = body;
  }

  /** The same refusal with another message. */
  withMessage(sentence: string): Refusal {
    return new Refusal(sentence, this.status, this.body);
  }
}

const TIMEOUT_MS = 30_000;
const EVENT_STREAM = "text/event-stream";

export function createClient({ flags, env }: { flags: Flags; env: NodeJS.ProcessEnv }): Client {
  const { url: server, key } = loadClientConfig({ env, flags, known: Object.values(CATALOGUE.settings).flat() });
  const base = new URL(server.endsWith("/") ? server : `${server}/`);
  if (base.username !== "" || base.password !== "") {
    throw new OperatorError(
      "MILLRACE_URL contains a user or a password. Remove them; the key belongs in MILLRACE_KEY.",
      EXIT.usage,
    );
  }

  async function send(
    { method, path, query = {}, headers = {}, body, json }: Request,
    signal: AbortSignal,
  ): Promise<Response> {
    const content = json ?? (body === undefined ? undefined : JSON.stringify(body));
    const url = new URL(path, base);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    return fetch(url, {
      method,
      redirect: "manual",
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(content === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(content === undefined ? {} : { body: content }),
      signal,
    });
  }

  function replyIn<Reply>(response: Response, text: string): Reply {
    const reply = parseJson(text);
    const isRedirect = response.status >= 300 && response.status < 400;
    if (reply === undefined || isRedirect) throw notMillrace(base, response, "not JSON");
    // Whatever its fields are called: the JSON of another server would be shown as a list of nothing, or break the command.
    if (!response.headers.has(VERSION_HEADER) && !(isProblem(reply) && !response.ok)) {
      throw notMillrace(base, response, `JSON without the header ${VERSION_HEADER}`);
    }
    if (!response.ok) throw new Refusal(refusalSentence(reply, response.status, key), response.status, reply);
    return reply as Reply;
  }

  function explained(error: unknown, signal: AbortSignal | undefined): unknown {
    if (error instanceof OperatorError) return error;
    return signal?.aborted ? signal.reason : unreachable(base, error);
  }

  async function exchange<Result>(request: Request, read: (response: Response) => Promise<Result>): Promise<Result> {
    const { waitSeconds = 0, timeoutMs = TIMEOUT_MS, signal } = request;
    const limit = AbortSignal.timeout(timeoutMs + waitSeconds * 1000);
    try {
      return await read(await send(request, signal === undefined ? limit : AbortSignal.any([limit, signal])));
    } catch (error) {
      throw explained(error, signal);
    }
  }

  return {
    url: base.href,
    hasKey: key !== undefined,
    call: <Reply>(request: Request) =>
      exchange(request, async (response) => replyIn<Reply>(response, await response.text())),
    download: (request, type) =>
      exchange(request, async (response) => {
        const text = await response.text();
        if (!response.ok || !response.headers.get("content-type")?.startsWith(type)) {
          replyIn(response, text);
          throw notMillrace(base, response, `not ${type}`);
        }
        return { text, headers: response.headers };
      }),
    async *stream(request) {
      const { timeoutMs = TIMEOUT_MS, signal } = request;
      const ending = new AbortController();
      const idleTimer = setTimeout(() => ending.abort(new DOMException("idle", "TimeoutError")), timeoutMs);
      try {
        const either = signal === undefined ? ending.signal : AbortSignal.any([ending.signal, signal]);
        const response = await send({ ...request, headers: { accept: EVENT_STREAM, ...request.headers } }, either);
        if (!response.ok || !response.headers.get("content-type")?.startsWith(EVENT_STREAM) || response.body === null) {
          replyIn(response, await response.text());
          throw notMillrace(base, response, "not a stream of events");
        }
        yield "";
        const decoder = new TextDecoder();
        for await (const bytes of response.body) {
          idleTimer.refresh();
          yield decoder.decode(bytes as Uint8Array, { stream: true });
        }
      } catch (error) {
        throw explained(error, signal);
      } finally {
        clearTimeout(idleTimer);
        ending.abort(); // Closes the connection when the reader leaves the loop.
      }
    },
  };
}

/** A path below the server's address, each value encoded: pathTo`api/v1/pipeline/files/${filename}`. */
export function pathTo(parts: TemplateStringsArray, ...values: string[]): string {
  for (const value of values) {
    // Encoding does not keep these from changing the path.
    if (["", ".", ".."].includes(value)) throw new OperatorError(`\`${value}\` is not a name.`, EXIT.usage);
  }
  return String.raw({ raw: parts }, ...values.map(encodeURIComponent));
}

/** Whether a retry may succeed. */
export function isTransient(error: unknown): boolean {
  return error instanceof OperatorError && error.exitCode === EXIT.unreachable;
}

function unreachable(base: URL, error: unknown): OperatorError {
  const { name, message, cause } = error as {
    name?: string;
    message?: string;
    cause?: { code?: string; message?: string };
  };
  const reason = name === "TimeoutError" ? "no answer in time" : (cause?.code ?? cause?.message ?? message);
  return new OperatorError(
    `No Millrace answers at ${base.href} (${reason}). Start one with \`millrace serve\`, or set MILLRACE_URL to where it runs.`,
    EXIT.unreachable,
  );
}

function notMillrace(base: URL, { status, headers }: Response, found: string): OperatorError {
  const location = headers.get("location");
  const what = location === null ? `HTTP ${status}, ${found}` : `HTTP ${status}, a redirect to ${location}`;
  const exitCode = exitCodeOf(status) === EXIT.unreachable ? EXIT.unreachable : EXIT.failed;
  return new OperatorError(`The server at ${base.href} is not Millrace (${what}). Check MILLRACE_URL.`, exitCode);
}

/** Errors of Millrace, also those that it answers before it knows the request. */
function isProblem(reply: unknown): boolean {
  const { error, code } = (reply ?? {}) as { error?: unknown; code?: unknown };
  return typeof error === "string" && typeof code === "string";
}

function refusalSentence(body: unknown, status: number, key: string | undefined): string {
  const { error, code } = (body ?? {}) as { error?: unknown; code?: unknown };
  const sentence = typeof error === "string" ? error : `The server answered with HTTP ${status}.`;
  const advice = status === 401 ? keyAdvice(key) : "";
  return `${sentence}${advice} [${typeof code === "string" ? code : status}]`;
}

function keyAdvice(key: string | undefined): string {
  if (key !== undefined) return " This command sent the key in MILLRACE_KEY.";
  return " Set MILLRACE_KEY: the server's first start printed a key, and `millrace keys create` creates more.";
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
