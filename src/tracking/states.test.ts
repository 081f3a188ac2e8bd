/** The tables of states agree with each other, and the database refuses every row that they do not allow. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import {
  FILE_MOVES,
  FILE_TRANSITIONS,
  MOVES,
  NEXT,
  QUEUE_STAGES,
  STAGES,
  STATUSES,
  type Status,
  stageAfter,
  stageBefore,
  TRANSITIONS,
} from "./states.ts";

describe("the tables", () => {
  test("name every status, transition and stage", () => {
    expect(Object.keys(NEXT).sort()).toEqual([...STATUSES].sort());
    expect(Object.keys(MOVES).sort()).toEqual([...TRANSITIONS].sort());
    expect(Object.keys(FILE_MOVES).sort()).toEqual([...FILE_TRANSITIONS].sort());
    expect(STAGES.slice(1)).toEqual(QUEUE_STAGES);
  });

  test("permit each move from exactly the statuses of the pipeline API", () => {
    const departures = Object.fromEntries(
      STATUSES.map((status) => [
        status,
        TRANSITIONS.filter((move) => (MOVES[move].from as readonly Status[]).includes(status)),
      ]),
    );
    expect(departures).toEqual({ new: ["start", "fail"], started: ["done", "fail"], done: [], failed: ["retry"] });
  });

  test("list a status as next if a move leads there, and `new` after `started` for lost workers", () => {
    const reached = new Set(
      TRANSITIONS.flatMap((move) => MOVES[move].from.map((from) => `${from} -> ${MOVES[move].to}`)),
    );
    const listed = STATUSES.flatMap((from) => NEXT[from].map((to) => `${from} -> ${to}`));
    expect(new Set(listed)).toEqual(new Set([...reached, "started -> new"]));
  });

  test("order the stages", () => {
    expect(QUEUE_STAGES.map(stageBefore)).toEqual(["event-ingest", "shard-splitter", "shard-worker"]);
    expect(STAGES.map(stageAfter)).toEqual([...QUEUE_STAGES, undefined]);
  });
});

describe("the database", () => {
  const database = useDatabase();

  /** The rule for a valid row, independent of the SQL. */
  function isLegal([ingest, ...stages]: readonly Status[]): boolean {
    const begun = (status: Status | undefined) => status === "started" || status === "done";
    const inOrder = stages.every((status, i) => !begun(status) || (i === 0 ? ingest : stages[i - 1]) === "done");
    return ingest !== "new" && inOrder;
  }

  const combinations = STATUSES.flatMap((a) =>
    STATUSES.flatMap((b) => STATUSES.flatMap((c) => STATUSES.map((d) => [a, b, c, d] as const))),
  );

  test("accepts a row exactly when its stages went through in order", async () => {
    await database.query("insert into tracking.pipeline_file (filename) values ('f')");
    const disagreements: string[] = [];
    for (const [shard, statuses] of combinations.entries()) {
      const accepted = await database
        .query(
          `insert into tracking.pipeline_tracking
             (filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status)
           values ('f', $1, $2, $3, $4, $5)`,
          [shard, ...statuses],
        )
        .then(() => true, isCheckViolation);
      if (accepted !== isLegal(statuses))
        disagreements.push(`${statuses.join(", ")}: ${accepted ? "accepted" : "refused"}`);
    }
    expect(disagreements).toEqual([]);
    expect(combinations.filter(isLegal).length).toBeGreaterThan(10);
  });

  test.each([
    ["an unknown status", "shard_worker_status = 'paused'"],
    ["a fence in a stage that is new", "shard_worker_fence = 7"],
    ["a lease while nothing is started", "leased_until = now()"],
    ["a negative shard", "shard = -1"],
  ])("refuses %s", async (_what, assignment) => {
    await database.query("insert into tracking.pipeline_file (filename) values ('g') on conflict do nothing");
    await database.query(
      "insert into tracking.pipeline_tracking (filename, shard) values ('g', 0) on conflict do nothing",
    );
    const update = database.query(`update tracking.pipeline_tracking set ${assignment} where filename = 'g'`);
    await expect(update).rejects.toMatchObject({ code: "23514" });
  });

  function isCheckViolation(error: { code?: string }): false {
    if (error.code !== "23514") throw error;
    return false;
  }
});
