/**
 * Errors that a caller can see come from tables: this one of the kernel, and one in the catalogue of each module. So codes
 * are stable, and a test compares `docs/errors.md` with them. Sentences say what was wrong and what to change; `{name}` is
 * filled from the error's details.
 *
 * There are three kinds: `ApiError` is an answer to a request; `OperatorError` is a sentence for the person at the terminal
 * (bad settings, unusable disk); any other exception is a bug and is logged with its stack.
 */

/** By their codes. */
export type ErrorTable = Readonly<Record<string, { readonly status: number; readonly sentence: string }>>;

export const KERNEL_ERRORS = {
  // Any endpoint
  MALFORMED_JSON: { status: 400, sentence: "The body is not valid JSON: {reason}." },
  BODY_TOO_COMPLEX: { status: 400, sentence: "The body {reason}. Send less at a time, or nest it less." },
  INVALID_TEXT: { status: 400, sentence: "{where} contains {what}, which cannot be stored. Send well-formed Unicode." },
  VALIDATION_FAILED: { status: 400, sentence: "{reason}." },
  UNAUTHENTICATED: { status: 401, sentence: "{reason} Send `Authorization: Bearer <key>`." },
  FORBIDDEN: { status: 403, sentence: "This key may not do that: {because}." },
  SESSION_EXPIRED: { status: 401, sentence: "This session has ended. Sign in again." },
  SIGN_IN_REFUSED: { status: 401, sentence: "{reason}" },
  CROSS_SITE: {
    status: 403,
    sentence:
      "A page of another site may not make this call without a key{unless}. Send `Authorization: Bearer <key>`.",
  },
  ROUTE_NOT_FOUND: { status: 404, sentence: "There is no {method} {path} here. {hint}" },
  ROLE_MISSING: {
    status: 421,
    sentence:
      "This process only has the {roles} and does not take {method} {path}. Call a process with the role api, or add it to --roles.",
  },
  METHOD_NOT_ALLOWED: { status: 405, sentence: "There is no {method} {path} here. It takes {methods}. {hint}" },
  BODY_TOO_LARGE: { status: 413, sentence: "The body is larger than the limit of {limit} bytes. Send less at a time." },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, sentence: "The body must be JSON: send `Content-Type: application/json`." },
  RATE_LIMITED: {
    status: 429,
    sentence: "{who} made more than {limit} {what} in a minute. Try again in {seconds} s.",
  },
  TOO_MANY_STREAMS: {
    status: 429,
    sentence: "{who} has {limit} streams of hints open already. Close one, or let several pages share one.",
  },
  SENDING_TOO_FAST: {
    status: 503,
    sentence: "{who} made more than {limit} {what} in a minute. Try again in {seconds} s.",
  },
  DATABASE_UNAVAILABLE: {
    status: 503,
    sentence: "The database does not answer. Try again in {seconds} s.",
  },
  OVERLOADED: { status: 503, sentence: "Too much work is waiting ({waiting} items). Try again in {seconds} s." },
  TOO_MANY_BYTES: {
    status: 503,
    sentence: "The requests in flight of {who} may have bodies of {limit} bytes. Try again in {seconds} s.",
  },
  SHUTTING_DOWN: { status: 503, sentence: "This process is stopping. Try again in {seconds} s." },
  INTERNAL: {
    status: 500,
    sentence: "The server failed to handle the request. Its log has the details under request {requestId}.",
  },

  // Keys, secrets and gates
  KEY_NOT_FOUND: { status: 404, sentence: "There is no key with the id {id}." },
  SECRET_NOT_FOUND: { status: 404, sentence: "There is no secret `{name}`." },
  SECRET_IN_USE: {
    status: 409,
    sentence:
      "Secret `{name}` cannot be deleted: {because}. Change that first; PUT /api/v1/secrets/{name} replaces its value.",
  },
  SECRETS_FULL: {
    status: 409,
    sentence: "There are {limit} secrets already. Delete those that are no longer used.",
  },
  GATE_NOT_FOUND: { status: 404, sentence: "There is no gate `{key}`." },
  GATES_FULL: { status: 409, sentence: "There are {limit} gates already. Delete those that are no longer used." },
  SECRETS_UNAVAILABLE: { status: 503, sentence: "{reason}" },
} as const satisfies ErrorTable;

export type ErrorDetails = Record<string, string | number | boolean | null | readonly object[]>;

/** An answer other than success. The HTTP layer turns it into `{ error, code, details? }` with the table's status. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: ErrorDetails;
  /** Seconds for the `Retry-After` header, on answers that suggest a retry. */
  readonly retryAfterSeconds: number | undefined;

  constructor(sentence: string, answer: { code: string; status: number; details: ErrorDetails }) {
    super(sentence);
    this.name = "ApiError";
    this.code = answer.code;
    this.status = answer.status;
    this.details = answer.details;
    const seconds = answer.details["seconds"];
    this.retryAfterSeconds = typeof seconds === "number" ? seconds : undefined;
  }
}

/** Makes errors of one table. `phrases` complete the sentence like details do, but are not part of the answer's details. */
export type ErrorMaker<Table extends ErrorTable> = (
  code: keyof Table & string,
  details?: ErrorDetails,
  phrases?: Record<string, string>,
) => ApiError;

export function errorsOf<Table extends ErrorTable>(table: Table): ErrorMaker<Table> {
  return (code, details = {}, phrases = {}) => {
    const { status, sentence } = table[code] as ErrorTable[string];
    return new ApiError(fill(sentence, { ...details, ...phrases }), { code, status, details });
  };
}

export const kernelError = errorsOf(KERNEL_ERRORS);

/** A sentence for the person who runs Millrace. The CLI prints it without a stack and exits with `exitCode`. */
export class OperatorError extends Error {
  readonly exitCode: number;

  constructor(sentence: string, exitCode = 1) {
    super(sentence);
    this.name = "OperatorError";
    this.exitCode = exitCode;
  }
}

/** The request is not valid: `reason` is a sentence without its full stop. */
export function invalid(reason: string): ApiError {
  return kernelError("VALIDATION_FAILED", {}, { reason });
}

function fill(sentence: string, details: ErrorDetails): string {
  return sentence
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = details[name] ?? "";
      return typeof value === "object" ? "" : String(value); // A list is only in the details.
    })
    .trim();
}
