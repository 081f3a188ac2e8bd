import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openRecordingDb } from "../../../test/plans.ts";
import { openGates } from "./gates.fixture.ts";

const database = useDatabase();
const GATES_MANY = 5_000;
/** Some 40 pages are read, most of them to write new row versions; the tables have thousands. */
const PAGES_MAX = 150;

test("a request goes by the index, also with a plan that was made when there were few gates", async () => {
  const { db, explainLast } = openRecordingDb(database.connection, "kernel.gate");
  onTestFinished(() => db.close());
  const gates = await openGates(db);
  const quotas = [{ unit: "requests" as const, windowSec: 86_400, limit: 1e9 }];
  await gates.declare(db, [
    { key: "source", ratePerSec: 1_000, burst: 900, concurrency: 5, quotas },
    { key: "endpoint", ratePerSec: 1_000, burst: 900 },
  ]);
  const request = async () => {
    const answer = await gates.acquire({ gates: [{ key: "source" }, { key: "endpoint" }], deadlineMs: 60_000 });
    if (answer.kind === "allow") await gates.release(answer.held);
  };
  for (let n = 0; n < 10; n += 1) await request();
  await database.query(
    `insert into kernel.rate_gate (key) select 'other-' || n from generate_series(1, ${GATES_MANY}) n`,
  );
  await database.query(`insert into kernel.rate_slot (key, slot_no)
    select 'other-' || n, s from generate_series(1, ${GATES_MANY}) n cross join generate_series(0, 4) s`);
  await database.query(`insert into kernel.rate_quota (key, unit, window_sec, quota_limit, reset_at)
    select 'other-' || n, 'requests', 86400, 5, now() from generate_series(1, ${GATES_MANY}) n`);
  await request();
  for (const name of ["kernel.gate.acquire", "kernel.gate.release"]) {
    const { nodes, pages } = await explainLast(name);
    expect(nodes, name).not.toContain("Seq Scan");
    expect(pages, name).toBeLessThan(PAGES_MAX);
  }
});
