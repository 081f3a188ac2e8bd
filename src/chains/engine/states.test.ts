import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { entryOf, newBook } from "./book.fixture.ts";
import { moveNode, moveRun } from "./book.ts";
import { ENDED_NODE, ENDED_RUN, NODE_STATUSES, type NodeStatus, RUN_STATUSES, type RunStatus } from "./states.ts";

const database = useDatabase();

/** A second copy of the table, so that no move is added by accident. */
const RUN_MOVES: Record<RunStatus, string> = {
  PENDING: "RUNNING STOPPED",
  RUNNING: "SUCCESS FAILED STOPPING STOPPED",
  STOPPING: "STOPPED SUCCESS FAILED",
  STOPPED: "RUNNING",
  FAILED: "RUNNING",
  SUCCESS: "",
};
const NODE_MOVES: Record<NodeStatus, string> = {
  PENDING: "RUNNING SKIPPED STOPPED",
  RUNNING: "SUCCESS FAILED RETRYING SKIPPED STOPPED",
  RETRYING: "RUNNING SKIPPED STOPPED SUCCESS",
  FAILED: "RETRYING SUCCESS PENDING",
  STOPPED: "RETRYING PENDING SUCCESS",
  SKIPPED: "PENDING STOPPED",
  SUCCESS: "PENDING",
};

const pairs = <T>(all: readonly T[]) => all.flatMap((from) => all.map((to) => ({ from, to })));

describe("a run", () => {
  test.each(pairs(RUN_STATUSES))("moves from $from to $to only if that is legal", ({ from, to }) => {
    const book = { ...newBook({ a: [] }), status: from };
    if (leadsTo(RUN_MOVES[from], to)) {
      moveRun(book, to);
      expect(book.status).toBe(to);
    } else {
      expect(() => moveRun(book, to)).toThrow(`run run-1 cannot go from ${from} to ${to}`);
      expect(book.status).toBe(from);
    }
  });

  test("has exactly the states of the database's CHECK constraints", async () => {
    expect(await wordsOf("chains.job_run", "run_states")).toEqual([...RUN_STATUSES].sort());
    expect(await wordsOf("chains.job_run", "run_ended")).toEqual([...ENDED_RUN].sort());
  });

  test("is live while it is neither PENDING nor ended", async () => {
    const live = RUN_STATUSES.filter((status) => status !== "PENDING" && !ENDED_RUN.has(status));
    expect(await wordsOf("chains.live_run", "live_run_states")).toEqual(live.sort());
  });
});

describe("a node", () => {
  test.each(pairs(NODE_STATUSES))("moves from $from to $to only if that is legal", ({ from, to }) => {
    const book = newBook({ a: [] });
    const entry = entryOf(book, "a");
    Object.assign(entry, { status: from });
    Object.assign(book, countsOf(from));
    if (leadsTo(NODE_MOVES[from], to)) {
      moveNode(book, entry, to);
      expect(entry.status).toBe(to);
      expect(book).toMatchObject(countsOf(to));
    } else {
      expect(() => moveNode(book, entry, to)).toThrow(`node a of run run-1 cannot go from ${from} to ${to}`);
      expect(entry.status).toBe(from);
      expect(book).toMatchObject(countsOf(from));
    }
  });

  test("has exactly the states of the database's CHECK constraints", async () => {
    expect(await wordsOf("chains.job_run_node", "node_states")).toEqual([...NODE_STATUSES].sort());
    expect(await wordsOf("chains.job_run_node", "node_ended")).toEqual([...ENDED_NODE].sort());
  });
});

function leadsTo(moves: string, to: string): boolean {
  return moves.split(" ").includes(to);
}

/** The counters of a run with a single node. */
function countsOf(status: NodeStatus) {
  return {
    open: Number(!ENDED_NODE.has(status)),
    failed: Number(status === "FAILED"),
    stopped: Number(status === "STOPPED"),
  };
}

/** The states that a CHECK constraint names, in alphabetical order. */
async function wordsOf(table: string, constraint: string): Promise<string[]> {
  const [row] = await database.query<{ definition: string }>(
    "select pg_get_constraintdef(oid) as definition from pg_constraint where conrelid = $1::regclass and conname = $2",
    [table, constraint],
  );
  const words = row?.definition.match(/(?<=')\w+(?=')/g) ?? [];
  return [...new Set(words)].sort();
}
