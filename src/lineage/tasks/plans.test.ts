/** The statements of the hot path touch as few pages after years of tasks as on the first day. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../../test/plans.ts";
import { until } from "../../../test/until.ts";
import type { Db } from "../../kernel/data/db.ts";
import { BUILTIN, type TestTasks, useTasks } from "./tasks.fixture.ts";

const HISTORY = 100_000;
const WAITING = 20_000;
/** Several times as many as were seen for a batch of two. A walk over history reads 1,000 and more. */
const PAGES_MAX = 60;

const database = useDatabase();
const tasks = useTasks(database);
let db: Db;
let calls: RecordingDb["calls"];
let explainLast: RecordingDb["explainLast"];

beforeAll(() => {
  ({ db, calls, explainLast } = openRecordingDb(database.connection, "lineage."));
});
afterAll(() => db.close());

async function addRows(count: number, status: string): Promise<void> {
  await database.query(
    `with made as (
       insert into lineage.ol_async_task
         (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint, status, next_run_at)
       select 'EMBEDDING', 1 + n % 2, 'x', 'COLUMN', $2 || n, lpad(n::text, 64, '0'), 'builtin:hash-v1:16', $2,
              now() + case when $2 = 'FAILED' then interval '1 day' else interval '-1 day' end
       from generate_series(1, $1::int) n returning id
     ) insert into lineage.ol_async_task_attempt (task_id, attempt_no, worker_id, started_at, status, batch_no)
     select id, 1, 'w', now(), 'SUCCEEDED', id::text from made`,
    [count, status],
  );
}

let round = 0;
/** What a process does all the time, once around: two assets that changed, one of them a statement. */
async function turn(process: TestTasks): Promise<void> {
  round += 1;
  const tenant = { id: "1", code: "x", model: BUILTIN };
  const column = await tasks.asset("1", { kind: "COLUMN", path: ["gravitino", "a", "b", "c", `n${round}`] });
  const sql = await tasks.asset(
    "1",
    { kind: "SQL", path: ["n", "j", `${round}`] },
    { content: `select ${round} from t` },
  );
  await db.tx((tx) => process.enqueue(tx, tenant, [column, sql]));
  await process.worker.runOnce();
  await until(async () => (await process.worker.runOnce())["claimed"] === 0, "the batches");
  await until(async () => {
    const [row] = await database.query<{ n: number }>(
      "select count(*)::int as n from lineage.ol_async_task where status in ('RUNNING', 'PENDING')",
    );
    return row?.n === 0;
  }, "the outcomes");
}

test("plans made on an empty database go by the index on a full one", async () => {
  const process = tasks.open({ db });
  for (const id of ["1", "2"]) await tasks.tenant(id, BUILTIN);
  for (const table of ["ol_async_task", "ol_async_task_attempt", "ol_async_batch", "node", "embedding", "summary"]) {
    // Nothing makes the connection plan anew, as on the day of a sudden load.
    await database.query(`alter table lineage.${table} set (autovacuum_enabled = false)`);
  }
  await database.query("analyze");
  for (let n = 0; n < 12; n += 1) await turn(process); // Postgres settles on a plan after five.
  await addRows(HISTORY, "SUCCEEDED");
  await addRows(WAITING, "FAILED");
  await database.query(
    `insert into lineage.node (tenant_id, kind, key, path, name)
     select 1, 'COLUMN', gen_random_uuid(), array['x'], 'x' from generate_series(1, $1::int)`,
    [WAITING],
  );
  calls.clear();
  await turn(process);

  expect([...calls.keys()]).toEqual(expect.arrayContaining(HOT));
  for (const name of HOT) {
    const facts = await explainLast(name);
    expect(facts.nodes, name).not.toContain("Seq Scan");
    expect(facts.pages, `pages of ${name}`).toBeLessThan(PAGES_MAX);
  }
});

const HOT = [
  "lineage.task.enqueue",
  "lineage.task.lanes",
  "lineage.task.next_expiry",
  "lineage.task.claim",
  "lineage.model.read",
  "lineage.task.assets",
  "lineage.summary.upsert",
  "lineage.embedding.upsert",
  "lineage.task.finish",
  "lineage.task.finish_attempts",
  "lineage.task.finish_batch",
];
