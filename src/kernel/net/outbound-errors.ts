/** How a request of `outbound.ts` fails: why, and whether the server may have seen it. */

/**
 * - `refused`: the request is invalid or not permitted, so a retry fails as well
 * - `unreachable`: there was no connection
 * - `timeout`: one of the time-outs passed
 * - `incomplete`: the connection ended before the answer was complete
 * - `unreadable`: the body is not what its content-encoding says
 * - `too-large`: the body is larger than its limit
 */
type FailureReason = "refused" | "unreachable" | "timeout" | "incomplete" | "unreadable" | "too-large";

interface FailureOptions extends ErrorOptions {
  reason: FailureReason;
  sent: boolean;
}

export class OutboundFailed extends Error {
  readonly reason: FailureReason;
  /** False if no byte of the request was written, so the server cannot have acted on it. */
  readonly sent: boolean;

  constructor(sentence: string, { reason, sent, ...options }: FailureOptions) {
    super(sentence, options);
    this.name = "OutboundFailed";
    this.reason = reason;
    this.sent = sent;
  }
}

/** The request is invalid or not permitted, so a retry fails as well. Any other error may be transient. */
export class OutboundRefused extends OutboundFailed {
  constructor(sentence: string, { sent = false, ...options }: ErrorOptions & { sent?: boolean } = {}) {
    super(sentence, { ...options, reason: "refused", sent });
    this.name = "OutboundRefused";
  }
}
