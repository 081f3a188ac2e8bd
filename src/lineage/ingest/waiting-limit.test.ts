import { expect, test } from "vitest";
import { createWaitingLimit } from "./waiting-limit.ts";

const MANY = 1_000_000;

/** How many of a size a tenant brings in until it is refused. */
function fill(limit: ReturnType<typeof createWaitingLimit>, tenantId: string, bytes = 1): number {
  for (let entered = 0; ; entered += 1) {
    try {
      limit.enter(tenantId, bytes);
    } catch (error) {
      expect(error).toMatchObject({ code: "OVERLOADED", status: 503, retryAfterSeconds: 1 });
      return entered;
    }
  }
}

test("a tenant that is alone has half of the limit, and whoever comes next has room too", () => {
  const limit = createWaitingLimit({ waitingMax: 100, waitingBytesMax: MANY });
  expect(["1", "2", "3", "4"].map((tenantId) => fill(limit, tenantId))).toEqual([50, 25, 13, 6]);
});

test("of what they measure it is the same", () => {
  const limit = createWaitingLimit({ waitingMax: MANY, waitingBytesMax: 10_000 });
  expect(["1", "2", "3"].map((tenantId) => fill(limit, tenantId, 100))).toEqual([50, 25, 13]);
});

test("one that is larger than all the room is taken once it is the first of its tenant", () => {
  const limit = createWaitingLimit({ waitingMax: 100, waitingBytesMax: 1_000 });
  const leave = limit.enter("1", 5_000);
  expect(() => limit.enter("1", 1)).toThrow("Too much work is waiting (1 items)");
  expect(() => limit.enter("2", 1), "the room is more than full").toThrow("Too much work is waiting (1 items)");
  leave();
  expect(fill(limit, "2", 100)).toBe(5);
});

test("who leaves makes room", () => {
  const limit = createWaitingLimit({ waitingMax: 2, waitingBytesMax: MANY });
  for (let n = 0; n < 10; n += 1) limit.enter("1", 1)();
  expect(fill(limit, "1")).toBe(1);
});
