/** What the status and headers of a response say about the limits of its service, as far as all services agree on it. */
import { retryAfterMs } from "../net/retry-after.ts";
import type { GateSignal } from "./permits.ts";

/** No `Retry-After` is believed beyond this. */
export const COOLDOWN_MS_MAX = 86_400_000;

/**
 * 429 is a refusal for being too fast, and so is 503 with a `Retry-After`; without one it is a service that is down, and
 * calling it less often would not help. `Retry-After` counts on any response. `headers` have names in lower case.
 */
export function signalOf(
  { status, headers }: { status: number; headers: Readonly<Record<string, string | undefined>> },
  nowMs: number,
): GateSignal {
  const waitMs = retryAfterMs(headers["retry-after"], nowMs, COOLDOWN_MS_MAX);
  if (status === 429 && waitMs === 0) return { kind: "throttled" };
  if (status === 429 || (status === 503 && waitMs > 0)) return { kind: "throttled", retryAfterMs: waitMs };
  return waitMs > 0 ? { kind: "wait", retryAfterMs: waitMs } : { kind: "ok" };
}
