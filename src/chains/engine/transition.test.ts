import { describe, expect, test } from "vitest";
import { claim, entryOf, liveOf, type Nodes, newBook, runningBook, statuses } from "./book.fixture.ts";
import type { Book } from "./book.ts";
import { affectedNodes, type NodeEvent, onNodeEvent, onRunEvent } from "./transition.ts";

const LOST_LIMIT = 3;
const unjittered = () => 0;
const report = (book: Book, event: NodeEvent) => onNodeEvent(book, event, unjittered);

function succeed(book: Book, nodeId: string, artifact: unknown = null): void {
  expect(report(book, { kind: "succeeded", nodeId, fence: claim(book, nodeId), artifact })).toBe(true);
}
function fail(book: Book, nodeId: string, { error = "it broke", final = false } = {}): void {
  expect(report(book, { kind: "failed", nodeId, fence: claim(book, nodeId), error, final })).toBe(true);
}
function lose(book: Book, nodeId: string): void {
  expect(report(book, { kind: "lost", nodeId, fence: claim(book, nodeId), lostLimit: LOST_LIMIT })).toBe(true);
}
function park(book: Book, nodeId: string, childRunId = "child-1"): void {
  expect(report(book, { kind: "parked", nodeId, fence: claim(book, nodeId), childRunId })).toBe(true);
}

describe("a node that succeeds", () => {
  test("stores its artifact, and makes a child ready that waits for no other parent", () => {
    const book = runningBook({ a: [], b: [], c: ["a"], d: ["a", "b"] });
    succeed(book, "a", { rows: 7 });
    expect(statuses(book)).toEqual({ a: "SUCCESS", b: "PENDING", c: "PENDING", d: "PENDING" });
    expect(entryOf(book, "a")).toMatchObject({ artifact: { rows: 7 }, error: null, live: null, attempt: 1 });
    expect(liveOf(book, "c")).toMatchObject({ state: "ready", waiting: 0 });
    expect(liveOf(book, "d")).toMatchObject({ state: "waiting", waiting: 1 });
  });

  test("ends the run with SUCCESS if it is the last", () => {
    const book = runningBook({ a: [], b: ["a"] });
    succeed(book, "a");
    expect(book.status).toBe("RUNNING");
    succeed(book, "b");
    expect(book).toMatchObject({ status: "SUCCESS", open: 0, failed: 0 });
  });

  test("skips a `one_failed` child and the descendants of that child", () => {
    const book = runningBook({ a: [], alarm: { dependsOn: ["a"], runWhen: "one_failed" }, after: ["alarm"] });
    succeed(book, "a");
    expect(statuses(book)).toEqual({ a: "SUCCESS", alarm: "SKIPPED", after: "SKIPPED" });
    expect(entryOf(book, "alarm").error).toBe("none of its parents failed");
    expect(entryOf(book, "after").error).toBe("a parent failed or was skipped");
    expect(book.status).toBe("SUCCESS");
  });
});

describe("a node that fails", () => {
  const patient: Nodes = { a: { retry: { maxAttempts: 3, backoffMs: 1_000, factor: 2 } }, b: ["a"] };

  test("is retried with a growing delay, up to maxAttempts", () => {
    const book = runningBook(patient);
    fail(book, "a", { error: "once" });
    expect(entryOf(book, "a")).toMatchObject({
      status: "RETRYING",
      attempt: 2,
      error: "once",
      endedAttempt: { status: "FAILED", error: "once" },
      live: { state: "delayed", delayMs: 1_000, attempt: 2, tries: 1, fence: null },
    });
    releaseDelayed(book, "a");
    fail(book, "a", { error: "twice" });
    expect(liveOf(book, "a")).toMatchObject({ delayMs: 2_000, attempt: 3, tries: 2 });
    releaseDelayed(book, "a");
    fail(book, "a", { error: "thrice" });
    expect(entryOf(book, "a")).toMatchObject({ status: "FAILED", attempt: 3, error: "thrice", live: null });
    expect(book).toMatchObject({ status: "FAILED", reason: "failure" });
  });

  test("is ready at once if backoffMs is 0", () => {
    const book = runningBook({ a: { retry: { maxAttempts: 2, backoffMs: 0 } } });
    fail(book, "a");
    expect(liveOf(book, "a")).toMatchObject({ state: "ready", delayMs: null });
  });

  test("has one attempt by default", () => {
    const book = runningBook({ a: [] });
    fail(book, "a");
    expect(statuses(book)).toEqual({ a: "FAILED" });
  });

  test("is not retried after a final failure", () => {
    const book = runningBook(patient);
    fail(book, "a", { final: true });
    expect(entryOf(book, "a")).toMatchObject({ status: "FAILED", attempt: 1 });
  });

  test("skips its descendants at once, at any depth, while other nodes continue", () => {
    const book = runningBook({ a: [], slow: [], b: ["a", "slow"], c: ["b"] });
    fail(book, "a");
    expect(statuses(book)).toEqual({ a: "FAILED", slow: "PENDING", b: "SKIPPED", c: "SKIPPED" });
    expect(book).toMatchObject({ status: "RUNNING", open: 1, failed: 1 });
    succeed(book, "slow");
    expect(book.status).toBe("FAILED");
  });

  test("makes `one_failed` children ready at once and `all_done` children after their other parents", () => {
    const book = runningBook({
      a: [],
      slow: [],
      alarm: { dependsOn: ["a", "slow"], runWhen: "one_failed" },
      tidy: { dependsOn: ["a", "slow"], runWhen: "all_done" },
    });
    fail(book, "a");
    expect(liveOf(book, "alarm")).toMatchObject({ state: "ready", failed: 1, waiting: 1 });
    expect(liveOf(book, "tidy")).toMatchObject({ state: "waiting", failed: 1, waiting: 1 });
    const fence = claim(book, "alarm");
    succeed(book, "slow");
    expect(liveOf(book, "alarm")).toMatchObject({ state: "leased", fence, waiting: 0 });
    expect(liveOf(book, "tidy").state).toBe("ready");
  });

  test("sets the reason of the run, if it is the first to fail", () => {
    const book = runningBook({ a: [], b: [] });
    fail(book, "b", { error: "first" });
    expect(book.reason).toBe("failure");
    book.reason = null; // It was written.
    fail(book, "a", { error: "second" });
    expect(book.reason).toBeNull();
  });

  test("skips ten thousand descendants without a stack overflow", () => {
    const nodes = Array.from({ length: 10_000 }, (_, index) => [`n${index}`, index === 0 ? [] : [`n${index - 1}`]]);
    const book = runningBook(Object.fromEntries(nodes) as Nodes);
    fail(book, "n0");
    expect(book).toMatchObject({ status: "FAILED", open: 0 });
    expect(entryOf(book, "n9999").status).toBe("SKIPPED");
  });
});

describe("a node whose `if` is false", () => {
  test("is skipped with the reason, and counts no attempt", () => {
    const book = runningBook({ a: [], b: ["a"], tidy: { dependsOn: ["a"], runWhen: "all_done" } });
    const fence = claim(book, "a");
    expect(entryOf(book, "a").attempt).toBe(1);
    report(book, { kind: "skipped", nodeId: "a", fence, reason: "its `if` is false" });
    expect(entryOf(book, "a")).toMatchObject({ status: "SKIPPED", attempt: 0, error: "its `if` is false" });
    expect(entryOf(book, "b").status).toBe("SKIPPED");
    expect(liveOf(book, "tidy")).toMatchObject({ state: "ready", skipped: 1 });
  });
});

describe("a node that waits for a child run", () => {
  test("stays RUNNING without a fence, and ends with the status of that run", () => {
    const book = runningBook({ a: [], b: ["a"] });
    park(book, "a");
    expect(entryOf(book, "a")).toMatchObject({
      status: "RUNNING",
      live: { state: "parked", fence: null, childRunId: "child-1" },
    });
    const outcome = { status: "SUCCESS", artifact: { items: [1] } } as const;
    expect(report(book, { kind: "child ended", nodeId: "a", childRunId: "child-1", outcome })).toBe(true);
    expect(entryOf(book, "a")).toMatchObject({ status: "SUCCESS", artifact: { items: [1] } });
    expect(liveOf(book, "b").state).toBe("ready");
  });

  test.each(["FAILED", "STOPPED"] as const)("fails if that run ends with %s, and may be retried", (status) => {
    const book = runningBook({ a: { retry: { maxAttempts: 2, backoffMs: 0 } } });
    park(book, "a");
    const outcome = { status, error: "run child-1 ended badly", final: false };
    report(book, { kind: "child ended", nodeId: "a", childRunId: "child-1", outcome });
    expect(entryOf(book, "a")).toMatchObject({
      status: "RETRYING",
      error: "run child-1 ended badly",
      live: { state: "ready", childRunId: null, attempt: 2 },
    });
    park(book, "a", "child-2");
    report(book, { kind: "child ended", nodeId: "a", childRunId: "child-2", outcome });
    expect(entryOf(book, "a").status).toBe("FAILED");
  });
});

describe("a node without its worker", () => {
  test("is ready for another worker at once when it was shut down, and no attempt of its budget is used", () => {
    const book = runningBook({ a: [] });
    report(book, { kind: "released", nodeId: "a", fence: claim(book, "a") });
    expect(entryOf(book, "a")).toMatchObject({
      status: "RETRYING",
      attempt: 2,
      endedAttempt: { status: "STOPPED", error: "its worker was shut down" },
      live: { state: "ready", tries: 0, lost: 0, fence: null },
    });
  });

  test("is retried when its worker was lost, which does not count as a failure", () => {
    const book = runningBook({ a: [] });
    lose(book, "a");
    expect(entryOf(book, "a")).toMatchObject({
      status: "RETRYING",
      attempt: 2,
      endedAttempt: { status: "LOST", error: "its worker was lost" },
      live: { state: "ready", tries: 0, lost: 1 },
    });
    expect(book.events).toMatchObject([
      { kind: "node lost its worker", nodeId: "a", detail: { attempt: 1, inARow: 1 } },
    ]);
  });

  test("is FAILED after lostLimit lost workers in a row", () => {
    const book = runningBook({ a: [] });
    for (let lost = 1; lost < LOST_LIMIT; lost += 1) lose(book, "a");
    expect(entryOf(book, "a").status).toBe("RETRYING");
    lose(book, "a");
    expect(entryOf(book, "a")).toMatchObject({ status: "FAILED", error: "3 workers in a row were lost" });
    expect(book.status).toBe("FAILED");
  });

  test("has its count of lost workers reset by an ordinary failure", () => {
    const book = runningBook({ a: { retry: { maxAttempts: 9, backoffMs: 0 } } });
    for (let lost = 1; lost < LOST_LIMIT; lost += 1) lose(book, "a");
    fail(book, "a");
    lose(book, "a");
    expect(entryOf(book, "a").status).toBe("RETRYING");
  });
});

describe("a table that arrives", () => {
  test("counts like a parent that succeeded", () => {
    const book = runningBook({ a: [], b: { dependsOn: ["a"], waitsFor: ["t", "u"] } }, { b: ["t", "u"] });
    expect(liveOf(book, "b").waiting).toBe(3);
    report(book, { kind: "arrived", nodeId: "b", table: "t" });
    succeed(book, "a");
    expect(liveOf(book, "b")).toMatchObject({ state: "waiting", waiting: 1 });
    report(book, { kind: "arrived", nodeId: "b", table: "u" });
    expect(liveOf(book, "b")).toMatchObject({ state: "ready", waiting: 0 });
  });

  test("does not change a node that was skipped meanwhile", () => {
    const book = runningBook({ a: [], b: { dependsOn: ["a"], waitsFor: ["t"] } }, { b: ["t"] });
    fail(book, "a");
    expect(report(book, { kind: "arrived", nodeId: "b", table: "t" })).toBe(false);
    expect(entryOf(book, "b").status).toBe("SKIPPED");
  });
});

describe("an event that is too late", () => {
  const of = (fence: string): NodeEvent[] => [
    { kind: "succeeded", nodeId: "a", fence, artifact: 1 },
    { kind: "failed", nodeId: "a", fence, error: "no", final: true },
    { kind: "skipped", nodeId: "a", fence, reason: "no" },
    { kind: "parked", nodeId: "a", fence, childRunId: "child-9" },
    { kind: "released", nodeId: "a", fence },
    { kind: "lost", nodeId: "a", fence, lostLimit: 1 },
  ];
  function changesNothing(book: Book, events: readonly NodeEvent[]): void {
    const before = structuredClone(book);
    for (const event of events) expect(report(book, event), event.kind).toBe(false);
    expect(book).toEqual(before);
  }

  test("changes nothing under an old fence", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const old = claim(book, "a");
    report(book, { kind: "released", nodeId: "a", fence: old });
    changesNothing(book, of(old)); // It is ready.
    claim(book, "a");
    changesNothing(book, of(old)); // Another worker holds it.
  });

  test("changes nothing when the node has ended or does not exist", () => {
    const book = runningBook({ a: [], b: ["a"] });
    const fence = claim(book, "a");
    report(book, { kind: "succeeded", nodeId: "a", fence, artifact: null });
    changesNothing(book, of(fence));
    changesNothing(book, [{ kind: "succeeded", nodeId: "ghost", fence, artifact: null }]);
  });

  test("changes nothing when the node waits for another child run, or for none", () => {
    const book = runningBook({ a: [] });
    const event = { kind: "child ended", nodeId: "a", childRunId: "child-1" } as const;
    const ended: NodeEvent = { ...event, outcome: { status: "SUCCESS", artifact: null } };
    changesNothing(book, [ended]);
    const fence = claim(book, "a");
    changesNothing(book, [ended]);
    report(book, { kind: "parked", nodeId: "a", fence, childRunId: "child-2" });
    changesNothing(book, [ended, ...of(fence)]);
  });
});

describe("the affected nodes", () => {
  const { graph } = newBook({
    a: [],
    b: ["a"],
    alarm: { dependsOn: ["a"], runWhen: "one_failed" },
    c: ["b"],
    after: ["alarm"],
  });
  const of = (event: Partial<NodeEvent>) =>
    affectedNodes(graph, { nodeId: "a", fence: "1", ...event } as NodeEvent).sort();

  test("of a success are the children, and the descendants of children that it may skip", () => {
    expect(of({ kind: "succeeded" })).toEqual(["a", "after", "alarm", "b"]);
    const outcome = { status: "SUCCESS", artifact: null } as const;
    expect(of({ kind: "child ended", outcome })).toEqual(["a", "after", "alarm", "b"]);
  });

  test.each<NodeEvent["kind"]>(["failed", "skipped", "lost", "blocked"])(
    "of an event `%s` are all descendants",
    (kind) => {
      expect(of({ kind })).toEqual(["a", "after", "alarm", "b", "c"]);
    },
  );

  test.each<NodeEvent["kind"]>(["parked", "arrived"])("of an event `%s` are only the node itself", (kind) => {
    expect(of({ kind })).toEqual(["a"]);
  });

  test("of a node that does not exist are none", () => {
    expect(of({ kind: "failed", nodeId: "ghost" })).toEqual([]);
  });
});

describe("a node whose earlier child run is still stopping", () => {
  const outcome = { status: "STOPPED", error: "it was stopped", final: false } as const;
  const block = (book: Book, nodeId: string) =>
    expect(report(book, { kind: "blocked", nodeId, fence: claim(book, nodeId), childRunId: "child-1" })).toBe(true);

  test("is RETRYING without a fence, and the same attempt is ready when that run has ended, however", () => {
    const book = runningBook({ a: { retry: { maxAttempts: 3, backoffMs: 0 } } });
    fail(book, "a");
    block(book, "a");
    expect(entryOf(book, "a")).toMatchObject({
      status: "RETRYING",
      attempt: 2,
      live: { state: "blocked", fence: null, childRunId: "child-1", attempt: 2, tries: 1 },
    });
    expect(report(book, { kind: "child ended", nodeId: "a", childRunId: "child-1", outcome })).toBe(true);
    expect(liveOf(book, "a")).toMatchObject({ state: "ready", childRunId: null, attempt: 2, tries: 1 });
  });

  test("does not time out, and does not hear of other runs", () => {
    const book = runningBook({ a: [] });
    block(book, "a");
    expect(report(book, { kind: "child timed out", nodeId: "a", childRunId: "child-1" })).toBe(false);
    expect(report(book, { kind: "child ended", nodeId: "a", childRunId: "child-2", outcome })).toBe(false);
    expect(liveOf(book, "a").state).toBe("blocked");
  });

  test("is STOPPED at once with its run", () => {
    const book = runningBook({ a: [] });
    block(book, "a");
    onRunEvent(book, { kind: "stop", graceMs: 1, actor: "anna", reason: "stopped" });
    expect(entryOf(book, "a")).toMatchObject({ status: "STOPPED", attempt: 0, live: null });
  });

  test("is STOPPED instead while its run is STOPPING", () => {
    const book = runningBook({ a: [] });
    const fence = claim(book, "a");
    onRunEvent(book, { kind: "stop", graceMs: 1, actor: "anna", reason: "stopped" });
    report(book, { kind: "blocked", nodeId: "a", fence, childRunId: "child-1" });
    expect(entryOf(book, "a")).toMatchObject({ status: "STOPPED", live: null });
  });
});

/** The delay of a node ends. */
function releaseDelayed(book: Book, nodeId: string): void {
  Object.assign(liveOf(book, nodeId), { state: "ready", delayMs: null });
}
