import { expect, test } from "vitest";
import { signalOf } from "./signal.ts";

const NOW = Date.parse("2026-11-16T12:00:00Z");

test.each([
  [200, undefined, { kind: "ok" }],
  [200, "3", { kind: "wait", retryAfterMs: 3_000 }],
  [404, undefined, { kind: "ok" }],
  [429, undefined, { kind: "throttled" }],
  [429, "0", { kind: "throttled" }],
  [429, "2", { kind: "throttled", retryAfterMs: 2_000 }],
  [429, "Mon, 16 Nov 2026 12:00:10 GMT", { kind: "throttled", retryAfterMs: 10_000 }],
  [429, "soon", { kind: "throttled" }],
  [429, "99999999999", { kind: "throttled", retryAfterMs: 86_400_000 }],
  [500, undefined, { kind: "ok" }],
  [500, "5", { kind: "wait", retryAfterMs: 5_000 }],
  [503, undefined, { kind: "ok" }],
  [503, "1", { kind: "throttled", retryAfterMs: 1_000 }],
])("%i with Retry-After %s", (status, header, signal) => {
  const headers = header === undefined ? {} : { "retry-after": header };
  expect(signalOf({ status, headers }, NOW)).toEqual(signal);
});
