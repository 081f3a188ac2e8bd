import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb } from "../../test/plans.ts";
import { COUNTED_MAX } from "../kernel/overview/values.ts";
import { lineageOverview } from "./overview.ts";

const database = useDatabase();
const now = (tenantId: string | null) => lineageOverview.now(database.db, { tenantId });

beforeAll(async () => {
  await database.query(
    `insert into lineage.lineage_events (tenant_id, tenant_code, tenant_name, event_time, event, source, apply_state, apply_error)
     select id, 'c' || id, 'Tenant ' || id, now(), '{}', 'COMPUTE_ENGINE', state, error
     from (values (7, 'DEAD', 'a cycle of parents'), (7, 'BUFFERED', null), (7, 'BUFFERED', null), (8, 'DEAD', 'of another tenant'))
       as e(id, state, error)`,
  );
});

test("events that could not be applied need somebody, and buffered ones wait for their tenant", async () => {
  const { needs, waiting } = await now(null);
  expect(needs).toHaveLength(2);
  expect(needs).toContainEqual(
    expect.objectContaining({
      about: { kind: "dead-letter", id: "7" },
      title: "Tenant 7",
      reason: "a cycle of parents",
      count: 1,
    }),
  );
  expect(waiting).toMatchObject([
    { cause: "tenant", kind: "event", subject: "Tenant 7", about: { kind: "tenant", id: "7" }, count: 2 },
  ]);
});

test("events that wait for a tenant hide none that could not be applied", async () => {
  await database.query(
    `insert into lineage.lineage_events (tenant_id, tenant_code, tenant_name, event_time, event, source, apply_state)
     select 1, 'c1', 'Tenant 1', now(), '{}', 'COMPUTE_ENGINE', 'BUFFERED' from generate_series(1, $1::int)`,
    [COUNTED_MAX],
  );
  await database.query(
    `insert into lineage.lineage_events (tenant_id, tenant_code, tenant_name, event_time, event, source, apply_state, apply_error)
     values (10, 'c10', 'Tenant 10', now(), '{}', 'COMPUTE_ENGINE', 'DEAD', 'the last')`,
  );
  const { needs, waiting } = await now(null);
  expect(needs.map(({ title }) => title)).toContain("Tenant 10");
  expect(waiting.map(({ subject }) => subject)).toContain("Tenant 1");
});

test("tasks that are DEAD need somebody, by tenant, and others wait for a worker or their next attempt", async () => {
  await database.query(
    "insert into lineage.tenant (id, code, name) values (7, 'c7', 'Tenant 7'), (8, 'c8', 'Tenant 8')",
  );
  await database.query(
    `insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint,
       status, last_error, next_run_at, updated_at)
     select 'EMBEDDING', tenant, 'c' || tenant, 'TABLE', n::text, repeat('0', 64), 'm', status, error, now() + interval '1 hour',
       now() + n * interval '1 second'
     from (values (7, 1, 'DEAD', 'the first'), (7, 2, 'DEAD', 'HTTP 401'), (8, 3, 'DEAD', 'x'), (7, 4, 'PENDING', null),
       (7, 5, 'FAILED', 'HTTP 503'), (7, 6, 'SUCCEEDED', null)) as t(tenant, n, status, error)`,
  );
  const { needs, waiting } = await now("7");
  expect(needs).toMatchObject([
    { about: { kind: "dead-letter" } },
    {
      about: { kind: "lineage-tasks", id: "7/DEAD" },
      state: "failed",
      title: "Tenant 7, asynchronous tasks",
      reason: "HTTP 401",
      count: 2,
    },
  ]);
  const tasks = { kind: "lineage-task", count: 1 };
  expect(waiting).toMatchObject([
    { kind: "event" },
    { ...tasks, cause: "process", subject: "worker", about: { kind: "lineage-tasks", id: "7/PENDING" } },
    { ...tasks, cause: "retry", about: { kind: "lineage-tasks", id: "7/FAILED" }, nextAt: expect.any(Date) as Date },
  ]);
  expect((await now(null)).needs.map(({ about }) => about.id)).toEqual(expect.arrayContaining(["7/DEAD", "8/DEAD"]));

  // Tasks that are done cost nothing.
  await database.query(
    `insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint, status)
     select 'EMBEDDING', 7, 'c7', 'TABLE', n::text, repeat('0', 64), 'm', 'SUCCEEDED' from generate_series(100, 30000) n`,
  );
  await database.query("vacuum analyze lineage.ol_async_task");
  const { db, explainLast } = openRecordingDb(database.connection, "lineage.overview");
  await lineageOverview.now({ ...db, read: db.rows }, { tenantId: null });
  const dead = await explainLast("lineage.overview.dead_tasks.all");
  const queued = await explainLast("lineage.overview.waiting_tasks.all");
  await db.close();
  expect([dead.indexes, queued.indexes].map((indexes) => indexes.filter((one) => one.startsWith("idx_task")))).toEqual([
    ["idx_task_dead"],
    ["idx_task_poll"],
  ]);
  for (const { pages } of [dead, queued]) expect(pages).toBeLessThan(50);
  await database.query("delete from lineage.ol_async_task");
});

test("a caller that is bound to a tenant sees nothing of another", async () => {
  expect((await now("8")).needs.map(({ title }) => title)).toEqual(["Tenant 8"]);
  expect((await now("8")).waiting).toEqual([]);
  expect(await now("9")).toEqual({ needs: [], waiting: [] });
});
