import { describe, expect, test } from "vitest";
import { claim, entryOf, liveOf, newBook, runningBook, statuses } from "./book.fixture.ts";
import type { Book } from "./book.ts";
import { endRunIfDone, type NodeEvent, onNodeEvent, onRunEvent } from "./transition.ts";

const GRACE_MS = 30_000;
const LOST_LIMIT = 3;
const report = (book: Book, event: NodeEvent) => onNodeEvent(book, event, () => 0);
const stop = (book: Book) =>
  onRunEvent(book, { kind: "stop", graceMs: GRACE_MS, actor: "anna", reason: "stopped by anna" });
const fail = (book: Book, nodeId: string) =>
  report(book, { kind: "failed", nodeId, fence: claim(book, nodeId), error: "it broke", final: false });
const park = (book: Book, nodeId: string) =>
  report(book, { kind: "parked", nodeId, fence: claim(book, nodeId), childRunId: "child-1" });

describe("a stop", () => {
  test("stops nodes that do not run at once, and waits for the running ones", () => {
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
      reason: { text: "stopped by anna" },
      events: [{ kind: "stop asked for", actor: "anna" }],
    });
    expect(entryOf(book, "late").attempt, "the second attempt did not start").toBe(1);
  });

  test("does not count as the end of a parent: children are stopped, not skipped, and a running child still counts it as unmet", () => {
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

  test("of a run without running nodes makes it STOPPING too, until endRunIfDone", () => {
    const book = runningBook({ a: [] });
    stop(book);
    expect(book.status).toBe("STOPPING");
    endRunIfDone(book);
    expect(book.status).toBe("STOPPED");
  });

  test("of a PENDING run ends it", () => {
    const book = newBook({ a: [], b: ["a"] });
    stop(book);
    expect(book).toMatchObject({ status: "STOPPED", graceMs: null, open: 0, stopped: 2 });
  });

  test("keeps a success that came before the node stopped, and the run is STOPPED because of the others", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    stop(book);
    report(book, { kind: "succeeded", nodeId: "a", fence, artifact: 1 });
    expect(statuses(book)).toEqual({ a: "SUCCESS", b: "STOPPED" });
    expect(book.status).toBe("STOPPED");
  });

  test("of a run whose last node then succeeds ends with SUCCESS", () => {
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
  ])("makes a node that is then %s STOPPED, without another attempt", (_, event) => {
    const book = runningBook({ a: { retry: { maxAttempts: 5 } } });
    const fence = claim(book, "a");
    stop(book);
    expect(report(book, event(fence))).toBe(true);
    expect(entryOf(book, "a")).toMatchObject({ status: "STOPPED", attempt: 1, live: null });
    expect(book.status).toBe("STOPPED");
  });

  test("makes nodes STOPPED that outlast the grace period, and a late result does not count", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    stop(book);
    onRunEvent(book, { kind: "grace expired" });
    expect(entryOf(book, "a")).toMatchObject({ status: "STOPPED", error: "did not stop within the grace period" });
    expect(book.status).toBe("STOPPED");
    expect(report(book, { kind: "succeeded", nodeId: "a", fence, artifact: 1 })).toBe(false);
  });

  test("of a run with a failed node ends with STOPPED", () => {
    const book = runningBook({ bad: [], a: [], b: ["a"] });
    fail(book, "bad");
    stop(book);
    endRunIfDone(book);
    expect(book.status).toBe("STOPPED");
  });

  test("of a run with a failed node and nothing left to stop ends with FAILED", () => {
    const book = runningBook({ bad: [], a: [] });
    fail(book, "bad");
    const fence = claim(book, "a");
    stop(book);
    report(book, { kind: "succeeded", nodeId: "a", fence, artifact: null });
    expect(book.status).toBe("FAILED");
  });
});

describe("a run that times out", () => {
  test("is stopped like any other, but ends with FAILED and the reason", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    onRunEvent(book, { kind: "timed out", graceMs: GRACE_MS, timeoutMs: 60_000 });
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
