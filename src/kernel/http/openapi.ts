/** `/openapi.json` for programs and `/docs` for people, both generated from the schemas of the routes. */
import { createHash } from "node:crypto";
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import type { Tags } from "../catalogue.ts";
import { ErrorBody, errors } from "./schemas.ts";
import type { Http } from "./server.ts";

const REFERENCE = "/docs";

/** The pages of the reference belong to their library and are public. */
export function isReference(url = ""): boolean {
  return url === REFERENCE || url.startsWith(`${REFERENCE}/`);
}

const ANSWERS: Record<string, string> = {
  200: "Success",
  400: "Malformed or invalid",
  401: "The key is missing or unknown",
  403: "The key may not do this",
  404: "Unknown",
  409: "Not possible in the present state",
  413: "The body is too large",
  415: "The body is not JSON",
  429: "Too many requests; try again after `Retry-After`",
  503: "Temporarily unavailable; try again after `Retry-After`",
};

/** The answers that the server itself gives on every route, so that a route lists only its own. */
function commonAnswers({ isPublic, hasBody }: { isPublic: boolean; hasBody: boolean }): Record<string, object> {
  return {
    ...(isPublic ? {} : errors(401, 403, 429)),
    ...(hasBody ? errors(413, 415) : {}),
    ...errors(503),
  };
}

/** Adds the common answers to a route that lists its own; one that lists none stays as it is. */
function completeAnswers(schema: FastifySchema, isPublic: boolean): void {
  const own = schema.response as Record<string, object> | undefined;
  if (!own) return;
  const all = { ...commonAnswers({ isPublic, hasBody: schema.body !== undefined }), ...own };
  schema.response = Object.fromEntries(
    Object.entries(all).map(([status, answer]) => [status, { description: ANSWERS[status] ?? "", ...answer }]),
  );
}

interface Described {
  paths?: Record<string, Record<string, { requestBody?: { required?: boolean; content: Record<string, Content> } }>>;
}
interface Content {
  schema?: { anyOf?: { type?: string }[] };
}

/** The library marks every body as required; one that may be `null` may also be left out. */
function markOptionalBodies({ paths = {} }: Described): void {
  for (const { requestBody } of Object.values(paths).flatMap((path) => Object.values(path))) {
    const { anyOf = [] } = requestBody?.content["application/json"]?.schema ?? {};
    if (requestBody && anyOf.some(({ type }) => type === "null")) requestBody.required = false;
  }
}

/** Call it before there are routes. */
export async function useOpenApi(http: Http, { version, tags }: { version: string; tags: Tags }): Promise<void> {
  http.addSchema(ErrorBody);
  const send = sendDescription(http);
  http.addHook("onRoute", (route) => {
    const { schema, config, url } = route;
    const unknown = schema?.tags?.find((tag) => !Object.hasOwn(tags, tag));
    if (unknown !== undefined) throw new Error(`route ${url} has the tag ${unknown}, which is in no catalogue`);
    if (schema) completeAnswers(schema, config?.scope === "public");
    if (schema && config?.scope === "public") schema.security = [];
    if (url === `${REFERENCE}/json`) route.handler = send; // The library would serialise it for each request.
  });
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
      tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    },
    transformObject: (made) => {
      if (!("openapiObject" in made)) throw new Error("the description is not OpenAPI 3");
      markOptionalBodies(made.openapiObject as Described);
      return made.openapiObject;
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
    // The page must not keep an admin key in the browser's storage.
    uiConfig: {
      docExpansion: "list",
      defaultModelsExpandDepth: -1,
      tryItOutEnabled: true,
      persistAuthorization: false,
    },
  });
  http.get("/openapi.json", { config: { scope: "public" }, schema: { hide: true } }, send);
}

/** Half a megabyte that does not change while the process runs: serialised once, and answered with 304 to a caller that has it. */
function sendDescription(http: Http) {
  let made: { bytes: Buffer; etag: string } | undefined;
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    made ??= describe(http);
    reply.header("etag", made.etag).header("cache-control", "no-cache"); // Clients may cache it but must revalidate it.
    if (request.headers["if-none-match"]?.includes(made.etag)) return reply.code(304).send();
    return reply.type("application/json; charset=utf-8").send(made.bytes);
  };
}

function describe(http: Http): { bytes: Buffer; etag: string } {
  const bytes = Buffer.from(JSON.stringify(http.swagger()));
  return { bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url")}"` };
}
