import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ExponentialPolicy, type RetryOptions, type RetryPolicy, retryDelayMs, withRetry } from "./retry.ts";

const NODE: ExponentialPolicy = { maxAttempts: 10, baseMs: 1_000, factor: 2, capMs: 60_000, jitter: 0 };
const MINUTE = 60_000;

function delays(policy: RetryPolicy, random: () => number = () => 0): number[] {
  const found: number[] = [];
  for (let attempt = 1; ; attempt += 1) {
    const delay = retryDelayMs(policy, attempt, random);
    if (delay === undefined) return found;
    found.push(delay);
  }
}

describe("retryDelayMs", () => {
  test("multiplies from the base up to the cap, one wait fewer than there are attempts", () => {
    expect(delays(NODE)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    expect(delays({ ...NODE, maxAttempts: 4 })).toEqual([1_000, 2_000, 4_000]);
    expect(delays({ ...NODE, maxAttempts: 1 })).toEqual([]);
  });

  test("stays exact when the growth overflows", () => {
    const manyTries = { ...NODE, maxAttempts: 3_000 };
    expect(retryDelayMs(manyTries, 2_999, () => 0)).toBe(60_000);
    expect(retryDelayMs({ ...manyTries, baseMs: 0 }, 2_999, () => 0)).toBe(0);
  });

  test("follows fixed steps, and ends with them", () => {
    const stepsMs = [1, 5, 15, 60, 360].map((minutes) => minutes * MINUTE);
    expect(delays({ stepsMs, jitter: 0 })).toEqual(stepsMs);
  });

  test("subtracts up to the jitter from a wait, and never adds", () => {
    const policy = { stepsMs: [10_000], jitter: 0.2 };
    expect(delays(policy, () => 0)).toEqual([10_000]);
    expect(delays(policy, () => 0.5)).toEqual([9_000]);
    expect(delays(policy, () => 1 - Number.EPSILON)).toEqual([8_000]);
  });

  const exponential = fc.record({
    maxAttempts: fc.integer({ min: 1, max: 2_000 }),
    baseMs: fc.integer({ min: 0, max: 3_600_000 }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
    capMs: fc.integer({ min: 0, max: 86_400_000 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const steps = fc.record({
    stepsMs: fc.array(fc.integer({ min: 0, max: 86_400_000 }), { maxLength: 20 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  test("is an integer between the shortened and the full wait, for every policy and random number", () => {
    fc.assert(
      fc.property(fc.oneof(exponential, steps), chance, (policy, luck) => {
        const full = delays({ ...policy, jitter: 0 });
        const actual = delays(policy, () => luck);
        expect(actual).toHaveLength(full.length);
        for (const [index, delay] of actual.entries()) {
          expect(Number.isSafeInteger(delay)).toBe(true);
          expect(delay).toBeLessThanOrEqual(full[index] ?? -1);
          expect(delay).toBeGreaterThanOrEqual(Math.floor((full[index] ?? 0) * (1 - policy.jitter)));
        }
      }),
    );
  });

  test("without jitter never decreases, and with any jitter never exceeds the cap", () => {
    fc.assert(
      fc.property(exponential, chance, (policy, luck) => {
        const steady = delays({ ...policy, jitter: 0 });
        expect(steady).toEqual([...steady].sort((a, b) => a - b));
        expect(delays(policy, () => luck).every((delay) => delay <= policy.capMs)).toBe(true);
      }),
    );
  });
});

describe("withRetry", () => {
  const failure = new Error("try again");

  /** Fails `failures` times, then succeeds; records the waits instead of waiting. */
  async function attempt(failures: number, options: Partial<RetryOptions> = {}) {
    const waits: number[] = [];
    const attempts: number[] = [];
    const outcome = await withRetry(
      (number) => {
        attempts.push(number);
        return attempts.length <= failures ? Promise.reject(failure) : Promise.resolve("done");
      },
      {
        policy: { ...NODE, maxAttempts: 4 },
        retryOn: () => true,
        sleep: (ms) => Promise.resolve(void waits.push(ms)),
        random: () => 0,
        ...options,
      },
    ).catch((error: unknown) => error);
    return { outcome, waits, attempts };
  }

  test("returns the first success and waits before each further attempt", async () => {
    expect(await attempt(0)).toEqual({ outcome: "done", waits: [], attempts: [1] });
    expect(await attempt(2)).toEqual({ outcome: "done", waits: [1_000, 2_000], attempts: [1, 2, 3] });
  });

  test("throws the last error after the last attempt", async () => {
    const { outcome, attempts } = await attempt(100);
    expect(outcome).toBe(failure);
    expect(attempts).toEqual([1, 2, 3, 4]);
  });

  test("throws at once what `retryOn` refuses", async () => {
    const { outcome, attempts } = await attempt(100, { retryOn: (error) => error !== failure });
    expect(outcome).toBe(failure);
    expect(attempts).toEqual([1]);
  });

  test("uses the injected randomness for its jitter", async () => {
    const policy = { stepsMs: [1_000, 1_000], jitter: 0.5 };
    expect((await attempt(2, { policy, random: () => 0.5 })).waits).toEqual([750, 750]);
  });

  test("does not start when it is already aborted", async () => {
    const reason = new Error("stopping");
    const { outcome, attempts } = await attempt(0, { signal: AbortSignal.abort(reason) });
    expect(outcome).toBe(reason);
    expect(attempts).toEqual([]);
  });

  test("ends a wait of an hour when it is aborted", async () => {
    const stopping = new AbortController();
    const outcome = withRetry(
      () => {
        setImmediate(() => stopping.abort());
        return Promise.reject(failure);
      },
      { policy: { stepsMs: [60 * MINUTE], jitter: 0 }, retryOn: () => true, signal: stopping.signal },
    );
    await expect(outcome).rejects.toMatchObject({ name: "AbortError" });
  });

  test("really waits when no sleep is injected", async () => {
    const started = performance.now();
    let attempts = 0;
    await withRetry(() => ((attempts += 1) === 1 ? Promise.reject(failure) : Promise.resolve()), {
      policy: { stepsMs: [30], jitter: 0 },
      retryOn: () => true,
    });
    expect(attempts).toBe(2);
    // Timers of Node may fire up to a millisecond early.
    expect(performance.now() - started).toBeGreaterThanOrEqual(29);
  });
});
