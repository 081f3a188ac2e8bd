/** Turns whatever was thrown into an answer: a sentence, a stable code, and never a stack. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isUnavailable, sqlState } from "../db.ts";
import { ApiError } from "../errors.ts";
import { nearest } from "../nearest.ts";

const RETRY_AFTER_SECONDS = 2;
const QUERY_CANCELED = "57014";

export function useProblems(http: FastifyInstance, bodyLimitBytes: number): void {
  http.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = toApiError(error, request, bodyLimitBytes);
    if (problem.status >= 500 && problem.code !== "SHUTTING_DOWN") {
      const level = problem.code === "INTERNAL" ? "error" : "warn";
      request.log[level]({ err: error, requestId: request.id }, "a request failed");
    }
    return answer(reply, problem);
  });

  const routes: string[] = [];
  http.addHook("onRoute", ({ url }) => void routes.push(url));
  http.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?", 1)[0] ?? "";
    const near = nearest(path, routes);
    const hint = near ? `Did you mean ${near}?` : "The reference is at /docs.";
    return answer(
      reply,
      new ApiError("ROUTE_NOT_FOUND", {}, { method: request.method, path: path.slice(0, 256), hint }),
    );
  });
}

export function answer(reply: FastifyReply, problem: ApiError): FastifyReply {
  if (problem.retryAfterSeconds !== undefined) reply.header("retry-after", problem.retryAfterSeconds);
  const details = Object.keys(problem.details).length > 0 ? { details: problem.details } : {};
  return reply.code(problem.status).send({ error: problem.message, code: problem.code, ...details });
}

function toApiError(error: FastifyError, request: FastifyRequest, bodyLimitBytes: number): ApiError {
  if (error instanceof ApiError) return error;
  if (isUnavailable(error) || sqlState(error) === QUERY_CANCELED) {
    return new ApiError("DATABASE_UNAVAILABLE", { seconds: RETRY_AFTER_SECONDS });
  }
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new ApiError("BODY_TOO_LARGE", { limit: bodyLimitBytes });
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new ApiError("UNSUPPORTED_MEDIA_TYPE");
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return new ApiError("MALFORMED_JSON", {}, { reason: "it is empty" });
  }
  // What Fastify itself refuses, such as a bad percent-encoding or a wrong content length.
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new ApiError("VALIDATION_FAILED", {}, { reason: error.message.replace(/\.$/, "") });
  }
  return new ApiError("INTERNAL", { requestId: request.id });
}
