/**
 * The HTTP server that all modules register their routes on: keys and scopes, rate limits, request ids, limits, metrics,
 * traces, errors and the OpenAPI description are done here once. A route says which scope it needs, or that it is public;
 * one that says neither stops the start.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import rateLimit from "@fastify/rate-limit";
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { Span } from "@opentelemetry/api";
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  fastify,
  LogController,
  type RawServerDefault,
} from "fastify";
import type { Actor } from "../auth/audit.ts";
import type { Keys } from "../auth/keys.ts";
import { type Caller, mayDo, type Scope } from "../auth/scopes.ts";
import { ApiError } from "../errors.ts";
import { systemIds } from "../ids.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { endRequestSpan, inSpan, startRequestSpan } from "../telemetry/tracing.ts";
import { parseJson } from "./body.ts";
import { answerBadAddress, answerUnreadable, useProblems } from "./problems.ts";
import { ErrorBody } from "./schemas.ts";
import { useStrictValidation } from "./validation.ts";

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
    scope?: Scope | "public";
  }
  interface FastifyRequest {
    caller: Caller;
    span: Span | undefined;
  }
}

export interface HttpOptions {
  log: Log;
  metrics: Metrics;
  keys: Keys;
  version: string;
  anonymousScopes: readonly Scope[];
  bodyLimitBytes: number;
  /** Requests a minute for each key and process; 0 is no limit. A key may have its own. */
  rateLimitPerMinute: number;
  /** Turns new requests away while those in flight are finished. */
  isStopping: () => boolean;
}

const REQUEST_ID = /^[\w.:-]{1,64}$/;
const REFERENCE = "/docs";
const RETRY_AFTER_SECONDS = 2;
const PARAMETER_LENGTH_MAX = 2_048; // A filename of 255 characters may take 12 bytes each when percent-encoded.

export async function createHttp(options: HttpOptions): Promise<Http> {
  const { log, metrics, keys } = options;
  const logger: FastifyBaseLogger = log; // The wider type, so that routes need not know pino.
  const http: Http = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }), // Metrics and traces tell of requests.
    bodyLimit: options.bodyLimitBytes,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    return503OnClosing: false, // The hook below answers with the catalogue's sentence.
    forceCloseConnections: "idle",
    frameworkErrors: answerBadAddress,
    clientErrorHandler: answerUnreadable,
    // A caller's own request id is kept, so that its log and ours can be joined.
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && REQUEST_ID.test(given) ? given : systemIds.uuid();
    },
  }).withTypeProvider<TypeBoxTypeProvider>();

  http.removeAllContentTypeParsers();
  http.addContentTypeParser("application/json", { parseAs: "buffer" }, async (_request: FastifyRequest, body: Buffer) =>
    parseJson(body),
  );
  useStrictValidation(http);
  useProblems(http, options.bodyLimitBytes);

  http.decorateRequest("span", undefined);
  http.addHook("onRoute", ({ url, config, schema }) => {
    if (config?.scope === undefined && !isReference(url)) throw new Error(`route ${url} names no scope`);
    if (schema?.response) schema.response = withDescriptions(schema.response as Record<string, object>);
  });
  http.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (options.isStopping()) throw new ApiError("SHUTTING_DOWN", { seconds: RETRY_AFTER_SECONDS });
    const route = request.routeOptions.url ?? "unknown";
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
  http.addHook("onResponse", async (request, reply) => {
    const labels = {
      method: request.method,
      route: request.routeOptions.url ?? "unknown",
      status: String(reply.statusCode),
    };
    metrics.observe("millrace_http_request_seconds", labels, reply.elapsedTime / 1000);
    if (request.span) endRequestSpan(request.span, reply.statusCode);
  });

  async function authenticate(request: FastifyRequest): Promise<Caller> {
    const scope = request.routeOptions.config.scope ?? "public";
    const { authorization } = request.headers;
    const anonymous: Caller = { ...ANONYMOUS, scopes: options.anonymousScopes };
    if (authorization === undefined) {
      if (scope === "public" || mayDo(anonymous, scope)) return anonymous;
      throw new ApiError("UNAUTHENTICATED", {}, { reason: "This call needs a key." });
    }
    if (scope === "public") return anonymous; // Health and metrics answer even while the database is away.
    const key = /^Bearer (\S+)$/i.exec(authorization)?.[1];
    const caller = key === undefined ? undefined : await keys.find(key);
    if (!caller) throw new ApiError("UNAUTHENTICATED", {}, { reason: "This key is not known, or it was revoked." });
    if (!mayDo(caller, scope)) throw new ApiError("FORBIDDEN", { scope });
    return caller;
  }

  if (options.rateLimitPerMinute > 0) {
    await http.register(rateLimit, {
      hook: "preValidation",
      timeWindow: "1 minute",
      cache: 10_000,
      allowList: ({ routeOptions: { url, config } }) => config.scope === "public" || isReference(url),
      keyGenerator: ({ caller, ip }) => caller.keyId ?? `${caller.name} ${ip}`,
      max: ({ caller }) => caller.rateLimitPerMinute ?? options.rateLimitPerMinute,
      errorResponseBuilder: (_request, { max, ttl }) =>
        new ApiError("RATE_LIMITED", { limit: max, seconds: Math.max(1, Math.ceil(ttl / 1000)) }),
    });
  }
  http.addSchema(ErrorBody);
  await describe(http, options.version);
  return http;
}

const ANONYMOUS: Caller = {
  name: "anonymous",
  keyId: null,
  scopes: [],
  tenantId: null,
  source: null,
  rateLimitPerMinute: null,
};

/** Who acts, for the audit log. */
export function actorOf({ caller, ip, id }: FastifyRequest): Actor {
  return { caller, address: ip, requestId: id };
}

const ANSWERS: Record<string, string> = {
  200: "Done",
  400: "Malformed or invalid",
  401: "The key is missing or unknown",
  403: "The key lacks the scope",
  404: "Unknown",
  409: "Not possible in the present state",
  503: "Not now; try again after `Retry-After`",
};

function withDescriptions(answers: Record<string, object>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(answers).map(([status, schema]) => [status, { description: ANSWERS[status] ?? "", ...schema }]),
  );
}

/** The pages of the reference come with their library and are open to everyone. */
function isReference(url = ""): boolean {
  return url === REFERENCE || url.startsWith(`${REFERENCE}/`);
}

/** `/openapi.json` for machines and `/docs` for people, both made from the routes' schemas. */
async function describe(http: Http, version: string): Promise<void> {
  await http.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Millrace",
        version,
        description: "The control plane between a data source and a published metric.",
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
      security: [{ key: [] }],
      tags: [
        { name: "pipeline", description: "Files and shards on their way through the stages" },
        { name: "admin", description: "Keys, the audit log and the doctor" },
        { name: "server", description: "Health and metrics, open to everyone" },
      ],
    },
    refResolver: {
      buildLocalReference: (json, _baseUri, _fragment, i) =>
        typeof json["$id"] === "string" ? json["$id"] : `schema-${i}`,
    },
  });
  await http.register(swaggerUi, {
    routePrefix: REFERENCE,
    theme: {
      title: "Millrace API",
      css: [{ filename: "millrace.css", content: ".swagger-ui .topbar { display: none }" }],
    },
    uiConfig: { docExpansion: "list", defaultModelsExpandDepth: -1, tryItOutEnabled: true, persistAuthorization: true },
  });
  http.get("/openapi.json", { config: { scope: "public" }, schema: { hide: true } }, async () => http.swagger());
}
