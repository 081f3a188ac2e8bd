/** One exchange of a request and its answer: what ends it early, whether anything was sent, and how its failure is told. */
import { errors } from "undici";
import { messageOf } from "../text/message-of.ts";
import { OutboundFailed, OutboundRefused } from "./outbound-errors.ts";

export interface ExchangeLimits {
  /** Undefined: the exchange as a whole has no limit. */
  timeoutMs: number | undefined;
  connectTimeoutMs: number;
  readTimeoutMs: number;
  signal: AbortSignal;
}

export interface Exchange {
  /** Aborted by the caller's signal, or when `timeoutMs` has passed. */
  readonly signal: AbortSignal;
  /** Notes that the request is written. */
  onSend(): void;
  failureOf(error: unknown): unknown;
  /** The time-out and the caller's signal no longer matter. */
  end(): void;
}

export function beginExchange(limits: ExchangeLimits): Exchange {
  const { timeoutMs, connectTimeoutMs, readTimeoutMs } = limits;
  limits.signal.throwIfAborted();
  const ending = new AbortController();
  const { signal } = ending;
  let sent = false;

  const onAbort = () => ending.abort(limits.signal.reason);
  limits.signal.addEventListener("abort", onAbort, { once: true });
  const onTimeout = () => ending.abort(timeout(`there was no complete answer within ${timeoutMs} ms`));
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);

  function timeout(sentence: string, cause?: unknown): OutboundFailed {
    return new OutboundFailed(sentence, { reason: "timeout", sent, cause });
  }

  return {
    signal,

    onSend() {
      sent = true;
    },

    failureOf(error) {
      if (signal.aborted) return signal.reason as unknown;
      if (error instanceof OutboundFailed) {
        const { message, reason } = error;
        if (error.sent || !sent) return error;
        // Before it was redirected, the request was sent.
        if (reason === "refused") return new OutboundRefused(message, { sent, cause: error });
        return new OutboundFailed(message, { reason, sent, cause: error });
      }
      if (isMalformed(error)) return new OutboundRefused(error.message, { sent, cause: error });
      if (error instanceof errors.ConnectTimeoutError) {
        return timeout(`there was no connection within ${connectTimeoutMs} ms`, error);
      }
      if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
        return timeout(`nothing was received for ${readTimeoutMs} ms`, error);
      }
      const reason = sent ? "incomplete" : "unreachable";
      return new OutboundFailed(messageOf(error), { reason, sent, cause: error });
    },

    end() {
      clearTimeout(timer);
      limits.signal.removeEventListener("abort", onAbort);
    },
  };
}

/** undici's errors for an invalid request, such as a line break in a header. Their messages contain no values. */
function isMalformed(error: unknown): error is Error {
  return (
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.NotSupportedError ||
    error instanceof errors.RequestContentLengthMismatchError
  );
}
