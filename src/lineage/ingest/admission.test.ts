import { EventEmitter } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { describe, expect, test } from "vitest";
import { createAdmission } from "./admission.ts";

const ROOM = 128;
const MEBIBYTE = 1_048_576;
const LIMIT = 16 * MEBIBYTE;

const SMALL = { "content-length": "2000" };
const sized = (mebibytes: number) => ({ "content-length": String(mebibytes * MEBIBYTE) });

/** Callers at an admission of their own, and a clock that the test moves. */
function openAdmission() {
  const clock = { at: 0, now: () => clock.at };
  const admission = createAdmission({ clock });
  const inside = new Map<string, EventEmitter[]>();

  function come(tenantId: string, headers: Record<string, string> = SMALL): Promise<EventEmitter> {
    const raw = Object.assign(new EventEmitter(), { destroyed: false, closed: false });
    const request = { caller: { tenantId }, headers } as unknown as FastifyRequest;
    return admission.enter(request, { raw } as unknown as FastifyReply, LIMIT).then(() => {
      inside.set(tenantId, [...(inside.get(tenantId) ?? []), raw]);
      return raw;
    });
  }

  return {
    clock,
    come,
    /** Many at once; those that are not let in wait on. Tells how many of the tenant are inside then. */
    async crowd(tenantId: string, count: number, headers?: Record<string, string>): Promise<number> {
      for (let n = 0; n < count; n += 1) void come(tenantId, headers);
      await turn();
      return inside.get(tenantId)?.length ?? 0;
    },
    count: (tenantId: string) => inside.get(tenantId)?.length ?? 0,
    /** So many of them have been answered. */
    async answer(tenantId: string, count: number): Promise<void> {
      for (const raw of inside.get(tenantId)?.splice(0, count) ?? []) raw.emit("close");
      await turn();
    },
  };
}

test("a tenant that is alone may fill the room, and the rest of it waits outside", async () => {
  const admission = openAdmission();
  expect(await admission.crowd("1", 200)).toBe(ROOM);
  await admission.answer("1", 10);
  expect(admission.count("1"), "as many come in as have gone").toBe(ROOM);
});

test("while another sends too each has half of the room, however many one of them has at the door", async () => {
  const admission = openAdmission();
  await admission.crowd("loud", 500);
  expect(await admission.crowd("quiet", 1), "who comes second waits for nobody").toBe(1);
  await admission.answer("loud", ROOM);
  expect(admission.count("loud")).toBe(ROOM / 2);
});

test("who has sent nothing for a second no longer has a share", async () => {
  const admission = openAdmission();
  await admission.crowd("quiet", 1);
  await admission.answer("quiet", 1);
  await admission.crowd("loud", 500);
  expect(admission.count("loud")).toBe(ROOM / 2);
  admission.clock.at += 1_001;
  await admission.answer("loud", 1);
  expect(admission.count("loud")).toBe(ROOM);
});

test("everyone has room for a few, however many there are", async () => {
  const admission = openAdmission();
  for (let n = 0; n < 100; n += 1) await admission.crowd(String(n), 10);
  expect(admission.count("99")).toBe(4);
});

test("each comes in its turn", async () => {
  const admission = openAdmission();
  await admission.crowd("1", ROOM);
  const order: number[] = [];
  for (const n of [1, 2, 3]) void admission.come("1").then(() => order.push(n));
  await admission.answer("1", 3);
  expect(order).toEqual([1, 2, 3]);
});

test("a line that is too long is refused with a time to come back", async () => {
  const admission = openAdmission();
  await admission.crowd("1", ROOM + 2_000);
  await expect(admission.come("1")).rejects.toMatchObject({
    code: "OVERLOADED",
    details: { waiting: 2_000, seconds: 1 },
  });
  await expect(admission.come("2"), "which is no other tenant's concern").resolves.toBeDefined();
});

test("who has hung up meanwhile does not keep a place", async () => {
  const clock = { now: () => 0 };
  const admission = createAdmission({ clock });
  const request = { caller: { tenantId: "1" }, headers: {} } as unknown as FastifyRequest;
  const gone = { raw: Object.assign(new EventEmitter(), { destroyed: true }) } as unknown as FastifyReply;
  for (let n = 0; n < ROOM; n += 1) await admission.enter(request, gone, LIMIT);
  const raw = new EventEmitter();
  await expect(admission.enter(request, { raw } as unknown as FastifyReply, LIMIT)).resolves.toBeUndefined();
  expect(raw.listenerCount("close")).toBe(1);
});

describe("large bodies", () => {
  test("of a tenant alone fill half of the memory for them, and the rest waits outside", async () => {
    const admission = openAdmission();
    expect(await admission.crowd("1", 10, sized(8))).toBe(4);
    await admission.answer("1", 1);
    expect(admission.count("1")).toBe(4);
  });

  test("leave room for whoever comes next, and less for each the more there are", async () => {
    const admission = openAdmission();
    await admission.crowd("1", 10, sized(8));
    expect(await admission.crowd("2", 10, sized(8))).toBe(2);
    expect(await admission.crowd("3", 10, sized(8))).toBe(1);
    await admission.answer("1", 4);
    expect(["1", "2", "3"].map(admission.count), "those of all who wait come in when one leaves").toEqual([2, 2, 2]);
  });

  test("keep no small one waiting", async () => {
    const admission = openAdmission();
    for (let n = 0; n < 20; n += 1) await admission.crowd(`loud ${n}`, 5, sized(16));
    expect(await admission.crowd("quiet", 1)).toBe(1);
  });

  test("come in alone if they are larger than all the room", async () => {
    const raw = () => Object.assign(new EventEmitter(), { destroyed: false, closed: false });
    const own = createAdmission({ clock: { now: () => 0 } });
    const request = (bytes: number) =>
      ({ caller: { tenantId: "1" }, headers: { "content-length": String(bytes) } }) as unknown as FastifyRequest;
    const first = { raw: raw() };
    await own.enter(request(100 * MEBIBYTE), first as unknown as FastifyReply, 200 * MEBIBYTE);
    let isIn = false;
    const second = own.enter(request(100 * MEBIBYTE), { raw: raw() } as unknown as FastifyReply, 200 * MEBIBYTE);
    void second.finally(() => {
      isIn = true;
    });
    await turn();
    expect(isIn).toBe(false);
    first.raw.emit("close");
    await second;
  });

  test.each([
    ["that do not tell their length are taken for as large as they may be", {}, 2],
    ["that claim more than they may have count as what they may have", sized(1_000), 2],
    ["that are compressed count as eight times their length", { ...sized(0.5), "content-encoding": "gzip" }, 8],
    ["that inflate to more than they may count as what they may", { ...sized(8), "content-encoding": "gzip" }, 2],
  ])("%s", async (_, headers: Record<string, string>, inside) => {
    expect(await openAdmission().crowd("1", 20, headers)).toBe(inside);
  });
});
