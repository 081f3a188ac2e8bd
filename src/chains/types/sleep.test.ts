import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { nodeContext } from "./node-context.fixture.ts";
import { createRegistry } from "./registry.ts";
import { sleep } from "./sleep.ts";

/** A timer may fire slightly early by another clock. */
const ROUNDING_MS = 1;

describe("a sleep", () => {
  test("takes the given time, and has no artifact", async () => {
    const before = performance.now();
    expect(await sleep.execute(nodeContext(), { ms: 20 })).toEqual({});
    expect(performance.now() - before).toBeGreaterThanOrEqual(20 - ROUNDING_MS);
  });

  test("ends at once when it is aborted", async () => {
    const stop = new AbortController();
    const asleep = sleep.execute(nodeContext({ signal: stop.signal }), { ms: HOUR_MS });
    stop.abort();
    await expect(asleep).rejects.toMatchObject({ name: "AbortError" });
  });

  test.each([-1, 7 * 24 * HOUR_MS + 1, 1.5, "soon", null])("cannot take %j milliseconds", (ms) => {
    expect(createRegistry([sleep]).check("sleep", { ms }, { templates: false })).toMatchObject([{ path: "ms" }]);
  });

  test("accepts 0 and up to a week", () => {
    for (const ms of [0, 7 * 24 * HOUR_MS]) {
      expect(createRegistry([sleep]).check("sleep", { ms }, { templates: false })).toEqual([]);
    }
  });
});
