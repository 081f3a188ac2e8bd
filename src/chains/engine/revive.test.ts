import { describe, expect, test } from "vitest";
import type { NodeDef } from "../definitions/dag.ts";
import { claim, entryOf, liveOf, type Nodes, newBook, runningBook, statuses } from "./book.fixture.ts";
import type { Book } from "./book.ts";
import { admit, complete, resume, retry } from "./revive.ts";
import { onNodeEvent, onRunEvent } from "./transition.ts";

const ACTOR = "anna";
const unjittered = () => 0;

function succeed(book: Book, ...nodeIds: string[]): void {
  for (const nodeId of nodeIds) {
    onNodeEvent(book, { kind: "succeeded", nodeId, fence: claim(book, nodeId), artifact: nodeId }, unjittered);
  }
}
function fail(book: Book, ...nodeIds: string[]): void {
  for (const nodeId of nodeIds) {
    onNodeEvent(book, { kind: "failed", nodeId, fence: claim(book, nodeId), error: "no", final: true }, unjittered);
  }
}
function stop(book: Book): void {
  onRunEvent(book, { kind: "stop", graceMs: 1_000, actor: ACTOR, reason: "stopped" });
  onRunEvent(book, { kind: "grace expired" });
}
const again = (book: Book, nodeId?: string, downstream = false) =>
  retry(book, { nodeId, downstream, actor: ACTOR, reason: null });
const finish = (book: Book, nodeId: string, artifact: unknown = null) =>
  complete(book, { nodeId, artifact, actor: ACTOR, reason: null });

describe("an admission", () => {
  test("makes nodes without parents ready, and counts the parents of the others", () => {
    const book = newBook({ a: [], b: { waitsFor: ["t"] }, c: ["a", "b"] }, { b: ["t"] });
    admit(book);
    expect(book.status).toBe("RUNNING");
    expect(liveOf(book, "a")).toMatchObject({ state: "ready", waiting: 0, attempt: 1, tries: 0 });
    expect(liveOf(book, "b")).toMatchObject({ state: "waiting", waiting: 1 });
    expect(liveOf(book, "c")).toMatchObject({ state: "waiting", waiting: 2 });
    expect(Object.values(statuses(book))).toEqual(["PENDING", "PENDING", "PENDING"]);
  });
});

describe("a resume", () => {
  test("runs stopped nodes, as a new attempt if they had started", () => {
    const book = runningBook({ done: [], ran: [], b: ["done", "ran"] });
    succeed(book, "done");
    claim(book, "ran");
    stop(book);
    expect(statuses(book)).toEqual({ done: "SUCCESS", ran: "STOPPED", b: "STOPPED" });
    expect(resume(book, ACTOR)).toBeUndefined();
    expect(statuses(book)).toEqual({ done: "SUCCESS", ran: "RETRYING", b: "PENDING" });
    expect(book).toMatchObject({ status: "RUNNING", open: 2, stopped: 0, reason: { text: null } });
    expect(entryOf(book, "ran")).toMatchObject({ attempt: 2, live: { state: "ready", attempt: 2, tries: 0 } });
    expect(liveOf(book, "b")).toMatchObject({ state: "waiting", waiting: 1, attempt: 1 });
    expect(book.events.at(-1)).toMatchObject({ kind: "run resumed", actor: ACTOR });
    succeed(book, "ran", "b");
    expect(book.status).toBe("SUCCESS");
  });

  test("is refused for runs that are not STOPPED, and changes nothing", () => {
    const book = runningBook({ a: [] });
    const before = structuredClone(book);
    expect(resume(book, ACTOR)?.because).toBe("it is RUNNING, and only a STOPPED run can be resumed");
    expect(book).toEqual(before);
  });

  test("does not run failed nodes, so the run ends with FAILED", () => {
    const book = runningBook({ bad: [], a: [], b: ["a"] });
    fail(book, "bad");
    stop(book);
    resume(book, ACTOR);
    expect(book.reason).toBe("failure");
    succeed(book, "a", "b");
    expect(book.status).toBe("FAILED");
  });

  test("waits only for tables that have not arrived", () => {
    const tables = { a: ["t", "u"] };
    const book = runningBook({ a: { waitsFor: ["t", "u"] }, b: ["a"] }, tables);
    onNodeEvent(book, { kind: "arrived", nodeId: "a", table: "t" }, unjittered);
    tables.a.shift();
    stop(book);
    resume(book, ACTOR);
    expect(liveOf(book, "a")).toMatchObject({ state: "waiting", waiting: 1 });
  });
});

describe("a retry of a node", () => {
  const diamond: Nodes = { a: [], left: ["a"], right: ["a"], end: ["left", "right"] };

  test("starts another attempt with a fresh budget, and resets its skipped descendants", () => {
    const book = runningBook({ a: { retry: { maxAttempts: 2, backoffMs: 0 } }, b: ["a"], c: ["b"] });
    const fence = claim(book, "a");
    onNodeEvent(book, { kind: "failed", nodeId: "a", fence, error: "no", final: false }, unjittered);
    fail(book, "a");
    expect(statuses(book)).toEqual({ a: "FAILED", b: "SKIPPED", c: "SKIPPED" });
    expect(again(book, "a")).toBeUndefined();
    expect(statuses(book)).toEqual({ a: "RETRYING", b: "PENDING", c: "PENDING" });
    expect(entryOf(book, "a")).toMatchObject({
      attempt: 3,
      error: null,
      endedAttempt: { status: "FAILED" },
      live: { state: "ready", attempt: 3, tries: 0 },
    });
    expect(book).toMatchObject({ status: "RUNNING", open: 3, failed: 0, reason: { text: null } });
    expect(book.events.at(-1)).toMatchObject({ kind: "node retried", nodeId: "a", actor: ACTOR });
    succeed(book, "a", "b", "c");
    expect(book.status).toBe("SUCCESS");
  });

  test("works while its siblings run, and does not change them", () => {
    const book = runningBook(diamond);
    succeed(book, "a");
    const fence = claim(book, "right");
    fail(book, "left");
    expect(again(book, "left")).toBeUndefined();
    expect(statuses(book)).toEqual({ a: "SUCCESS", left: "RETRYING", right: "RUNNING", end: "PENDING" });
    expect(liveOf(book, "right").fence).toBe(fence);
    expect(liveOf(book, "end")).toMatchObject({ state: "waiting", waiting: 2 });
  });

  test("does not run succeeded descendants again, unless `downstream` is set", () => {
    const nodes: Nodes = { a: [], tidy: { dependsOn: ["a"], runWhen: "all_done" }, after: ["tidy"] };
    const ended = () => {
      const book = runningBook(nodes);
      fail(book, "a");
      succeed(book, "tidy", "after");
      return book;
    };
    const alone = ended();
    expect(again(alone, "a")).toBeUndefined();
    expect(statuses(alone)).toEqual({ a: "RETRYING", tidy: "SUCCESS", after: "SUCCESS" });
    const withAll = ended();
    expect(again(withAll, "a", true)).toBeUndefined();
    expect(statuses(withAll)).toEqual({ a: "RETRYING", tidy: "PENDING", after: "PENDING" });
    expect(entryOf(withAll, "tidy")).toMatchObject({ artifact: null, live: { attempt: 2, waiting: 1 } });
  });

  test("makes a `one_failed` child wait again that was ready because of the failure", () => {
    const book = runningBook({ a: [], b: [], alarm: { dependsOn: ["a", "b"], runWhen: "one_failed" } });
    fail(book, "a");
    expect(liveOf(book, "alarm").state).toBe("ready");
    again(book, "a");
    expect(liveOf(book, "alarm")).toMatchObject({ state: "waiting", waiting: 2, failed: 0 });
  });

  test("resets its stopped ancestors too, and no other nodes", () => {
    const book = runningBook({ a: [], b: ["a"], other: [] });
    claim(book, "a");
    stop(book);
    expect(again(book, "b")).toBeUndefined();
    expect(statuses(book)).toEqual({ a: "RETRYING", b: "RETRYING", other: "STOPPED" });
    succeed(book, "a", "b");
    expect(book.status).toBe("STOPPED"); // Because of `other`, which can still be resumed.
  });

  test("does not reset a descendant that waits for a STOPPED node", () => {
    const book = runningBook({ bad: [], slow: [], end: ["bad", "slow"] });
    fail(book, "bad");
    expect(entryOf(book, "end").status).toBe("SKIPPED");
    claim(book, "slow");
    stop(book);
    again(book, "bad");
    expect(statuses(book)).toEqual({ bad: "RETRYING", slow: "STOPPED", end: "STOPPED" });
    expect(entryOf(book, "end").error).toBe("waits for a node that was stopped");
    succeed(book, "bad");
    expect(book.status).toBe("STOPPED");
    resume(book, ACTOR);
    succeed(book, "slow", "end");
    expect(book.status).toBe("SUCCESS");
  });

  test("makes the descendants of such a node STOPPED, for a later resume", () => {
    const book = runningBook({ bad: [], slow: [], end: ["bad", "slow"], last: ["end"] });
    fail(book, "bad");
    stop(book);
    again(book, "bad");
    expect(statuses(book)).toEqual({ bad: "RETRYING", slow: "STOPPED", end: "STOPPED", last: "STOPPED" });
    succeed(book, "bad");
    resume(book, ACTOR);
    succeed(book, "slow", "end", "last");
    expect(book.status).toBe("SUCCESS");
  });

  test("resets a stopped descendant even if a node between the two has succeeded", () => {
    const book = runningBook({ a: [], tidy: { dependsOn: ["a"], runWhen: "all_done" }, after: ["tidy"] });
    fail(book, "a");
    succeed(book, "tidy");
    stop(book);
    again(book, "a");
    expect(statuses(book)).toEqual({ a: "RETRYING", tidy: "SUCCESS", after: "PENDING" });
  });

  test("makes a running child that fails wait for it, or skips the child if its rule no longer holds", () => {
    const alarm: Partial<NodeDef> = { dependsOn: ["a"], runWhen: "one_failed", retry: { maxAttempts: 2 } };
    const meanwhile = (change: (book: Book) => unknown) => {
      const book = runningBook({ a: [], alarm, after: ["alarm"] });
      fail(book, "a");
      const fence = claim(book, "alarm");
      change(book);
      onNodeEvent(book, { kind: "failed", nodeId: "alarm", fence, error: "no", final: false }, unjittered);
      return book;
    };
    const waiting = meanwhile((book) => again(book, "a"));
    expect(entryOf(waiting, "alarm")).toMatchObject({ status: "RETRYING", attempt: 2, live: { state: "waiting" } });
    const skipped = meanwhile((book) => finish(book, "a"));
    expect(statuses(skipped)).toEqual({ a: "SUCCESS", alarm: "SKIPPED", after: "SKIPPED" });
    expect(entryOf(skipped, "alarm")).toMatchObject({ attempt: 1, endedAttempt: { status: "FAILED" } });
    expect(skipped.status).toBe("SUCCESS");
  });

  test("clears the time-out of the run", () => {
    const book = runningBook({ a: [] });
    claim(book, "a");
    onRunEvent(book, { kind: "timed out", graceMs: 1, timeoutMs: 1 });
    onRunEvent(book, { kind: "grace expired" });
    expect(book.status).toBe("FAILED");
    again(book, "a");
    expect(book).toMatchObject({ status: "RUNNING", timedOut: false });
    succeed(book, "a");
    expect(book.status).toBe("SUCCESS");
  });

  test.each<[string, (book: Book) => void]>([
    ["SUCCESS", (book) => succeed(book, "a")],
    ["RUNNING", (book) => void claim(book, "a")],
    ["PENDING", () => {}],
  ])("is refused while it is %s", (status, arrange) => {
    const book = runningBook({ a: [], b: [] });
    arrange(book);
    const before = structuredClone(book);
    expect(again(book, "a")?.because).toBe(
      `node \`a\` is ${status}, and only a FAILED or STOPPED node, or one in its back-off, can be retried`,
    );
    expect(book).toEqual(before);
  });

  test("is refused while the run is stopping", () => {
    const book = runningBook({ a: [], bad: [] });
    fail(book, "bad");
    claim(book, "a");
    onRunEvent(book, { kind: "stop", graceMs: 1, actor: ACTOR, reason: "stopped" });
    expect(again(book, "bad")?.because).toBe("the run is STOPPING; wait until it is STOPPED");
  });

  test("is refused if the node would be skipped, and says what to do instead", () => {
    const book = runningBook({ a: [], slow: [], b: { dependsOn: ["a", "slow"], runWhen: "all_done" } });
    const always: Nodes = { a: [], b: { dependsOn: ["a"], runWhen: "one_failed" } };
    const alarmed = runningBook(always);
    fail(alarmed, "a");
    fail(alarmed, "b");
    finish(alarmed, "a");
    expect(again(alarmed, "b")?.because).toBe(
      "node `b` would be skipped: none of its parents failed. Retry its parents",
    );
    fail(book, "a");
    expect(again(book, "a")).toBeUndefined();
  });
});

describe("a retry of a run", () => {
  test("resets all failed and stopped nodes", () => {
    const book = runningBook({ good: [], bad: [], worse: [], after: ["bad"], last: ["good"] });
    succeed(book, "good");
    fail(book, "bad", "worse");
    stop(book);
    expect(again(book)).toBeUndefined();
    expect(statuses(book)).toEqual({
      good: "SUCCESS",
      bad: "RETRYING",
      worse: "RETRYING",
      after: "PENDING",
      last: "RETRYING",
    });
    expect(book.events.at(-1)).toMatchObject({ kind: "run retried", nodeId: null });
  });

  test("ends it with SUCCESS if it timed out while its last node succeeded", () => {
    const book = runningBook({ a: [] });
    const fence = claim(book, "a");
    onRunEvent(book, { kind: "timed out", graceMs: 1, timeoutMs: 1 });
    onNodeEvent(book, { kind: "succeeded", nodeId: "a", fence, artifact: 1 }, unjittered);
    expect(book.status).toBe("FAILED");
    expect(again(book)).toBeUndefined();
    expect(book).toMatchObject({ status: "SUCCESS", reason: { text: null } });
  });

  test("is refused if there are none", () => {
    const book = runningBook({ a: [] });
    succeed(book, "a");
    expect(again(book)?.because).toBe("none of its nodes is FAILED or STOPPED");
    expect(book.status).toBe("SUCCESS");
  });
});

describe("a completion by hand", () => {
  test("of a failed node sets its artifact and makes its children ready", () => {
    const book = runningBook({ a: [], b: ["a"] });
    fail(book, "a");
    expect(finish(book, "a", { rows: 3 })).toBeUndefined();
    expect(entryOf(book, "a")).toMatchObject({ status: "SUCCESS", artifact: { rows: 3 }, error: null, attempt: 1 });
    expect(liveOf(book, "b").state).toBe("ready");
    expect(book).toMatchObject({ status: "RUNNING", failed: 0 });
    expect(book.events.at(-1)).toMatchObject({ kind: "node completed", nodeId: "a", actor: ACTOR });
    succeed(book, "b");
    expect(book.status).toBe("SUCCESS");
  });

  test("of a running node ends its lease, and the worker's result does not count", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    finish(book, "a", "by hand");
    expect(onNodeEvent(book, { kind: "succeeded", nodeId: "a", fence, artifact: "late" }, unjittered)).toBe(false);
    expect(entryOf(book, "a")).toMatchObject({ artifact: "by hand", live: null });
    expect(liveOf(book, "b").state).toBe("ready");
  });

  test("of the last node ends the run", () => {
    const book = runningBook({ a: [] });
    fail(book, "a");
    finish(book, "a");
    expect(book.status).toBe("SUCCESS");
  });

  test("of one stopped node leaves the other stopped nodes, and the run ends with STOPPED", () => {
    const book = runningBook({ a: [], b: [], afterA: ["a"] });
    claim(book, "a");
    claim(book, "b");
    stop(book);
    finish(book, "a");
    expect(statuses(book)).toEqual({ a: "SUCCESS", b: "STOPPED", afterA: "PENDING" });
    succeed(book, "afterA");
    expect(book.status).toBe("STOPPED");
  });

  test("while the run is STOPPING ends the node, and starts no other", () => {
    const book = runningBook({ a: [], b: ["a"] });
    claim(book, "a");
    onRunEvent(book, { kind: "stop", graceMs: 1, actor: ACTOR, reason: "stopped" });
    finish(book, "a");
    expect(statuses(book)).toEqual({ a: "SUCCESS", b: "STOPPED" });
    expect(book.status).toBe("STOPPED");
  });

  test("while the run is STOPPING makes skipped descendants STOPPED, for a later resume", () => {
    const book = runningBook({ a: [], b: ["a"], other: { dependsOn: ["a"], runWhen: "all_done" } });
    fail(book, "a");
    const fence = claim(book, "other");
    onRunEvent(book, { kind: "stop", graceMs: 1, actor: ACTOR, reason: "stopped" });
    finish(book, "a");
    expect(liveOf(book, "other")).toMatchObject({ waiting: 0, failed: 0 });
    expect(statuses(book)).toEqual({ a: "SUCCESS", b: "STOPPED", other: "RUNNING" });
    onNodeEvent(book, { kind: "succeeded", nodeId: "other", fence, artifact: null }, unjittered);
    expect(book.status).toBe("STOPPED");
    resume(book, ACTOR);
    succeed(book, "b");
    expect(book.status).toBe("SUCCESS");
  });

  test.each<[string, (book: Book) => void]>([
    ["PENDING", () => {}],
    ["SKIPPED", (book) => fail(book, "parent")],
  ])("is refused while the node is %s", (status, arrange) => {
    const book = runningBook({ parent: [], a: ["parent"], other: [] });
    arrange(book);
    const before = structuredClone(book);
    expect(finish(book, "a")?.because).toBe(
      `node \`a\` is ${status}, and only FAILED, STOPPED, RUNNING or RETRYING can be completed`,
    );
    expect(book).toEqual(before);
  });
});
