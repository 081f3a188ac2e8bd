/**
 * The HTTP server for the routes of all modules. It handles keys and scopes, rate limits, request ids, limits, metrics,
 * traces, errors and the OpenAPI description. A route names the scope that it needs, that any scope will do, or that it is
 * public; a route without any of these stops the start.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import SerializerSelector from "@fastify/fast-json-stringify-compiler";
import rateLimit from "@fastify/rate-limit";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { Span } from "@opentelemetry/api";
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
  type RawServerDefault,
  type RouteOptions,
} from "fastify";
import type { Actor } from "../auth/audit.ts";
import type { ConsoleSessions } from "../auth/console-sessions.ts";
import type { Keys } from "../auth/keys.ts";
import type { Caller } from "../auth/scopes.ts";
import type { Tags } from "../catalogue.ts";
import { kernelError } from "../errors.ts";
import { systemIds } from "../ids.ts";
import type { Log } from "../telemetry/log.ts";
import type { KERNEL_METRICS } from "../telemetry/metric-table.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { endRequestSpan, inSpan, startRequestSpan } from "../telemetry/tracing.ts";
import { systemClock } from "../time/clock.ts";
import { shownRoute } from "./action-path.ts";
import { ANY_SCOPE, type AuthenticateOptions, createAuthenticate, isAnonymous, PUBLIC } from "./authenticate.ts";
import { parseJson } from "./body.ts";
import { HEADERS, isReading, REFERENCE_HEADERS } from "./browser.ts";
import { BYTES_IN_FLIGHT, createBytesInFlight } from "./bytes-in-flight.ts";
import { isReference, useOpenApi } from "./openapi.ts";
import { answerBadAddress, answerUnreadable, useProblems } from "./problems.ts";
import { readBody } from "./read-body.ts";
import { NoQuery } from "./schemas.ts";
import { closeConnectionsOnStop } from "./stop-connections.ts";
import { useStrictValidation } from "./validation.ts";
import { VERSION_HEADER } from "./version-header.ts";
import { createWhenUsed } from "./when-used.ts";

export type Http = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The scope that a caller needs, `public` for everyone, or `any` for a caller that has some scope. */
    scope?: string;
    /** The body may be left out; an empty one counts as none, whatever its content type. */
    bodyOptional?: true;
    /** The status for a caller over its rate limit, for clients that do not retry after 429, such as those of OpenLineage. */
    busyStatus?: 503;
    /** Unknown query parameters are ignored, for clients that add their own. All other routes refuse them. */
    openQuery?: true;
  }
  interface FastifyRequest {
    caller: Caller;
    span: Span | undefined;
    /** What was taken for this request and is given back when it is answered or the caller has disconnected. */
    givesBack: (() => void)[] | undefined;
    /** Aborted when the caller's key is revoked, or its token or session ends. For a request that stays open. */
    accessEnds(): AbortSignal;
    /** Counts bytes of the body among those in flight until then, or until what it returns is called. Throws TOO_MANY_BYTES. */
    holdBytes(bytes: number): () => void;
  }
}

export interface HttpOptions extends AuthenticateOptions {
  log: Log;
  metrics: Metrics<typeof KERNEL_METRICS>;
  keys: Keys;
  sessions: ConsoleSessions;
  version: string;
  /** Of this process. Without `api` it answers its public routes only. */
  roles: readonly string[];
  /** The tags that group routes in the OpenAPI document. */
  tags: Tags;
  /** Addresses and networks of the proxies whose `X-Forwarded-*` headers count. */
  trustedProxies: readonly string[];
  bodyLimitBytes: number;
  /** Requests per minute for each key and process; 0 is no limit. A key may have its own limit. */
  rateLimitPerMinute: number;
  /** The highest rev of the hints that this process has received (hints/hints.ts). */
  rev: () => bigint;
  /** While true, new requests are refused and those in flight finish. */
  isStopping: () => boolean;
}

/** Replies to reads below it have a rev. */
const API = "/api/v1/";
const TIMER_MS_MAX = 2 ** 31 - 1;
const REQUEST_ID = /^[\w.:-]{1,64}$/;
const RETRY_AFTER_SECONDS = 2;
/** Measured after decoding. Well above every length that a schema allows, so that the schema answers with its own limit. */
const PARAMETER_LENGTH_MAX = 2_048;
/** For receiving a whole request: a body that arrives slowly would hold its connection for ever. Answers may take longer. */
const REQUEST_TIMEOUT_MS = 60_000;
/** The status that nginx logs when the caller disconnects before the answer. */
const CALLER_DISCONNECTED = 499;

export async function createHttp(options: HttpOptions): Promise<Http> {
  const { log, metrics, keys, sessions, scopes } = options;
  const authenticate = createAuthenticate(options);
  const logger: FastifyBaseLogger = log; // The wider type, so that routes do not depend on pino.
  const http: Http = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }), // Metrics and traces cover requests.
    bodyLimit: options.bodyLimitBytes,
    trustProxy: options.trustedProxies.length > 0 && [...options.trustedProxies],
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    return503OnClosing: false, // The hook below answers with the sentence of the catalogue.
    forceCloseConnections: "idle",
    schemaController: { compilersFactory: { buildSerializer: serializersWhenUsed } },
    frameworkErrors: answerBadAddress,
    clientErrorHandler: answerUnreadable,
    // The caller's own request id is kept, so that both logs can be correlated.
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && REQUEST_ID.test(given) ? given : systemIds.uuid();
    },
  }).withTypeProvider<TypeBoxTypeProvider>();

  http.setChildLoggerFactory((parent) => parent); // Log lines include the request id themselves; few requests log anything.
  closeConnectionsOnStop(http);
  http.removeAllContentTypeParsers();
  http.addContentTypeParser("application/json", async (request: FastifyRequest, payload: IncomingMessage) => {
    const length = request.headers["content-length"];
    const body = await readBody(payload, {
      limit: request.routeOptions.bodyLimit,
      declared: length === undefined ? undefined : Number(length),
      hold: (bytes) => request.holdBytes(bytes),
    });
    return body.length === 0 && needsNoBody(request) ? null : parseJson(body);
  });
  useStrictValidation(http);
  useProblems(http, options.roles);

  const bytesInFlight = createBytesInFlight(BYTES_IN_FLIGHT);
  http.decorateRequest("givesBack", undefined);
  http.decorateRequest("holdBytes", function (this: FastifyRequest, bytes: number): () => void {
    if (!this.givesBack) throw new Error("the caller has disconnected");
    const giveBack = bytesInFlight.take(identityOf(this), bytes);
    this.givesBack.push(giveBack);
    return giveBack;
  });
  http.decorateRequest("accessEnds", function (this: FastifyRequest): AbortSignal {
    const ended = new AbortController();
    const end = () => ended.abort();
    const { keyId, expiresAtMs, session } = this.caller;
    if (session)
      this.givesBack?.push(sessions.watch(session.id, end)); // It ends with its key.
    else if (keyId !== null) this.givesBack?.push(keys.watch(keyId, end));
    if (expiresAtMs !== undefined) {
      const timer = setTimeout(end, Math.min(Math.max(0, expiresAtMs - systemClock.now()), TIMER_MS_MAX));
      this.givesBack?.push(() => clearTimeout(timer));
    }
    return ended.signal;
  });
  http.decorateRequest("span", undefined);
  http.addHook("onRoute", ({ url, config }) => {
    if (isReference(url)) return;
    const scope = config?.scope;
    if (scope === undefined) throw new Error(`route ${url} names no scope`);
    if (scope !== PUBLIC && scope !== ANY_SCOPE && !Object.hasOwn(scopes, scope)) {
      throw new Error(`route ${url} names the scope ${scope}, which is in no catalogue`);
    }
  });
  http.addHook("onRoute", closeQuery);
  http.addHook("onRequest", async (request, reply) => {
    // Not `onResponse`, which is not called when the caller disconnects.
    request.givesBack = [];
    reply.raw.once("close", () => conclude(request, reply));
    reply.header("x-request-id", request.id).header(VERSION_HEADER, options.version);
    // Before the first read: the reply has all changes that were hinted up to this rev.
    const isApi = request.routeOptions.url?.startsWith(API) ?? false;
    if (isApi && isReading(request)) reply.header("millrace-rev", String(options.rev()));
    reply.headers(isReference(request.routeOptions.url) ? REFERENCE_HEADERS : HEADERS);
    if (options.isStopping()) throw kernelError("SHUTTING_DOWN", { seconds: RETRY_AFTER_SECONDS });
    const route = shownRoute(request.routeOptions.url);
    request.span = startRequestSpan(`${request.method} ${route}`, request.headers, { "http.route": route });
    request.caller = await inSpan(request.span, () => authenticate(request));
  });
  // Entered here, because the events that read the body would lose an earlier context.
  http.addHook("preHandler", (request, _reply, done) => (request.span ? inSpan(request.span, done) : done()));
  http.addHook("onSend", (_request, reply, payload, done) => {
    // Without it the caller would keep the connection, and so the stopping server, open.
    if (options.isStopping()) reply.header("connection", "close");
    done(null, payload);
  });

  function conclude(request: FastifyRequest, reply: FastifyReply): void {
    for (const giveBack of request.givesBack ?? []) giveBack();
    request.givesBack = undefined;
    const status = reply.raw.writableFinished ? reply.statusCode : CALLER_DISCONNECTED;
    const route = request.is404 && status < 400 ? "console" : shownRoute(request.routeOptions.url); // Its files are no routes.
    const labels = { method: request.method, route, status: String(status) };
    metrics.observe("millrace_http_request_seconds", labels, reply.elapsedTime / 1000);
    if (request.span) endRequestSpan(request.span, status);
  }

  const limitOf = ({ rateLimitPerMinute }: Caller) => rateLimitPerMinute ?? options.rateLimitPerMinute;
  await http.register(rateLimit, {
    hook: "preValidation",
    timeWindow: "1 minute",
    cache: 10_000,
    allowList: ({ caller, routeOptions: { url, config } }) =>
      config.scope === PUBLIC || isReference(url) || limitOf(caller) === 0,
    keyGenerator: identityOf,
    max: ({ caller }) => limitOf(caller),
    errorResponseBuilder: ({ caller, routeOptions: { config } }, { max, ttl }) =>
      kernelError(
        config.busyStatus === 503 ? "SENDING_TOO_FAST" : "RATE_LIMITED",
        { limit: max, seconds: Math.max(1, Math.ceil(ttl / 1000)) },
        { who: isAnonymous(caller) ? "This address" : "This key", what: "requests" },
      ),
  });
  await useOpenApi(http, options);
  return http;
}

const serializerWhenUsed = createWhenUsed<unknown, string>();

/** Every server has the same shared schemas, so that a serializer of one serves all. */
function serializersWhenUsed(...shared: Parameters<ReturnType<typeof SerializerSelector>>) {
  const serializerOf = SerializerSelector()(...shared);
  return (answer: Parameters<typeof serializerOf>[0]) => serializerWhenUsed(answer.schema, () => serializerOf(answer));
}

/**
 * Makes a route refuse query parameters that it does not declare: ignored, a misspelt `dryRun` would act, and a misspelt
 * filter would answer everything.
 */
function closeQuery(route: RouteOptions): void {
  if (isReference(route.url)) return;
  route.schema ??= {};
  const query = (route.schema.querystring ??= NoQuery) as { additionalProperties?: unknown };
  if (query.additionalProperties !== false && !route.config?.openQuery) {
    throw new Error(`route ${route.url} has an open query schema`);
  }
}

/** Many clients set the content type whether they send a body or not. */
function needsNoBody({ method, routeOptions }: FastifyRequest): boolean {
  return method === "DELETE" || routeOptions.config.bodyOptional === true;
}

/** The key that a limit counts for; without a stored key, the name and the address. */
export function identityOf({ caller, ip }: FastifyRequest): string {
  return caller.keyId ?? `${caller.name} ${ip}`;
}

/** Adds routes whose paths start with `prefix`. */
export async function under(http: Http, prefix: string, routes: (api: Http) => void): Promise<void> {
  await http.register(async (scope) => routes(scope as Http), { prefix });
}

/** The actor for the audit log. */
export function actorOf({ caller, ip, id }: FastifyRequest): Actor {
  return { caller, address: ip, requestId: id };
}
