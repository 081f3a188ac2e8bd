import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { recordingLog } from "../../../test/log.ts";
import { signal } from "../../../test/until.ts";
import { type Counts, createService, type ServiceOptions } from "./service.ts";

const INTERVAL_MS = 10_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("a service", () => {
  test("runs when it starts, and then at its interval", async () => {
    const { service, runs } = serviceOf();
    service.start();
    await pass(0);
    expect(runs()).toBe(1);
    await pass(INTERVAL_MS - 1);
    expect(runs()).toBe(1);
    await pass(1);
    expect(runs()).toBe(2);
    await pass(3 * INTERVAL_MS);
    expect(runs()).toBe(5);
    await service.stop();
  });

  test("has one loop, however often it is started", async () => {
    const { service, runs } = serviceOf();
    service.start();
    service.start();
    await pass(INTERVAL_MS);
    expect(runs()).toBe(2);
    await service.stop();
  });

  test("runs at once when it is woken, and once for several calls", async () => {
    const { service, runs } = serviceOf();
    service.start();
    await pass(1);
    for (let i = 0; i < 100; i += 1) service.wake();
    await pass(0);
    expect(runs()).toBe(2);
    await pass(INTERVAL_MS);
    expect(runs()).toBe(3);
    await service.stop();
  });

  test("runs again when it was woken during a run, which may have read too early", async () => {
    const gate = signal();
    const { service, runs } = serviceOf({ runOnce: () => gate.promise.then(() => ({})) });
    service.start();
    service.wake();
    service.wake();
    gate.resolve();
    await pass(0);
    expect(runs()).toBe(2);
    await service.stop();
  });

  test("runs again at once while there is more, one run at a time", async () => {
    const found = [100, 100, 7];
    let underway = 0;
    const { service, runs } = serviceOf({
      more: ({ claimed = 0 }) => claimed === 100,
      async runOnce() {
        underway += 1;
        expect(underway).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 5));
        underway -= 1;
        return { claimed: found.shift() ?? 0 };
      },
    });
    service.start();
    await pass(15);
    expect(runs()).toBe(3);
    await service.stop();
  });

  test("runs when the next item is due, and not later than its interval", async () => {
    const due: (number | undefined)[] = [250, undefined, 3 * INTERVAL_MS];
    const { service, runs } = serviceOf({ nextDueMs: () => due.shift() });
    service.start();
    await pass(249);
    expect(runs()).toBe(1);
    await pass(1);
    expect(runs()).toBe(2);
    await pass(INTERVAL_MS - 1);
    expect(runs()).toBe(2);
    await pass(1);
    expect(runs()).toBe(3);
    await pass(INTERVAL_MS);
    expect(runs()).toBe(4);
    await service.stop();
  });

  test("does not spin when an item stays due", async () => {
    const { service, runs } = serviceOf({ nextDueMs: () => -5 });
    service.start();
    await pass(100);
    expect(runs()).toBe(11);
    await service.stop();
  });

  test("reads the due time only after a run that found no more and did not fail", async () => {
    const nextDueMs = vi.fn(() => INTERVAL_MS);
    const outcomes = [() => Promise.resolve({ n: 100 }), fail, () => Promise.resolve({ n: 0 })];
    const { service } = serviceOf({
      nextDueMs,
      more: ({ n = 0 }) => n === 100,
      runOnce: () => outcomes.shift()?.() ?? never(),
    });
    service.start();
    await pass(999);
    expect(nextDueMs).not.toHaveBeenCalled();
    await pass(1);
    expect(nextDueMs).toHaveBeenCalledOnce();
  });

  test("reports each run, with its counts", async () => {
    const reports: unknown[] = [];
    const outcomes = [() => Promise.resolve({ claimed: 3 }), fail];
    const { service } = serviceOf({
      runOnce: () => outcomes.shift()?.() ?? never(),
      onRun: (...report) => reports.push(report),
    });
    service.start();
    await pass(INTERVAL_MS);
    expect(reports).toEqual([
      ["test", "succeeded", { claimed: 3 }],
      ["test", "failed", {}],
    ]);
  });
});

describe("a service whose runs fail", () => {
  test("waits longer each time, up to five seconds, and keeps running", async () => {
    let healthy = false;
    const log = recordingLog();
    const { service, runs } = serviceOf({
      log,
      runOnce: async () => {
        if (!healthy) throw new Error("no database");
        return {};
      },
    });
    service.start();
    await pass(1_000 + 2_000 + 4_000 + 3 * 5_000);
    expect(log.lines.map(({ fields }) => fields["pauseMs"])).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000]);
    expect(log.lines[0]).toMatchObject({ level: "error", fields: { service: "test", err: new Error("no database") } });
    healthy = true;
    await pass(5_000);
    expect(runs()).toBe(8);
    await pass(INTERVAL_MS);
    expect(runs()).toBe(9);
    healthy = false;
    await pass(INTERVAL_MS);
    expect(log.lines.at(-1)?.fields["pauseMs"]).toBe(1_000);
    await service.stop();
  });

  test("is woken by a hint, but not within a second after a failure", async () => {
    const { service, runs } = serviceOf({ runOnce: fail });
    service.start();
    await pass(1_000); // The second failure; without a hint it would run again after two seconds.
    expect(runs()).toBe(2);
    service.wake();
    await pass(999);
    expect(runs()).toBe(2);
    await pass(1);
    expect(runs()).toBe(3);
    await pass(1_500);
    service.wake();
    await pass(0);
    expect(runs()).toBe(4);
    await service.stop();
  });

  test("runs once a second while hints come every ten milliseconds, and at each hint once it succeeds", async () => {
    let healthy = false;
    const { service, runs } = serviceOf({ runOnce: () => (healthy ? Promise.resolve({}) : fail()) });
    service.start();
    await hintFor(3_000);
    expect(runs()).toBe(4);
    healthy = true;
    await hintFor(1_000);
    expect(runs()).toBe(5);
    await hintFor(100);
    expect(runs()).toBe(15);
    await service.stop();

    async function hintFor(ms: number): Promise<void> {
      for (let passed = 0; passed < ms; passed += 10) {
        service.wake();
        await pass(10);
      }
    }
  });

  test("stops during its pause", async () => {
    const { service } = serviceOf({ runOnce: fail });
    service.start();
    await pass(1);
    await service.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("stop", () => {
  test("aborts the signal of the present run, waits for it, and starts no other", async () => {
    const begun = signal<AbortSignal>();
    const gate = signal();
    const { service, runs } = serviceOf({
      async runOnce(abort) {
        begun.resolve(abort);
        await gate.promise;
        return {};
      },
    });
    service.start();
    const abort = await begun.promise;
    expect(abort.aborted).toBe(false);
    let stopped = false;
    const stopping = service.stop().then(() => (stopped = true));
    expect(abort.aborted).toBe(true);
    service.wake();
    await pass(INTERVAL_MS);
    expect(stopped).toBe(false);
    gate.resolve();
    await stopping;
    await pass(INTERVAL_MS);
    expect(runs()).toBe(1);
  });

  test("has a signal that a whole batch can listen to without a warning of Node", async () => {
    const warnings: Error[] = [];
    const remember = (warning: Error) => warnings.push(warning);
    process.on("warning", remember);
    const { service } = serviceOf({
      async runOnce(abort) {
        for (let n = 0; n < 100; n += 1) abort.addEventListener("abort", () => n);
        return {};
      },
    });
    await service.runOnce();
    await new Promise(process.nextTick);
    process.off("warning", remember);
    expect(warnings).toEqual([]);
  });

  test("ends a pause, and leaves no timer", async () => {
    const { service } = serviceOf();
    service.start();
    await pass(1);
    await service.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("of a service that never started has no effect", async () => {
    const { service, runs } = serviceOf();
    await service.stop();
    service.start();
    await pass(INTERVAL_MS);
    expect(runs()).toBe(0);
  });
});

describe("nextRun", () => {
  test("resolves with the counts of the next run that started after the call", async () => {
    const [first, second] = [signal<Counts>(), signal<Counts>()];
    const runs = [first.promise, second.promise];
    const { service } = serviceOf({ runOnce: () => runs.shift() ?? never() });
    service.start();
    let counts: unknown;
    void service.nextRun().then((given) => (counts = given));
    first.resolve({ n: 1 });
    await pass(0);
    expect(counts).toBeUndefined();
    await pass(INTERVAL_MS);
    second.resolve({ n: 2 });
    await pass(0);
    expect(counts).toEqual({ n: 2 });
  });

  test("waits for a run that succeeds", async () => {
    const outcomes = [fail, () => Promise.resolve({ n: 2 })];
    const { service } = serviceOf({ runOnce: () => outcomes.shift()?.() ?? never() });
    const next = service.nextRun();
    service.start();
    await pass(1_000);
    expect(await next).toEqual({ n: 2 });
  });
});

const fail = () => Promise.reject<Counts>(new Error("no"));
const never = () => new Promise<never>(() => {});

function serviceOf(options: Partial<ServiceOptions> = {}) {
  const runOnce = vi.fn(options.runOnce ?? (async () => ({})));
  const service = createService({ name: "test", intervalMs: INTERVAL_MS, log: recordingLog(), ...options, runOnce });
  return { service, runs: () => runOnce.mock.calls.length };
}
