/** Random DAGs and random commands, without a database: whatever happens, in whatever order, the book stays right. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { RUN_WHEN } from "../definitions/dag.ts";
import { claim, entryOf, type Nodes, newBook } from "./book.fixture.ts";
import { type Book, enter, openBook } from "./book.ts";
import { admit, complete, resume, retry } from "./revive.ts";
import { judge } from "./rules.ts";
import { ENDED_NODE, ENDED_RUN } from "./states.ts";
import { type NodeEvent, onNodeEvent, onRunEvent, reach } from "./transition.ts";

const NODES_MAX = 8;
const RUNS = process.env["MILLRACE_TEST_LONG"] ? 20_000 : 500;
const ACTOR = "anna";

const nodeIndex = fc.nat(NODES_MAX - 1);
const nodes = fc
  .array(
    fc.record({
      parents: fc.uniqueArray(nodeIndex, { maxLength: 3 }),
      runWhen: fc.constantFrom(...RUN_WHEN),
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      backoffMs: fc.constantFrom(0, 1_000),
    }),
    { minLength: 1, maxLength: NODES_MAX },
  )
  .map((specs): Nodes => {
    const entries = specs.map(({ parents, runWhen, ...retryPolicy }, index) => {
      const dependsOn = parents.filter((parent) => parent < index).map((parent) => `n${parent}`);
      const rule = runWhen === "one_failed" && dependsOn.length === 0 ? {} : { runWhen };
      return [`n${index}`, { dependsOn, ...rule, retry: retryPolicy }];
    });
    return Object.fromEntries(entries) as Nodes;
  });

/** A claim and a success come more often, or few runs would get far. */
const KINDS =
  `claim, claim, claim, succeed, succeed, fail, fail for good, skip, release, lose, park, child succeeds, child fails,
   ripen, stop, time is up, grace is over, settle, resume, retry node, retry with downstream, retry run, complete`.split(
    /,\s+/,
  );
const commands = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), at: nodeIndex }), { maxLength: 60 });

/** One of the nodes to which the command can be done now; any, if there is none. */
function targetOf(book: Book, kind: string, at: number): string {
  const ids = [...book.nodes.keys()];
  const fitting = ids.filter((id) => {
    const { status, live } = entryOf(book, id);
    if (kind === "claim") return live?.state === "ready";
    if (kind === "ripen") return live?.state === "delayed";
    if (kind.startsWith("retry")) return status === "FAILED" || status === "STOPPED";
    if (kind === "complete") return status === "FAILED" || status === "STOPPED" || status === "RUNNING";
    return eventOf(kind, book, id) !== undefined;
  });
  const choice = fitting.length > 0 ? fitting : ids;
  return choice[at % choice.length] as string;
}

/** What a worker, a timer or another run could say of the node now, if anything. */
function eventOf(kind: string, book: Book, nodeId: string): NodeEvent | undefined {
  const { live } = entryOf(book, nodeId);
  if (live?.state === "leased" && live.fence !== null) {
    const { fence } = live;
    switch (kind) {
      case "succeed":
        return { kind: "succeeded", nodeId, fence, artifact: 1 };
      case "fail":
        return { kind: "failed", nodeId, fence, error: "no", final: false };
      case "fail for good":
        return { kind: "failed", nodeId, fence, error: "no", final: true };
      case "skip":
        return { kind: "skipped", nodeId, fence, reason: "no" };
      case "release":
        return { kind: "released", nodeId, fence };
      case "lose":
        return { kind: "lost", nodeId, fence, lostLimit: 2 };
      case "park":
        return { kind: "parked", nodeId, fence, childRunId: "child" };
    }
  }
  if (live?.state !== "parked") return undefined;
  const event = { kind: "child ended", nodeId, childRunId: "child" } as const;
  if (kind === "child succeeds") return { ...event, outcome: { status: "SUCCESS", artifact: 1 } };
  if (kind === "child fails") return { ...event, outcome: { status: "FAILED", error: "no", final: false } };
  return undefined;
}

/** Plays one command as the engine, the timers and the use cases do, each in the states in which they would. */
function play(book: Book, kind: string, nodeId: string): Book {
  const { live } = entryOf(book, nodeId);
  const node = { actor: ACTOR, reason: null };
  switch (kind) {
    case "claim":
      if (live?.state === "ready" && book.status === "RUNNING") claim(book, nodeId);
      return book;
    case "ripen":
      if (live?.state === "delayed") Object.assign(live, { state: "ready", delayMs: null });
      return book;
    case "stop":
      if (book.status === "RUNNING") onRunEvent(book, { kind: "stop", graceMs: 1, actor: ACTOR, reason: "stopped" });
      return book;
    case "time is up":
      if (book.status === "RUNNING") onRunEvent(book, { kind: "time is up", graceMs: 1, timeoutMs: 1 });
      return book;
    case "grace is over":
    case "settle":
      if (book.status === "STOPPING") onRunEvent(book, { kind });
      return book;
    case "resume":
      resume(book, ACTOR);
      return book;
    case "retry node":
    case "retry with downstream":
    case "retry run": {
      // What is refused is not written.
      const tried = structuredClone(book);
      const request = {
        nodeId: kind === "retry run" ? undefined : nodeId,
        downstream: kind === "retry with downstream",
      };
      return retry(tried, { ...request, ...node }) ? book : tried;
    }
    case "complete":
      if (entryOf(book, nodeId).status !== "SUCCESS") complete(book, { nodeId, artifact: 1, ...node });
      return book;
    default: {
      const event = eventOf(kind, book, nodeId);
      if (event) expect(onNodeEvent(book, event, () => 0)).toBe(true);
      return book;
    }
  }
}

/** Everything about the book that does not fit together; a sentence each. */
function flawsOf(book: Book): string[] {
  const entries = [...book.nodes.values()];
  const count = (status: string) => entries.filter((entry) => entry.status === status).length;
  const open = entries.filter(({ status }) => !ENDED_NODE.has(status)).length;
  const rules: [string, boolean][] = [
    ["the run counts its nodes wrong", book.open === open && book.failed === count("FAILED")],
    ["the run counts its stopped nodes wrong", book.stopped === count("STOPPED")],
    [`the run is ${book.status}`, book.status === "STOPPING" || ENDED_RUN.has(book.status) === (open === 0)],
  ];
  for (const { status, live, attempt, node } of entries) {
    rules.push([`${node.id} is ${status}`, (live === null) === ENDED_NODE.has(status)]);
    if (!live) continue;
    const parents = node.parents.map(({ id }) => entryOf(book, id).status);
    const those = (...wanted: string[]) => parents.filter((parent) => wanted.includes(parent)).length;
    const { state } = live;
    const verdict = judge(node.runWhen, live);
    rules.push(
      [
        `${node.id} counts unmet parents wrong`,
        live.waiting === parents.length - those("SUCCESS", "FAILED", "SKIPPED"),
      ],
      [`${node.id} counts failed parents wrong`, live.failed === those("FAILED")],
      [`${node.id} counts skipped parents wrong`, live.skipped === those("SKIPPED")],
      [`${node.id} is ${status} and ${state}`, (status === "RUNNING") === (state === "leased" || state === "parked")],
      [`${node.id} is at attempt ${attempt}`, live.attempt === (status === "PENDING" ? attempt + 1 : attempt)],
      [`${node.id} waits, but its rule says ${verdict}`, state !== "waiting" || verdict === "wait"],
      [
        `${node.id} is ${state}, but its rule says ${verdict}`,
        !["ready", "delayed"].includes(state) || verdict === "run",
      ],
    );
  }
  return rules.filter(([, holds]) => !holds).map(([flaw]) => flaw);
}

test("counters, states and the run's status agree after every step", () => {
  fc.assert(
    fc.property(nodes, commands, (dag, steps) => {
      let book = newBook(dag);
      admit(book);
      expect(flawsOf(book)).toEqual([]);
      for (const { kind, at } of steps) {
        book = play(book, kind, targetOf(book, kind, at));
        expect(flawsOf(book)).toEqual([]);
      }
    }),
    { numRuns: RUNS },
  );
});

test("a run that is left to itself comes to an end, whatever was done to it before", () => {
  fc.assert(
    fc.property(nodes, commands, (dag, steps) => {
      let book = newBook(dag);
      admit(book);
      for (const { kind, at } of steps) book = play(book, kind, targetOf(book, kind, at));
      for (let round = 0; book.open > 0; round += 1) {
        expect(round, "rounds without an end").toBeLessThan(NODES_MAX + 1);
        for (const id of book.nodes.keys()) {
          for (const kind of ["ripen", "claim", "succeed", "child succeeds"]) book = play(book, kind, id);
        }
      }
      if (book.status === "STOPPING") book = play(book, "settle", "n0");
      expect(ENDED_RUN.has(book.status)).toBe(true);
    }),
    { numRuns: RUNS },
  );
});

test("an event changes nothing beyond its reach, so the rest of the run need not be read", () => {
  fc.assert(
    fc.property(nodes, commands, (dag, steps) => {
      let book = newBook(dag);
      admit(book);
      for (const { kind, at } of steps) {
        const nodeId = targetOf(book, kind, at);
        const event = eventOf(kind, book, nodeId);
        const partial = event && partOf(book, reach(book.graph, event));
        book = play(book, kind, nodeId);
        if (!event || !partial) continue;
        onNodeEvent(partial, event, () => 0);
        const { status, open, failed, stopped } = book;
        expect(partial).toMatchObject({ status, open, failed, stopped });
        for (const [id, entry] of partial.nodes) expect(entry.live).toEqual(entryOf(book, id).live);
      }
    }),
    { numRuns: RUNS },
  );
});

/** The run as the engine opens it for a report: only the named nodes, and of those what has not ended. */
function partOf(book: Book, ids: readonly string[]): Book {
  const { runId, graph, status, open, failed, stopped, timedOut } = book;
  const part = openBook({ runId, graph, status, open, failed, stopped, timedOut });
  for (const id of ids) {
    const { live, ...entry } = entryOf(book, id);
    if (live) enter(part, id, { ...entry, live: { ...live } });
  }
  return part;
}
