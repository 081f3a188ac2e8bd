import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createIds, systemIds } from "./ids.ts";

function idsAt(startMs: number, random: (bytes: number) => Buffer = randomBytes) {
  const clock = { ms: startMs, now: () => clock.ms };
  return { clock, ids: createIds({ clock, random }) };
}

const timeOf = (uuid: string) => Number.parseInt(uuid.replace("-", "").slice(0, 12), 16);

describe("uuid", () => {
  test("agrees with the UUIDv7 example of RFC 9562, appendix A.6", () => {
    // The RFC's rand_a is cc3; our counter starts in the lower half of its range, so its top bit is cleared.
    const { ids } = idsAt(0x017f22e279b0, () => Buffer.from("0000000000000cc318c4dc0c0c07398f", "hex"));
    expect(ids.uuid()).toBe("017f22e2-79b0-74c3-98c4-dc0c0c07398f");
  });

  test("has version 7 and the RFC variant whatever the random bits are", () => {
    for (const fill of [0x00, 0xff]) {
      const { ids } = idsAt(1, (bytes) => Buffer.alloc(bytes, fill));
      expect(ids.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
  });

  test("grows within one millisecond, even past the counter's end", () => {
    const { ids } = idsAt(1_000);
    const made = Array.from({ length: 20_000 }, () => ids.uuid());
    expect(made).toEqual([...made].sort());
    expect(new Set(made).size).toBe(made.length);
    expect(timeOf(made[2_047] ?? "")).toBe(1_000);
  });

  test("keeps growing when the clock is set back, and follows it again later", () => {
    const { clock, ids } = idsAt(5_000);
    const before = ids.uuid();
    clock.ms = 1_000;
    const during = ids.uuid();
    expect(during > before).toBe(true);
    expect(timeOf(during)).toBe(5_000);
    clock.ms = 6_000;
    expect(timeOf(ids.uuid())).toBe(6_000);
  });

  test("contains the present time", () => {
    const before = Date.now();
    const made = timeOf(systemIds.uuid());
    expect(made).toBeGreaterThanOrEqual(before);
    expect(made).toBeLessThanOrEqual(Date.now());
  });
});

describe("token", () => {
  test("holds exactly the random bytes, in characters that are safe in a URL", () => {
    const { ids } = idsAt(0, (bytes) => Buffer.alloc(bytes, 0xfb));
    expect(ids.token(4)).toBe("-_v7-w");
    expect(Buffer.from(systemIds.token(32), "base64url")).toHaveLength(32);
  });

  test("is never the same twice", () => {
    expect(new Set(Array.from({ length: 1_000 }, () => systemIds.token(16))).size).toBe(1_000);
  });
});
