import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { assertMove, INSTANCE_STATES, type InstanceState, TASK_STATUSES } from "./states.ts";

const database = useDatabase();

/** Repeated here, so that nobody adds a move by accident. */
const MOVES: Record<InstanceState, string> = {
  idle: "waiting quiet asking ready parked returned",
  waiting: "idle quiet asking ready parked returned",
  quiet: "idle waiting asking ready parked returned",
  asking: "idle waiting quiet ready parked returned",
  ready: "running idle waiting quiet asking",
  running: "idle ready parked returned retrying",
  parked: "returned",
  returned: "running",
  retrying: "idle waiting ready parked returned",
};

describe("an instance", () => {
  test.each(INSTANCE_STATES.flatMap((from) => INSTANCE_STATES.map((to) => ({ from, to }))))(
    "moves from $from to $to only if it may",
    ({ from, to }) => {
      const move = () => assertMove(from, to);
      if (MOVES[from].split(" ").includes(to)) move();
      else expect(move).toThrow(`an instance cannot move from ${from} to ${to}`);
    },
  );

  test("has exactly the states of the constraint in the database", async () => {
    expect(await wordsOf("arrivals.model_instance", "instance_states")).toEqual([...INSTANCE_STATES].sort());
  });
});

test("a run has exactly the states of the constraint in the database", async () => {
  expect(await wordsOf("arrivals.metrics_task_log", "task_status")).toEqual([...TASK_STATUSES].sort());
});

/** The texts in a constraint. */
async function wordsOf(table: string, constraint: string): Promise<string[]> {
  const [row] = await database.query<{ definition: string }>(
    "select pg_get_constraintdef(oid) as definition from pg_constraint where conrelid = $1::regclass and conname = $2",
    [table, constraint],
  );
  return [...(row?.definition ?? "").matchAll(/'(\w+)'/g)].map(([, word = ""]) => word).sort();
}
