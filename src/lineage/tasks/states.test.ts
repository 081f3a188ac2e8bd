/** Every move of a task is tried from every state: legal ones are made, all others leave the row as it is. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { tableName } from "../graph/names.ts";
import { enqueue } from "./enqueue.ts";
import { TASK_NEXT, TASK_STATUSES, type TaskStatus, WANTED_BY_EVENT, WANTED_BY_MODEL } from "./states.ts";
import { cancelTask, resetTask, resetTasks } from "./store/reads.ts";
import { finishTasks, type TaskResult } from "./store/results.ts";
import { claimTasks, reclaimTasks } from "./store/tasks.ts";
import { type Asset, BUILTIN, useTasks } from "./tasks.fixture.ts";

const database = useDatabase();
const tasks = useTasks(database);
const lane = { tenant_id: "1", task_type: "EMBEDDING", model_fingerprint: "builtin:hash-v1:16" } as const;
const tenant = { id: "1", code: "tenant-1", model: BUILTIN };
let id: string;
let asset: Asset;

beforeEach(async () => {
  await tasks.tenant("1", BUILTIN);
  asset = await tasks.asset("1", tableName("gravitino", "lake", "sales", "orders"));
  await enqueue(database.db, tenant, [asset], []);
  id = (await tasks.rows())[0]?.id ?? "";
});

async function bringTo(status: TaskStatus, retryCount = 0): Promise<void> {
  await database.query(
    `update lineage.ol_async_task set status = $1, retry_count = $2, next_run_at = now() - interval '1 s',
       claim_token = case when $1 = 'RUNNING' then 'token' end,
       claim_until = case when $1 = 'RUNNING' then now() - interval '1 ms' end`,
    [status, retryCount],
  );
}

const finish = (fields: Partial<TaskResult>) => async () => {
  const [row] = await database.query<{ due: string }>("select next_run_at::text as due from lineage.ol_async_task");
  return finishTasks(database.db, [
    {
      id,
      claim_token: "token",
      status: "SUCCEEDED",
      delay_seconds: 60,
      retries: 0,
      error: null,
      due: row?.due ?? "",
      outdated: false,
      attempt_status: "SUCCEEDED",
      error_type: null,
      ...fields,
    },
  ]);
};
const claim = () => claimTasks(database.db, { lane, limit: 1, batchNo: "b", seconds: 9, workerId: "w" });
const want = (again: readonly TaskStatus[]) => () => enqueue(database.db, tenant, [asset], again);

interface Move {
  make: () => Promise<unknown>;
  from: readonly TaskStatus[];
  to: TaskStatus;
  retries?: number;
}
const MOVES: Record<string, Move> = {
  claim: { make: claim, from: ["PENDING", "FAILED"], to: "RUNNING" },
  succeed: { make: finish({}), from: ["RUNNING"], to: "SUCCEEDED" },
  "find nothing left to do": { make: finish({ outdated: true }), from: ["RUNNING"], to: "SUCCEEDED" },
  "find nothing left to do, but asked for again": {
    make: finish({ outdated: true, due: "2000-01-01T00:00:00Z" }),
    from: ["RUNNING"],
    to: "PENDING",
  },
  fail: { make: finish({ status: "FAILED", retries: 1 }), from: ["RUNNING"], to: "FAILED" },
  "fail for the last time": { make: finish({ status: "DEAD" }), from: ["RUNNING"], to: "DEAD" },
  withdraw: { make: finish({ status: "CANCELED" }), from: ["RUNNING"], to: "CANCELED" },
  "give back": { make: finish({ status: "PENDING", delay_seconds: 0 }), from: ["RUNNING"], to: "PENDING" },
  reclaim: { make: () => reclaimTasks(database.db, 9), from: ["RUNNING"], to: "FAILED" },
  "reclaim once too often": { make: () => reclaimTasks(database.db, 9), from: ["RUNNING"], to: "DEAD", retries: 5 },
  reset: { make: () => resetTask(database.db, "1", id), from: ["FAILED", "DEAD", "CANCELED"], to: "PENDING" },
  "reset all that failed": { make: () => resetTasks(database.db, "1", "FAILED", 9), from: ["FAILED"], to: "PENDING" },
  "reset all that are dead": { make: () => resetTasks(database.db, "1", "DEAD", 9), from: ["DEAD"], to: "PENDING" },
  cancel: { make: () => cancelTask(database.db, "1", id), from: ["PENDING", "FAILED", "DEAD"], to: "CANCELED" },
  "want again by an event": { make: want(WANTED_BY_EVENT), from: ["SUCCEEDED"], to: "PENDING" },
  "want again by a model": {
    make: want(WANTED_BY_MODEL),
    from: ["SUCCEEDED", "FAILED", "DEAD", "CANCELED"],
    to: "PENDING",
  },
};

/** That a running task was asked for again shows in these two, and in nothing else. */
const withoutTime = (row: object | undefined) => ({ ...row, next_run_at: null, updated_at: null });

describe.each(Object.entries(MOVES))("%s", (_, { make, from, to, retries = 0 }) => {
  test.each(TASK_STATUSES)("from %s", async (status) => {
    await bringTo(status, retries);
    const [before] = await tasks.rows();
    await make();
    const [after] = await tasks.rows();
    if (from.includes(status)) {
      expect(after?.status).toBe(to);
      expect(TASK_NEXT[status]).toContain(to);
    } else {
      expect(withoutTime(after)).toEqual(withoutTime(before));
    }
  });
});

test("every move of the table is made by something", () => {
  const made = Object.values(MOVES).flatMap(({ from, to }) => from.map((status) => `${status} ${to}`));
  const all = TASK_STATUSES.flatMap((from) => TASK_NEXT[from].map((to) => `${from} ${to}`));
  expect([...new Set(made)].sort()).toEqual(all.sort());
});

test.each(["status = 'LOST'", "status = 'RUNNING'", "claim_token = 'x', claim_until = now()"])(
  "the database refuses a task with %s",
  async (set) => {
    await expect(database.query(`update lineage.ol_async_task set ${set}`)).rejects.toThrow(
      /violates check constraint/,
    );
  },
);

test("another claim's token changes nothing, and neither does another tenant", async () => {
  await bringTo("RUNNING");
  const before = await tasks.rows();
  expect(await finish({ claim_token: "other" })()).toEqual([]);
  expect(await tasks.rows()).toEqual(before);
  await bringTo("DEAD");
  expect(await resetTask(database.db, "2", id)).toBe(false);
  expect(await cancelTask(database.db, "2", id)).toBe(false);
});
