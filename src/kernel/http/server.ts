/**
 * The HTTP server that all modules register their routes on: keys and scopes, rate limits, request ids, limits, metrics,
 * traces, errors and the OpenAPI description are done here once. A route says which scope it needs, or that it is public;
 * one that says neither stops the start.
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
} from "fastify";
import type { Actor } from "../auth/audit.ts";
import type { Keys } from "../auth/keys.ts";
import { type Caller, type ScopeTable, whyNot } from "../auth/scopes.ts";
import type { Tags } from "../catalogue.ts";
import { kernelError } from "../errors.ts";
import { systemIds } from "../ids.ts";
import type { Log } from "../telemetry/log.ts";
import type { KERNEL_METRICS } from "../telemetry/metric-table.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { endRequestSpan, inSpan, startRequestSpan } from "../telemetry/tracing.ts";
import { shownRoute } from "./action-path.ts";
import { parseJson } from "./body.ts";
import { isReference, useOpenApi } from "./openapi.ts";
import { answerBadAddress, answerUnreadable, useProblems } from "./problems.ts";
import { useStrictValidation } from "./validation.ts";
import { whenUsed } from "./when-used.ts";

export type Http = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The scope that a caller needs, or `public` for everyone. */
    scope?: string;
    /** Whether the body may be left out; an empty one is then none, whatever its content type. */
    bodyOptional?: true;
    /** Who calls too often is answered with this, where clients never try again at 429, as those of OpenLineage do. */
    busyStatus?: 503;
  }
  interface FastifyRequest {
    caller: Caller;
    span: Span | undefined;
  }
}

export interface HttpOptions {
  log: Log;
  metrics: Metrics<typeof KERNEL_METRICS>;
  keys: Keys;
  version: string;
  /** Those that routes may ask for. */
  scopes: ScopeTable;
  /** Those that group routes in the description of the API. */
  tags: Tags;
  anonymousScopes: readonly string[];
  bodyLimitBytes: number;
  /** Requests a minute for each key and process; 0 is no limit. A key may have its own. */
  rateLimitPerMinute: number;
  /** Turns new requests away while those in flight are finished. */
  isStopping: () => boolean;
  /** Who may come with a signed token (JWT) instead of a key. Unset: nobody. */
  assertions?: Assertions | undefined;
}

export interface Assertions {
  /** Whom the token vouches for. Throws an `ApiError` if nobody, or if that cannot be told at the moment. */
  verify(token: string, address: string): Promise<Caller>;
}

/** What a route names instead of a scope when it is open to everyone. */
const PUBLIC = "public";
const REQUEST_ID = /^[\w.:-]{1,64}$/;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const RETRY_AFTER_SECONDS = 2;
/** Measured after decoding. Well above every name that a schema allows, so that the schema answers, and tells its limit. */
const PARAMETER_LENGTH_MAX = 2_048;
/** To send a whole request; a body that trickles in would hold its connection for ever. Answers may take longer. */
const REQUEST_TIMEOUT_MS = 60_000;
/** What nginx logs, and so what people look for, when a caller hung up before its answer. */
const CALLER_HUNG_UP = 499;

export async function createHttp(options: HttpOptions): Promise<Http> {
  const { log, metrics, keys, scopes } = options;
  const logger: FastifyBaseLogger = log; // The wider type, so that routes need not know pino.
  const http: Http = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }), // Metrics and traces tell of requests.
    bodyLimit: options.bodyLimitBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    return503OnClosing: false, // The hook below answers with the catalogue's sentence.
    forceCloseConnections: "idle",
    schemaController: { compilersFactory: { buildSerializer: serializersWhenUsed } },
    frameworkErrors: answerBadAddress,
    clientErrorHandler: answerUnreadable,
    // A caller's own request id is kept, so that its log and ours can be joined.
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && REQUEST_ID.test(given) ? given : systemIds.uuid();
    },
  }).withTypeProvider<TypeBoxTypeProvider>();

  http.setChildLoggerFactory((parent) => parent); // Whoever logs names the request; few requests log anything.
  http.removeAllContentTypeParsers();
  http.addContentTypeParser("application/json", { parseAs: "buffer" }, async (request: FastifyRequest, body: Buffer) =>
    body.length === 0 && needsNoBody(request) ? null : parseJson(body),
  );
  useStrictValidation(http);
  useProblems(http);

  http.decorateRequest("span", undefined);
  http.addHook("onRoute", ({ url, config }) => {
    if (isReference(url)) return;
    const scope = config?.scope;
    if (scope === undefined) throw new Error(`route ${url} names no scope`);
    if (scope !== PUBLIC && !Object.hasOwn(scopes, scope)) {
      throw new Error(`route ${url} names the scope ${scope}, which is in no catalogue`);
    }
  });
  http.addHook("onRequest", async (request, reply) => {
    // Not `onResponse`, which is never called when the caller hangs up.
    reply.raw.once("close", () => conclude(request, reply));
    reply.header("x-request-id", request.id);
    if (options.isStopping()) throw kernelError("SHUTTING_DOWN", { seconds: RETRY_AFTER_SECONDS });
    const route = shownRoute(request.routeOptions.url);
    request.span = startRequestSpan(`${request.method} ${route}`, request.headers, { "http.route": route });
    request.caller = await inSpan(request.span, () => authenticate(request));
  });
  // Only here: the events that bring the body would end any context that was entered before it was read.
  http.addHook("preHandler", (request, _reply, done) => (request.span ? inSpan(request.span, done) : done()));
  http.addHook("onSend", (_request, reply, payload, done) => {
    // Else the caller would keep the connection, and with it the stopping server, open for its next request.
    if (options.isStopping()) reply.header("connection", "close");
    done(null, payload);
  });

  function conclude(request: FastifyRequest, reply: FastifyReply): void {
    const status = reply.raw.writableFinished ? reply.statusCode : CALLER_HUNG_UP;
    const labels = { method: request.method, route: shownRoute(request.routeOptions.url), status: String(status) };
    metrics.observe("millrace_http_request_seconds", labels, reply.elapsedTime / 1000);
    if (request.span) endRequestSpan(request.span, status);
  }

  async function authenticate(request: FastifyRequest): Promise<Caller> {
    const scope = request.routeOptions.config.scope ?? PUBLIC;
    const { authorization } = request.headers;
    const anonymous: Caller = { ...ANONYMOUS, scopes: options.anonymousScopes };
    if (authorization === undefined) {
      if (scope === PUBLIC || whyNot(anonymous, scope, scopes) === undefined) return anonymous;
      throw kernelError("UNAUTHENTICATED", {}, { reason: "This call needs a key." });
    }
    if (scope === PUBLIC) return anonymous; // Health and metrics answer even while the database is away.
    const key = /^Bearer (\S+)$/i.exec(authorization)?.[1];
    if (key === undefined) throw kernelError("UNAUTHENTICATED", {}, { reason: "The header holds no bearer key." });
    const caller = await callerWith(key, request.ip);
    if (!caller) throw kernelError("UNAUTHENTICATED", {}, { reason: "This key is not known, or it was revoked." });
    const because = whyNot(caller, scope, scopes);
    if (because !== undefined) throw kernelError("FORBIDDEN", { scope }, { because });
    return caller;
  }

  async function callerWith(key: string, address: string): Promise<Caller | undefined> {
    // First among the keys: one from the environment may look like a token, and no token costs a look-up there.
    const holder = await keys.find(key, address);
    return holder || !options.assertions || !JWT.test(key) ? holder : options.assertions.verify(key, address);
  }

  const limitOf = ({ rateLimitPerMinute }: Caller) => rateLimitPerMinute ?? options.rateLimitPerMinute;
  await http.register(rateLimit, {
    hook: "preValidation",
    timeWindow: "1 minute",
    cache: 10_000,
    allowList: ({ caller, routeOptions: { url, config } }) =>
      config.scope === PUBLIC || isReference(url) || limitOf(caller) === 0,
    keyGenerator: ({ caller, ip }) => caller.keyId ?? `${caller.name} ${ip}`,
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

function serializersWhenUsed(...shared: Parameters<ReturnType<typeof SerializerSelector>>) {
  const serializerOf = SerializerSelector()(...shared);
  return (answer: Parameters<typeof serializerOf>[0]) => whenUsed(() => serializerOf(answer));
}

const ANONYMOUS: Caller = {
  name: "anonymous",
  keyId: null,
  scopes: [],
  tenantId: null,
  source: null,
  rateLimitPerMinute: null,
};

/** Many clients set the content type whether they send a body or not. */
function needsNoBody({ method, routeOptions }: FastifyRequest): boolean {
  return method === "DELETE" || routeOptions.config.bodyOptional === true;
}

/** A stored key may bear any name. */
function isAnonymous({ name, keyId }: Caller): boolean {
  return keyId === null && name === ANONYMOUS.name;
}

/** Adds routes whose paths all begin with `prefix`. */
export async function under(http: Http, prefix: string, routes: (api: Http) => void): Promise<void> {
  await http.register(async (scope) => routes(scope as Http), { prefix });
}

/** Who acts, for the audit log. */
export function actorOf({ caller, ip, id }: FastifyRequest): Actor {
  return { caller, address: ip, requestId: id };
}
