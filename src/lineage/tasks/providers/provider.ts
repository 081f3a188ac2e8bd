/** The interface of a model and its failures, the same for the built-in pair and for HTTP services. */
import type { Summary } from "./sql-summary.ts";

export interface Embedder {
  /** One vector for each text, in their order; in place of one that came out unusable, why. Throws for all of them. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<(number[] | ProviderError)[]>;
}

export interface Summariser {
  summarise(text: string, signal: AbortSignal): Promise<Summary>;
}

/**
 * `BAD_REQUEST` and `BAD_ANSWER` may be the fault of the one text that was sent; anything else is the same for every text.
 * `RATE_LIMITED` is no failure of a task at all: it has to wait.
 */
export type ProviderFailure =
  | "BAD_REQUEST"
  | "BAD_ANSWER"
  | "RATE_LIMITED"
  | "UNAVAILABLE"
  | "UNAUTHORIZED"
  | "NOT_FOUND"
  | "REFUSED"
  | "CREDENTIAL_MISSING";

/** None of these passes by itself. They are tried again all the same, because someone may put right what is wrong. */
const LASTING: readonly ProviderFailure[] = [
  "BAD_REQUEST",
  "UNAUTHORIZED",
  "NOT_FOUND",
  "REFUSED",
  "CREDENTIAL_MISSING",
];

export class ProviderError extends Error {
  readonly failure: ProviderFailure;
  /** What the service asked for, 0 if nothing. */
  readonly retryAfterMs: number;

  constructor(failure: ProviderFailure, sentence: string, retryAfterMs = 0) {
    super(LASTING.includes(failure) ? `${sentence} This will not pass by itself.` : sentence);
    this.name = "ProviderError";
    this.failure = failure;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether another text could fare better. */
  get isOfText(): boolean {
    return this.failure === "BAD_REQUEST" || this.failure === "BAD_ANSWER";
  }
}
