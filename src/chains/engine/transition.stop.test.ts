import { describe, expect, test } from "vitest";
import { claim, entryOf, liveOf, newBook, runningBook, statuses } from "./book.fixture.ts";
import type { Book } from "./book.ts";
import { type NodeEvent, onNodeEvent, onRunEvent } from "./transition.ts";

const GRACE_MS = 30_000;
const LOST_LIMIT = 3;
const report = (book: Book, event: NodeEvent) => onNodeEvent(book, event, () => 0);
const stop = (book: Book) =>
  onRunEvent(book, { kind: "stop", graceMs: GRACE_MS, actor: "anna", reason: "stopped by anna" });
const settle = (book: Book) => onRunEvent(book, { kind: "settle" });
const fail = (book: Book, nodeId: string) =>
  report(book, { kind: "failed", nodeId, fence: claim(book, nodeId), error: "it broke", final: false });
const park = (book: Book, nodeId: string) =>
  report(book, { kind: "parked", nodeId, fence: claim(book, nodeId), childRunId: "child-1" });

describe("a stop", () => {
  test("stops at once what does not run, and asks the rest", () => {
    const book = runningBook({ a: [], parked: [], ready: [], late: { retry: { maxAttempts: 2 } }, b: ["a"], c: ["b"] });
    claim(book, "a");
    park(book, "parked");
    fail(book, "late");
    stop(book);
    expect(statuses(book)).toEqual({
      a: "RUNNING",
      parked: "RUNNING",
      ready: "STOPPED",
      late: "STOPPED",
      b: "STOPPED",
      c: "STOPPED",
    });
    expect(book).toMatchObject({
      status: "STOPPING",
      graceMs: GRACE_MS,
      open: 2,
      stopped: 4,
      reason: { text: "stopped by anna", first: false },
      events: [{ kind: "stop asked for", actor: "anna" }],
    });
    expect(entryOf(book, "late").attempt, "the second was not begun").toBe(1);
  });

  test("counts as no end of a parent: children are stopped and not skipped, and one that runs still waits for it", () => {
    const book = runningBook({
      bad: [],
      slow: [],
      alarm: { dependsOn: ["bad", "slow"], runWhen: "one_failed" },
      other: { dependsOn: ["slow"], runWhen: "one_failed" },
    });
    fail(book, "bad");
    claim(book, "alarm");
    stop(book);
    expect(statuses(book)).toEqual({ bad: "FAILED", slow: "STOPPED", alarm: "RUNNING", other: "STOPPED" });
    expect(liveOf(book, "alarm").waiting).toBe(1);
  });

  test("of a run where nothing runs is STOPPING all the same, until it is settled", () => {
    const book = runningBook({ a: [] });
    stop(book);
    expect(book.status).toBe("STOPPING");
    settle(book);
    expect(book.status).toBe("STOPPED");
  });

  test("of a run that has not begun ends it", () => {
    const book = newBook({ a: [], b: ["a"] });
    stop(book);
    expect(book).toMatchObject({ status: "STOPPED", graceMs: null, open: 0, stopped: 2 });
  });

  test("leaves a success that came before the node could be stopped, and the run is STOPPED for the others", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    stop(book);
    report(book, { kind: "succeeded", nodeId: "a", fence, artifact: 1 });
    expect(statuses(book)).toEqual({ a: "SUCCESS", b: "STOPPED" });
    expect(book.status).toBe("STOPPED");
  });

  test("of a run whose last node then succeeds is a success", () => {
    const book = runningBook({ a: [] });
    const fence = claim(book, "a");
    stop(book);
    report(book, { kind: "succeeded", nodeId: "a", fence, artifact: null });
    expect(book.status).toBe("SUCCESS");
  });

  test.each<[string, (fence: string) => NodeEvent]>([
    ["failed", (fence) => ({ kind: "failed", nodeId: "a", fence, error: "aborted", final: false })],
    ["released", (fence) => ({ kind: "released", nodeId: "a", fence })],
    ["lost", (fence) => ({ kind: "lost", nodeId: "a", fence, lostLimit: LOST_LIMIT })],
  ])("makes a node STOPPED that is then %s, without another attempt", (_, event) => {
    const book = runningBook({ a: { retry: { maxAttempts: 5 } } });
    const fence = claim(book, "a");
    stop(book);
    expect(report(book, event(fence))).toBe(true);
    expect(entryOf(book, "a")).toMatchObject({ status: "STOPPED", attempt: 1, live: null });
    expect(book.status).toBe("STOPPED");
  });

  test("gives up what does not end in its grace period, and a late result bounces", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    stop(book);
    onRunEvent(book, { kind: "grace is over" });
    expect(entryOf(book, "a")).toMatchObject({ status: "STOPPED", error: "did not stop in time, and was given up" });
    expect(book.status).toBe("STOPPED");
    expect(report(book, { kind: "succeeded", nodeId: "a", fence, artifact: 1 })).toBe(false);
  });

  test("of a run with a failed node ends STOPPED, for that is what was asked for", () => {
    const book = runningBook({ bad: [], a: [], b: ["a"] });
    fail(book, "bad");
    stop(book);
    settle(book);
    expect(book.status).toBe("STOPPED");
  });

  test("of a run in which nothing was left to stop ends as it would have: FAILED", () => {
    const book = runningBook({ bad: [], a: [] });
    fail(book, "bad");
    const fence = claim(book, "a");
    stop(book);
    report(book, { kind: "succeeded", nodeId: "a", fence, artifact: null });
    expect(book.status).toBe("FAILED");
  });
});

describe("a run that takes too long", () => {
  test("stops like any other, but ends FAILED and says why", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    onRunEvent(book, { kind: "time is up", graceMs: GRACE_MS, timeoutMs: 60_000 });
    expect(book.status).toBe("STOPPING");
    report(book, { kind: "failed", nodeId: "a", fence, error: "aborted", final: false });
    expect(statuses(book)).toEqual({ a: "STOPPED", b: "STOPPED" });
    expect(book).toMatchObject({
      status: "FAILED",
      reason: { text: "the run took longer than its 60000 ms" },
      events: [{ kind: "run timed out", detail: { timeoutMs: 60_000 } }],
    });
  });
});
