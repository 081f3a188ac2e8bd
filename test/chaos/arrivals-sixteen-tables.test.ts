/**
 * The 16 tables of a model arrive at the same time, each announced by its own client, to two servers: the model runs once
 * and uses all of them. When they arrive again, its last run uses the last arrival of each.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { api, type Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const ROUNDS = LONG ? 200 : 60;
const ROUNDS_AGAIN = LONG ? ROUNDS : 20;
const TABLES = Array.from({ length: 16 }, (_, index) => `T${String(index).padStart(2, "0")}`);

const database = useDatabase();
const servers = ["api,scheduler,worker", "api,worker"].map((roles) =>
  useMillrace(database, { env: { MILLRACE_ROLES: roles } }),
);

/** All at once, by as many clients, half of them at each server. */
async function announceAll(opTime: string): Promise<Json[]> {
  const answers = TABLES.map((table, index) =>
    api(servers[index % servers.length]?.url ?? "", ADMIN_KEY).send("/api/open/kpi/srcTableComplete", {
      method: "POST",
      headers: { "content-type": "application/json", prefer: "respond-async" },
      body: JSON.stringify({ srcTableName: table, opTime }),
    }),
  );
  return (await Promise.all(answers)).map(({ status, body }) => {
    expect(status).toBe(200);
    return body;
  });
}

interface Ran {
  op_time: string;
  status: string;
  generation: number;
  used: string[];
}
const ran = () =>
  database.query<Ran>(
    `select op_time, status, generation, array(select jsonb_object_keys(consumed) order by 1) as used
     from arrivals.metrics_task_log order by op_time, generation`,
  );

async function allEnded(): Promise<Ran[]> {
  await until(async () => {
    const busy = await database.query(
      "select from arrivals.model_instance where state not in ('idle', 'waiting') limit 1",
    );
    return busy.length === 0;
  }, "all runs to end");
  return ran();
}

test(`a model runs once when its 16 tables arrive at the same moment, ${ROUNDS} times`, {
  timeout: 60_000 + ROUNDS * 1_000,
}, async () => {
  const [first] = servers;
  const model = {
    name: "of sixteen",
    sql: "select 'K' as kpi_id, $op_time::double as value",
    dependencies: TABLES.map((table) => ({ table })),
    kpis: ["K"],
  };
  expect((await first?.api.put("/api/v1/kpi/models/m", model))?.status).toBe(201);
  await first?.api.post("/api/v1/kpi/models/m:publish");
  const opTimes = Array.from({ length: ROUNDS }, (_, index) => String(10_000 + index));

  for (const opTime of opTimes) {
    const replies = await announceAll(opTime);
    expect(replies.some(({ triggeredModels }) => (triggeredModels as Json[]).length > 0)).toBe(true);
  }
  const once = opTimes.map((opTime) => ({
    op_time: opTime,
    status: "SUCCESS",
    generation: 1,
    used: TABLES.map((table) => `${table} ${opTime}`),
  }));
  expect(await allEnded()).toEqual(once);
  const values = await database.query(
    "select op_time, value::float8 as value from arrivals.metrics_kpi_data order by op_time",
  );
  expect(values).toEqual(opTimes.map((opTime) => ({ op_time: opTime, value: Number(opTime) })));

  // The number of runs depends on timing: each uses what has arrived when it starts, and the last one uses everything.
  const repeated = opTimes.slice(0, ROUNDS_AGAIN);
  for (const opTime of repeated) await announceAll(opTime);
  const again = (await allEnded()).filter(({ generation }) => generation > 1);
  for (const opTime of repeated) {
    const runs = again.filter(({ op_time }) => op_time === opTime);
    expect(runs.length, opTime).toBeGreaterThanOrEqual(1);
    expect(runs.every(({ status }) => status === "SUCCESS")).toBe(true);
  }
  const [stale] = await database.query<{ count: number }>(
    `select count(*)::int as count from arrivals.model_instance i, arrivals.metrics_etl_log l
     where l.op_time = i.op_time and (i.consumed ->> (l.table_name || ' ' || l.op_time))::bigint is distinct from l.sequence`,
  );
  expect(stale).toEqual({ count: 0 }); // The last run of each opTime used the last arrival of each table.
  expect(await findViolations(database.db)).toEqual([]);
});
