/**
 * `retry` as people write it, in the nodes of chains and in models: how often something that failed is tried again, and after
 * which waits. The console reads the type, so this file imports nothing of Node.
 */
import { type Static, Type } from "typebox";
import { DAY_MS } from "../time/units.ts";

const DEFAULTS = { backoffMs: 1_000, factor: 2, jitter: 0.2 };
const MAX_BACKOFF_MS = 60_000;

// Without `default`: a first wait that is longer than the usual cap raises the cap, unless that is written down.
export const RetryFields = Type.Object(
  {
    maxAttempts: Type.Integer({ minimum: 1, maximum: 1_000, description: "All attempts, the first included." }),
    backoffMs: Type.Optional(
      Type.Integer({ minimum: 0, maximum: DAY_MS, description: "The wait after the first failure; else 1000." }),
    ),
    factor: Type.Optional(
      Type.Number({ minimum: 1, maximum: 100, description: "Of each further wait; 2 unless it is given." }),
    ),
    maxBackoffMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 7 * DAY_MS,
        description: "No wait is longer; 60000 unless it is given, or `backoffMs` if that is more.",
      }),
    ),
    jitter: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: "The largest share of a wait that is left out at random; 0.2 unless it is given.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type RetryFields = Static<typeof RetryFields>;

/** The policy for `retryDelayMs`. Without fields there is one attempt. */
export function policyOf(fields: RetryFields | null | undefined) {
  const { maxAttempts, backoffMs, factor, maxBackoffMs, jitter } = {
    maxAttempts: 1,
    maxBackoffMs: undefined,
    ...DEFAULTS,
    ...fields,
  };
  return { maxAttempts, baseMs: backoffMs, factor, capMs: maxBackoffMs ?? Math.max(MAX_BACKOFF_MS, backoffMs), jitter };
}
