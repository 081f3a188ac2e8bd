/** Random commands on random DAGs, without a database: the book stays consistent after any sequence. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { RUN_WHEN } from "../definitions/dag.ts";
import { claim, entryOf, type Nodes, newBook } from "./book.fixture.ts";
import { addNode, type Book, openBook } from "./book.ts";
import { admit, complete, resume, retry } from "./revive.ts";
import { decide } from "./rules.ts";
import { ENDED_NODE, ENDED_RUN } from "./states.ts";
import { affectedNodes, endRunIfDone, type NodeEvent, onNodeEvent, onRunEvent } from "./transition.ts";

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

/** Claims and successes are more frequent, or few runs would get far. */
const KINDS =
  `claim, claim, claim, succeed, succeed, fail, fail for good, skip, release, lose, park, block, child succeeds, child fails,
   release delayed, stop, timed out, grace expired, end if done, resume, retry node, retry with downstream, retry run, complete`.split(
    /,\s+/,
  );
const commands = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), at: nodeIndex }), { maxLength: 60 });

/** One of the nodes that the command can apply to now; any, if there is none. */
function targetOf(book: Book, kind: string, at: number): string {
  const ids = [...book.nodes.keys()];
  const fitting = ids.filter((id) => {
    const { status, live } = entryOf(book, id);
    if (kind === "claim") return live?.state === "ready";
    if (kind === "release delayed") return live?.state === "delayed";
    if (kind.startsWith("retry")) return status === "FAILED" || status === "STOPPED";
    if (kind === "complete") return status === "FAILED" || status === "STOPPED" || status === "RUNNING";
    return eventOf(kind, book, id) !== undefined;
  });
  const choice = fitting.length > 0 ? fitting : ids;
  return choice[at % choice.length] as string;
}

/** The event that a worker, a timer or a child run could report for the node now, if any. */
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
      case "block":
        return { kind: "blocked", nodeId, fence, childRunId: "child" };
    }
  }
  if (live?.state !== "parked" && live?.state !== "blocked") return undefined;
  const event = { kind: "child ended", nodeId, childRunId: "child" } as const;
  if (kind === "child succeeds") return { ...event, outcome: { status: "SUCCESS", artifact: 1 } };
  if (kind === "child fails") return { ...event, outcome: { status: "FAILED", error: "no", final: false } };
  return undefined;
}

/** Applies one command as the engine, the timers and the use cases do, only in states in which they would. */
function apply(book: Book, kind: string, nodeId: string): Book {
  const { live } = entryOf(book, nodeId);
  const node = { actor: ACTOR, reason: null };
  switch (kind) {
    case "claim":
      if (live?.state === "ready" && book.status === "RUNNING") claim(book, nodeId);
      return book;
    case "release delayed":
      if (live?.state === "delayed") Object.assign(live, { state: "ready", delayMs: null });
      return book;
    case "stop":
      if (book.status === "RUNNING") onRunEvent(book, { kind: "stop", graceMs: 1, actor: ACTOR, reason: "stopped" });
      return book;
    case "timed out":
      if (book.status === "RUNNING") onRunEvent(book, { kind: "timed out", graceMs: 1, timeoutMs: 1 });
      return book;
    case "grace expired":
      if (book.status === "STOPPING") onRunEvent(book, { kind });
      return book;
    case "end if done":
      if (book.status === "STOPPING") endRunIfDone(book);
      return book;
    case "resume":
      resume(book, ACTOR);
      return book;
    case "retry node":
    case "retry with downstream":
    case "retry run": {
      // A refused change is not written.
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

/** All inconsistencies of the book, one sentence each. */
function inconsistenciesOf(book: Book): string[] {
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
    const decision = decide(node.runWhen, live);
    rules.push(
      [
        `${node.id} counts unmet parents wrong`,
        live.waiting === parents.length - those("SUCCESS", "FAILED", "SKIPPED"),
      ],
      [`${node.id} counts failed parents wrong`, live.failed === those("FAILED")],
      [`${node.id} counts skipped parents wrong`, live.skipped === those("SKIPPED")],
      [`${node.id} is ${status} and ${state}`, (status === "RUNNING") === (state === "leased" || state === "parked")],
      [`${node.id} is at attempt ${attempt}`, live.attempt === (status === "PENDING" ? attempt + 1 : attempt)],
      [`${node.id} waits, but its rule says ${decision}`, state !== "waiting" || decision === "wait"],
      [
        `${node.id} is ${state}, but its rule says ${decision}`,
        !["ready", "delayed", "blocked"].includes(state) || decision === "run",
      ],
      [`${node.id} is ${state} for a run`, (live.childRunId !== null) === (state === "parked" || state === "blocked")],
    );
  }
  return rules.filter(([, holds]) => !holds).map(([message]) => message);
}

test("counters, states and the run's status agree after every step", () => {
  fc.assert(
    fc.property(nodes, commands, (dag, steps) => {
      let book = newBook(dag);
      admit(book);
      expect(inconsistenciesOf(book)).toEqual([]);
      for (const { kind, at } of steps) {
        book = apply(book, kind, targetOf(book, kind, at));
        expect(inconsistenciesOf(book)).toEqual([]);
      }
    }),
    { numRuns: RUNS },
  );
});

test("every run ends if all its nodes succeed from now on, whatever happened to it before", () => {
  fc.assert(
    fc.property(nodes, commands, (dag, steps) => {
      let book = newBook(dag);
      admit(book);
      for (const { kind, at } of steps) book = apply(book, kind, targetOf(book, kind, at));
      for (let round = 0; book.open > 0; round += 1) {
        expect(round, "rounds without an end").toBeLessThan(NODES_MAX + 1);
        for (const id of book.nodes.keys()) {
          for (const kind of ["release delayed", "claim", "succeed", "child succeeds"]) book = apply(book, kind, id);
        }
      }
      if (book.status === "STOPPING") book = apply(book, "end if done", "n0");
      expect(ENDED_RUN.has(book.status)).toBe(true);
    }),
    { numRuns: RUNS },
  );
});

test("an event changes only its affected nodes, so the rest of the run need not be read", () => {
  fc.assert(
    fc.property(nodes, commands, (dag, steps) => {
      let book = newBook(dag);
      admit(book);
      for (const { kind, at } of steps) {
        const nodeId = targetOf(book, kind, at);
        const event = eventOf(kind, book, nodeId);
        const partial = event && partOf(book, affectedNodes(book.graph, event));
        book = apply(book, kind, nodeId);
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

/** The run as the engine opens it for a report: only the given nodes that have not ended. */
function partOf(book: Book, ids: readonly string[]): Book {
  const { runId, graph, status, open, failed, stopped, timedOut } = book;
  const part = openBook({ runId, graph, status, open, failed, stopped, timedOut });
  for (const id of ids) {
    const { live, ...entry } = entryOf(book, id);
    if (live) addNode(part, id, { ...entry, live: { ...live } });
  }
  return part;
}
