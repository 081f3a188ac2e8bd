import { expect, test } from "vitest";
import { createWaitingRoom } from "./waiting-room.ts";

const MANY = 1_000_000;

/** How many of a size a tenant brings in until it is refused. */
function fill(room: ReturnType<typeof createWaitingRoom>, tenantId: string, bytes = 1): number {
  for (let entered = 0; ; entered += 1) {
    try {
      room.enter(tenantId, bytes);
    } catch (error) {
      expect(error).toMatchObject({ code: "OVERLOADED", status: 503, retryAfterSeconds: 1 });
      return entered;
    }
  }
}

test("a tenant that is alone has half of the room, and whoever comes next has room too", () => {
  const room = createWaitingRoom({ waitingMax: 100, waitingBytesMax: MANY });
  expect(["1", "2", "3", "4"].map((tenantId) => fill(room, tenantId))).toEqual([50, 25, 13, 6]);
});

test("of what they measure it is the same", () => {
  const room = createWaitingRoom({ waitingMax: MANY, waitingBytesMax: 10_000 });
  expect(["1", "2", "3"].map((tenantId) => fill(room, tenantId, 100))).toEqual([50, 25, 13]);
});

test("one that is larger than all the room is taken once it is the first of its tenant", () => {
  const room = createWaitingRoom({ waitingMax: 100, waitingBytesMax: 1_000 });
  const leave = room.enter("1", 5_000);
  expect(() => room.enter("1", 1)).toThrow("Too much work is waiting (1 items)");
  expect(() => room.enter("2", 1), "the room is more than full").toThrow("Too much work is waiting (1 items)");
  leave();
  expect(fill(room, "2", 100)).toBe(5);
});

test("who leaves makes room", () => {
  const room = createWaitingRoom({ waitingMax: 2, waitingBytesMax: MANY });
  for (let n = 0; n < 10; n += 1) room.enter("1", 1)();
  expect(fill(room, "1")).toBe(1);
});
