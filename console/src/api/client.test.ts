/** Which failed requests may be repeated by a click. */
import { afterEach, expect, test, vi } from "vitest";
import { type ApiError, act } from "./client.ts";

afterEach(() => void vi.unstubAllGlobals());

test.each([
  ["POST", 503, "OVERLOADED", true],
  ["POST", 503, "SHUTTING_DOWN", true],
  ["POST", 429, "RATE_LIMITED", true],
  // The database may have been lost at the commit, and a proxy knows nothing of it.
  ["POST", 503, "DATABASE_UNAVAILABLE", false],
  ["PATCH", 502, "", false],
  ["PUT", 503, "DATABASE_UNAVAILABLE", true],
  ["DELETE", 504, "", true],
  ["DELETE", 409, "WRONG_STATE", false],
] as const)("%s that is answered with %d %s: %s", async (method, status, code, isRepeatable) => {
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ error: "It failed.", code }), { status }));
  const error = await act("/x", method).catch((failure: ApiError) => failure);
  expect(error).toMatchObject({ status, isRepeatable });
});
