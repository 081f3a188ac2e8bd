/** Turns any exception into an answer with a sentence and a stable code, never a stack. */
import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isTimedOut, isUnavailable } from "../data/db.ts";
import { ApiError, kernelError } from "../errors.ts";
import { HEADERS } from "./browser.ts";
import { ACTION, knownPaths } from "./known-paths.ts";

const RETRY_AFTER_SECONDS = 2;
/** Below it are the calls that a process without the role `api` does not take. */
const API = "/api/";

/** `roles` are those of this process. */
export function useProblems(http: FastifyInstance, roles: readonly string[]): void {
  http.setErrorHandler((error: unknown, request, reply) => {
    const problem = toApiError(error, request);
    if (problem.status >= 500 && problem.code !== "SHUTTING_DOWN") {
      const level = problem.code === "INTERNAL" ? "error" : "warn";
      request.log[level]({ err: error, requestId: request.id }, "a request failed");
    }
    return answer(reply, problem);
  });

  const paths = knownPaths(http);
  /** Otherwise `PUT /models/M:run` would be taken for a model with the id `M:run`. */
  function isOtherMethodOfAction({ url, method }: FastifyRequest): boolean {
    const methods = ACTION.test(pathIn(url)) ? paths.methodsAt(pathIn(url)) : undefined;
    return methods !== undefined && !methods.includes(method);
  }
  function unrouted({ url, method }: FastifyRequest, reply: FastifyReply): ApiError {
    const path = pathIn(url);
    const shownPath = path.slice(0, 256);
    const methods = paths.methodsAt(path)?.join(", ");
    if (methods === undefined && path.startsWith(API) && !roles.includes("api")) {
      return kernelError("ROLE_MISSING", {}, { method, path: shownPath, roles: inWords(roles) });
    }
    if (methods === undefined) {
      const hint = paths.nearestTo(path) ?? "The reference is at /docs.";
      return kernelError("ROUTE_NOT_FOUND", {}, { method, path: shownPath, hint });
    }
    reply.header("allow", methods);
    const hint = paths.nearestTo(path, method) ?? "";
    return kernelError("METHOD_NOT_ALLOWED", {}, { method, path: shownPath, methods, hint });
  }
  // Before the body is read: whatever is wrong with it, there is nobody to take it.
  http.addHook("preParsing", (request, reply, payload, done) =>
    request.is404 || isOtherMethodOfAction(request) ? done(unrouted(request, reply)) : done(null, payload),
  );
  http.setNotFoundHandler((request, reply) => answer(reply, unrouted(request, reply)));
}

function inWords(roles: readonly string[]): string {
  return `${roles.length === 1 ? "role" : "roles"} ${roles.join(" and ")}`;
}

function pathIn(url: string): string {
  return url.split("?", 1)[0] ?? "";
}

function answer(reply: FastifyReply, problem: ApiError): FastifyReply {
  if (problem.retryAfterSeconds !== undefined) reply.header("retry-after", problem.retryAfterSeconds);
  if (problem.status === 401) reply.header("www-authenticate", "Bearer");
  return reply.code(problem.status).send(bodyOf(problem));
}

function bodyOf(problem: ApiError): object {
  const details = Object.keys(problem.details).length > 0 ? { details: problem.details } : {};
  return { error: problem.message, code: problem.code, ...details };
}

/** Answers a request whose URL is refused before any route or hook. */
export function answerBadAddress(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  reply.header("x-request-id", request.id).headers(HEADERS);
  const reason =
    error.code === "FST_ERR_MAX_PARAM_LENGTH"
      ? "A part of the path is too long"
      : "The path has a `%` that is not followed by the code of a UTF-8 character";
  void answer(reply, kernelError("VALIDATION_FAILED", {}, { reason }));
}

const UNREADABLE: Record<string, string> = {
  HPE_HEADER_OVERFLOW: "The URL and the headers are too long together",
  ERR_HTTP_REQUEST_TIMEOUT: "The request was not complete in time",
};

/** Answers bytes that Node could not parse as a request, directly on the socket. */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code !== "ECONNRESET" && socket.writable) {
    const reason = UNREADABLE[error.code ?? ""] ?? "This is not a complete HTTP request";
    const body = JSON.stringify(bodyOf(kernelError("VALIDATION_FAILED", {}, { reason })));
    socket.write(
      `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
        Object.entries(HEADERS)
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("") +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }
  socket.destroy(error);
}

function toApiError(error: unknown, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error;
  // The caller disconnected. Nobody reads this answer, but the log must not blame the database.
  if (request.raw.destroyed && !request.raw.complete) {
    return kernelError("VALIDATION_FAILED", {}, { reason: "The connection ended before the body was complete" });
  }
  if (isUnavailable(error) || isTimedOut(error)) {
    return kernelError("DATABASE_UNAVAILABLE", { seconds: RETRY_AFTER_SECONDS });
  }
  const { code, statusCode, message } = (error ?? {}) as Partial<FastifyError>; // Any value can be thrown, even undefined.
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    return kernelError("BODY_TOO_LARGE", { limit: request.routeOptions.bodyLimit });
  }
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return kernelError("UNSUPPORTED_MEDIA_TYPE");
  // Refused by Fastify itself, for example a wrong content length.
  if (code?.startsWith("FST_") && statusCode !== undefined && statusCode < 500) {
    return kernelError("VALIDATION_FAILED", {}, { reason: message?.replace(/\.$/, "") ?? code });
  }
  return kernelError("INTERNAL", { requestId: request.id });
}
