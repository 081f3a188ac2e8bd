/**
 * Random commands against the module and an in-memory model of it. After each command every row must match the model, and
 * the invariants must hold. A failure prints the seed and the shortest commands that reproduce it.
 */

import * as fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { anyCommands, anyModels, type Command, hasEffect } from "../../test/arrivals-commands.ts";
import { createModel, type Model, type ModelDef } from "../../test/arrivals-model.ts";
import { ACTOR, kpiOf, SETTINGS, TEST_CONSUMER } from "../../test/arrivals-process.ts";
import { useDatabase } from "../../test/database.ts";
import { silentLog } from "../../test/log.ts";
import { noHints } from "../../test/no-hints.ts";
import type { Engines } from "../engines/engine.ts";
import { statement } from "../kernel/data/statement.ts";
import { ApiError } from "../kernel/errors.ts";
import { systemIds } from "../kernel/ids.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { createOutbox } from "../kernel/work/outbox.ts";
import { createWake, type Wake } from "../kernel/work/wake.ts";
import { type Arrivals, createArrivals } from "./arrivals.ts";
import { CATALOGUE } from "./catalogue.ts";
import { createEvents, type Events } from "./events.ts";
import { finish, type Run } from "./runs/finish.ts";
import { claimRuns, withModels } from "./runs/worker.ts";
import { releaseInstances } from "./store/instances.ts";
import { findViolations } from "./store/invariants.ts";
import { endLostTasks } from "./store/tasks.ts";

const RUNS = process.env["MILLRACE_TEST_LONG"] ? 2_000 : 25;
const TIME_LIMIT_MS = 600_000;
const LOST_LIMIT = 2;
const QUIET_SECONDS = 3_600;

const database = useDatabase();
const sessions: string[] = [];
let arrivals: Arrivals;
let wake: Wake;
let events: Events;
/** All started runs, by number; a process that has lost a run may still report its end. */
const runs: Run[] = [];
/** How often the table had arrived, by sequence. */
const counts = new Map<string, number>();

const OPEN_SESSION = statement<{ id: string }>(
  "test.arrivals.open_session",
  `insert into kernel.session (process, roles, version, expires_at) values ('test', '{}', 'test', now() + interval '1 day')
   returning id`,
);

async function newSession(): Promise<string> {
  const [row] = await database.db.rows(OPEN_SESSION);
  return row?.id as string;
}

beforeAll(async () => {
  const { db } = database;
  wake = createWake();
  const outbox = createOutbox([TEST_CONSUMER], wake);
  events = createEvents({ outbox, ids: systemIds, clock: systemClock, log: silentLog });
  sessions.push(await newSession(), await newSession());
  arrivals = createArrivals({
    db,
    wake,
    hints: noHints,
    outbox,
    log: silentLog,
    session: { id: () => "", onExpiry: () => {} } as unknown as Parameters<typeof createArrivals>[0]["session"],
    metrics: createMetrics().define(CATALOGUE.metrics),
    onRun: () => {},
    settings: { ...SETTINGS, lostLimit: LOST_LIMIT },
    engines: { names: () => ["duckdb"], syntaxError: () => Promise.resolve(undefined) } as unknown as Engines,
    chains: { onChange: () => {}, stillWaiting: async () => new Set<string>() } as unknown as Parameters<
      typeof createArrivals
    >[0]["chains"],
    onArrived: () => {},
  });
});

const CLEAR = statement(
  "test.arrivals.clear",
  `truncate arrivals.metrics_model, arrivals.metrics_etl_log, arrivals.model_instance, arrivals.metrics_task_log,
     arrivals.metrics_kpi, arrivals.metrics_kpi_data, kernel.outbox, kernel.audit_log restart identity cascade`,
);

async function define({ id, tables, rerun, produces }: ModelDef): Promise<void> {
  const dependencies = tables.map(({ table, optional, quiet }) => ({
    table,
    optional,
    quietSeconds: quiet ? QUIET_SECONDS : 0,
  }));
  const work = { sql: "select 1", dependencies, kpis: [kpiOf(id)] };
  await arrivals.models.put(id, { name: id, ...work, rerun, produces }, ACTOR);
}

test("random commands leave exactly what the rules say", { timeout: 2 * TIME_LIMIT_MS }, async () => {
  const { db } = database;
  const property = fc.asyncProperty(anyModels(), anyCommands(), async (defs, commands) => {
    await db.rows(CLEAR);
    counts.clear();
    runs.length = 0;
    for (const def of defs) {
      await define(def);
      await arrivals.models.setPublished(def.id, true, ACTOR);
    }
    const model = createModel(defs, { lostLimit: LOST_LIMIT });
    for (const [step, command] of commands.entries()) {
      if (!command.anyway && !hasEffect(model, command)) continue;
      await run(model, command);
      const where = `after step ${step}, ${command.kind}`;
      const { emitted, ...rows } = await readRows();
      expect(rows, where).toEqual(model.rows());
      expect(emitted, where).toEqual(model.emitted);
      expect(await findViolations(db), where).toEqual([]);
    }
  });
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: TIME_LIMIT_MS });
});

async function run(model: Model, command: Command): Promise<void> {
  switch (command.kind) {
    case "announce": {
      model.announce(command.announced);
      const batch = command.announced.map(({ key, ...one }) => ({ ...one, idempotencyKey: key }));
      await Promise.all(batch.map((one) => arrivals.announce(one)));
      return;
    }
    case "claim":
      return claim(model, sessions[command.by] as string, command.limit);
    case "end": {
      const hold = at(model.held(), command.pick);
      if (hold) expect(await end(hold.no, command.succeeds)).toBe(model.end(hold.no, command.succeeds));
      return;
    }
    case "late end": {
      const hold = at(model.pastHolds, command.pick);
      if (hold) expect(await end(hold.no, command.succeeds)).toBe(false);
      return;
    }
    case "release": {
      const hold = at(model.held(), command.pick);
      if (!hold || model.dead.has(hold.session)) return;
      model.release(hold.no);
      await database.db.tx(async (tx) => {
        const held = [runs[hold.no] as Run];
        const released = await releaseInstances(tx, held, { lost: false, lostLimit: LOST_LIMIT });
        await endLostTasks(tx, released, "its process was shut down");
      });
      return;
    }
    case "crash": {
      const session = sessions[command.by] as string;
      model.dead.add(session);
      await database.db.rows(EXPIRE, [session]);
      sessions[command.by] = await newSession();
      return command.noticed ? runTimers(model) : undefined;
    }
    case "timers":
      return runTimers(model);
    case "end quiet":
      model.reclaim();
      model.endQuietPeriods();
      for (const step of END_QUIET) await database.db.rows(step);
      await arrivals.worker.reclaimer?.runOnce();
      await arrivals.timers.runOnce();
      return;
    case "publish":
    case "unpublish": {
      const published = command.kind === "publish";
      model.setPublished(command.model, published);
      await arrivals.models.setPublished(command.model, published, ACTOR);
      return;
    }
    case "set rerun":
      model.setRerun(command.model, command.rerun);
      return define(model.models.get(command.model)?.def as ModelDef);
    case "run": {
      const { model: id, opTime, force } = command;
      const answer = await answered(arrivals.requests.run(id, { opTime, force }, ACTOR));
      expect(typeof answer === "string" ? answer : answer.generation).toBe(model.run(id, opTime, force));
      return;
    }
    case "backfill": {
      const range = { from: "20250101", to: "20250102", dryRun: false };
      const answer = await answered(arrivals.requests.backfill(command.model, range, ACTOR));
      expect(typeof answer === "string" ? answer : undefined).toBe(model.backfill(command.model));
      return;
    }
    case "remake":
      model.remake(command.model);
      await arrivals.models.remove(command.model, ACTOR);
      return define(model.models.get(command.model)?.def as ModelDef);
  }
}

async function claim(model: Model, session: string, limit: number): Promise<void> {
  const expected = Math.min(limit, model.ready());
  const claimed = await withModels(database.db, await claimRuns(database.db, { limit, session, worker: "test" }));
  expect(claimed).toHaveLength(expected);
  for (const one of claimed.sort((a, b) => Number(a.taskId) - Number(b.taskId))) {
    const no = model.claimed(one.model_id, one.op_time, session);
    runs[no] = one;
  }
}

/** Each run stores its own number as its value, so a check can see which run the values are from. */
function end(no: number, succeeds: boolean): Promise<boolean> {
  const one = runs[no] as Run;
  const value = { kpi_id: kpiOf(one.model_id), dimension_key: "", dimensions: {}, value: String(no) };
  const deps = { db: database.db, wake, hints: noHints, events, nodeWaits: arrivals.nodeWaits, onArrived: () => {} };
  if (!succeeds) return finish(deps, one, { status: "FAILED", isFinal: true, message: "broke" });
  return finish(deps, one, { status: "SUCCESS", values: [value], computeCount: 1, warnings: [] });
}

async function runTimers(model: Model): Promise<void> {
  model.reclaim();
  await arrivals.worker.reclaimer?.runOnce();
  await arrivals.timers.runOnce();
}

const EXPIRE = statement("test.arrivals.expire", "update kernel.session set expires_at = now() where id = $1");
const END_QUIET = [
  statement(
    "test.arrivals.age_arrivals",
    "update arrivals.metrics_etl_log set arrival_time = arrival_time - interval '1 day'",
  ),
  statement("test.arrivals.end_quiet", "update arrivals.model_instance set due_at = now() where state = 'quiet'"),
];

interface Rows {
  instances: { used: Record<string, string> | null }[];
  tasks: { used: Record<string, string> }[];
  values: string[] | null;
  arrived: { sequence: string; count: number }[] | null;
  emitted: Record<string, number>;
}
const READ_ROWS = statement<Rows>(
  "test.arrivals.read_rows",
  `select
     (select coalesce(jsonb_agg(jsonb_build_object('model', model_id, 'opTime', op_time, 'state', state, 'again', again,
        'generation', generation, 'used', consumed, 'lost', lost_count) order by model_id, op_time), '[]')
      from arrivals.model_instance) as instances,
     (select coalesce(jsonb_agg(jsonb_build_object('model', model_id, 'opTime', op_time, 'generation', generation,
        'status', status, 'used', consumed) order by id), '[]') from arrivals.metrics_task_log) as tasks,
     (select array_agg(concat_ws(' ', model_id, op_time, value) order by model_id, op_time)
      from arrivals.metrics_kpi_data) as values,
     (select jsonb_agg(jsonb_build_object('sequence', sequence::text, 'count', arrivals))
      from arrivals.metrics_etl_log) as arrived,
     (select jsonb_build_object('kpi.updated', count(*) filter (where topic = 'kpi.updated'),
        'model.failed', count(*) filter (where topic = 'model.failed')) from kernel.outbox) as emitted`,
);

async function readRows() {
  const [row] = await database.db.rows(READ_ROWS);
  if (!row) throw new Error("the query returned no row");
  for (const { sequence, count } of row.arrived ?? []) counts.set(sequence, count);
  const inCounts = (used: Record<string, string> | null) =>
    used && Object.fromEntries(Object.entries(used).map(([key, sequence]) => [key, counts.get(sequence)]));
  return {
    instances: row.instances.map((instance) => ({ ...instance, used: inCounts(instance.used) })),
    tasks: row.tasks.map((task) => ({ ...task, used: inCounts(task.used) })),
    values: row.values ?? [],
    emitted: row.emitted,
  };
}

const at = <T>(all: readonly T[], pick: number): T | undefined => all[pick % all.length];

/** The result, or the code of the error that the API answers. */
function answered<T>(promise: Promise<T>): Promise<T | string> {
  return promise.catch((error: unknown) => {
    if (error instanceof ApiError) return error.code;
    throw error;
  });
}
