/**
 * Random DAGs and random commands against the real engine, as two processes on one database, and a model of it. After
 * each command every node must be what the model says. A failure prints the seed and the shortest way to it; put
 * `{ seed, path }` of that message among the options of `fc.assert` to go that way again.
 */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { createModel, type Grip, type Model, type Outcome } from "../../test/chains-model.ts";
import { useDatabase } from "../../test/database.ts";
import { silentLog } from "../../test/log.ts";
import { systemClock } from "../kernel/clock.ts";
import { ApiError } from "../kernel/errors.ts";
import { systemIds } from "../kernel/ids.ts";
import { statement } from "../kernel/statement.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { createWake } from "../kernel/wake.ts";
import { type NodeDef, RUN_WHEN } from "./dag.ts";
import { createDefinitions } from "./definitions.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createRunCache } from "./run-cache.ts";
import { createRuns } from "./runs.ts";
import { createSchedules } from "./schedules.ts";
import { setPool } from "./store/definitions.ts";
import { findViolations } from "./store/invariants.ts";
import { claimNodes } from "./store/live.ts";
import { findWaiting } from "./store/waits.ts";
import { createSubRuns } from "./sub-runs.ts";
import { createTimers } from "./timers.ts";
import type { NodeEvent } from "./transition.ts";
import { noop } from "./types/noop.ts";
import { createRegistry } from "./types/registry.ts";

const RUNS = process.env["MILLRACE_TEST_LONG"] ? 2_000 : 100;
const TIME_LIMIT_MS = 600_000;
const STEPS_BETWEEN_LOOKS = 10;
const LOST_LIMIT = 2;
const POOLS = { narrow: 1, wide: 2 };
const TABLES = ["T", "U"];
const OP_TIME = "20240102";
/** Nothing becomes due by itself while a sequence runs. */
const NEVER_MS = 86_400_000;
const ACTOR = {
  caller: { name: "test", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "",
  requestId: "",
};

type Command = { by: number } & (
  | { kind: "claim"; from: "free" | "pooled"; limit: number }
  /** Several arrive in one batch. */
  | { kind: "report"; reports: { pick: number; outcome: Outcome }[] }
  | { kind: "late report"; pick: number; outcome: Outcome }
  | { kind: "child ended"; pick: number; status: "SUCCESS" | "FAILED" | "STOPPED"; right: boolean }
  | { kind: "arrive"; table: string; told: boolean }
  | { kind: "crash"; how: "delete" | "expire" }
  | { kind: "clock"; jumpsTo: "now" | "due" | "deadline" | "grace" }
  | { kind: "stop"; dies: boolean }
  | { kind: "resume" }
  | { kind: "retry"; pick: number; downstream: boolean; dryRun: boolean }
  | { kind: "retry run"; downstream: boolean; dryRun: boolean }
  | { kind: "complete"; pick: number }
);

/** Parents before children. */
function anyDag(): fc.Arbitrary<NodeDef[]> {
  const node = fc.record({
    parents: fc.uniqueArray(fc.nat(11), { maxLength: 3 }),
    runWhen: fc.constantFrom(...RUN_WHEN, "all_success" as const),
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    backoffMs: fc.constantFrom(0, NEVER_MS),
    pool: fc.constantFrom(undefined, undefined, undefined, ...Object.keys(POOLS)),
    waitsFor: fc.oneof({ weight: 4, arbitrary: fc.constant<string[]>([]) }, { weight: 1, arbitrary: fc.subarray(TABLES) }),
  });
  return fc.array(node, { minLength: 1, maxLength: 12, size: "max" }).map((nodes) =>
    nodes.map(({ parents, runWhen, maxAttempts, backoffMs, pool, waitsFor }, index): NodeDef => {
      const dependsOn = parents.filter((parent) => parent < index).map(idOf);
      const rule = runWhen === "one_failed" && dependsOn.length === 0 ? "all_success" : runWhen;
      return {
        id: idOf(index),
        type: "noop",
        dependsOn,
        runWhen: rule,
        retry: { maxAttempts, backoffMs, maxBackoffMs: NEVER_MS },
        waitsFor: rule === "one_failed" ? [] : waitsFor,
        ...(pool === undefined ? {} : { pool }),
      };
    }),
  );
}

const idOf = (index: number) => `n${String(index).padStart(2, "0")}`;

function anyCommands(): fc.Arbitrary<Command[]> {
  const by = fc.nat(1);
  const pick = fc.nat(23);
  const outcome = fc.constantFrom<Outcome>(
    ...(["succeeded", "succeeded", "succeeded", "failed", "failed", "failed for good", "skipped"] as const),
    ...(["released", "parked"] as const),
  );
  const reports = fc.uniqueArray(fc.record({ pick, outcome }), { minLength: 1, maxLength: 4, selector: (r) => r.pick });
  const kind = <const Kind extends Command["kind"]>(name: Kind) => fc.constant(name);
  const sometimes = fc.nat(4).map((n) => n === 0);
  const downstream = fc.boolean();
  const weighted: [number, fc.Arbitrary<Command>][] = [
    [
      9,
      fc.record({
        by,
        kind: kind("claim"),
        from: fc.constantFrom("free", "free", "pooled"),
        limit: fc.integer({ min: 1, max: 4 }),
      }),
    ],
    [9, fc.record({ by, kind: kind("report"), reports })],
    [1, fc.record({ by, kind: kind("late report"), pick, outcome })],
    [
      1,
      fc.record({
        by,
        kind: kind("child ended"),
        pick,
        status: fc.constantFrom("SUCCESS", "FAILED", "STOPPED"),
        right: fc.boolean(),
      }),
    ],
    [2, fc.record({ by, kind: kind("arrive"), table: fc.constantFrom(...TABLES), told: fc.boolean() })],
    [1, fc.record({ by, kind: kind("crash"), how: fc.constantFrom("delete", "expire") })],
    [3, fc.record({ by, kind: kind("clock"), jumpsTo: fc.constantFrom("now", "due", "due", "grace", "deadline") })],
    [2, fc.record({ by, kind: kind("stop"), dies: sometimes })],
    [2, fc.record({ by, kind: kind("resume") })],
    [4, fc.record({ by, kind: kind("retry"), pick, downstream, dryRun: sometimes })],
    [1, fc.record({ by, kind: kind("retry run"), downstream, dryRun: sometimes })],
    [3, fc.record({ by, kind: kind("complete"), pick })],
  ];
  const command = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));
  return fc.array(command, { minLength: 5, maxLength: 40, size: "max" });
}

const database = useDatabase();
/** What has arrived, as the processes are told it. */
const arrived = new Set<string>();
const processes: Process[] = [];
type Process = Awaited<ReturnType<typeof openProcess>>;

const OPEN_SESSION = statement<{ id: string }>(
  "test.chains.open_session",
  `insert into kernel.session (process, roles, version, expires_at) values ('test', '{}', 'test', now() + interval '1 day')
   returning id`,
);

async function newSession(): Promise<string> {
  const [row] = await database.db.rows(OPEN_SESSION);
  return row?.id as string;
}

/** An engine of its own with everything around it, but for the loops: the commands do what those would. */
async function openProcess() {
  const { db } = database;
  const log = silentLog;
  const wake = createWake({ db, log });
  const known = createRunCache();
  const hasArrived = async () => arrived;
  const real = createEngine({ db, wake, metrics: createMetrics(), runs: known, hasArrived, random: () => 0.5 });
  const life = { changesLeft: Number.POSITIVE_INFINITY, lastChange: Promise.resolve() as Promise<unknown> };
  const engine: Engine = {
    ...real,
    change(runId, change) {
      life.changesLeft -= 1;
      if (life.changesLeft < 0) return Promise.reject(new Error("the process died before"));
      const changed = real.change(runId, change);
      life.lastChange = changed.catch(() => {});
      return changed;
    },
  };
  const ids = systemIds;
  const definitions = createDefinitions({ db, registry: createRegistry([noop]), ids });
  const runs = createRuns({ db, wake, engine, definitions, ids, stopGraceMs: NEVER_MS });
  const subRuns = createSubRuns({ db, engine, runs, ids, log });
  const schedules = createSchedules({ db, wake, clock: systemClock, ids, definitions, log });
  const settings = {
    slots: 1,
    stopGraceSeconds: NEVER_MS / 1000,
    drainSeconds: 0,
    lostLimit: LOST_LIMIT,
    nodeTypes: [],
  };
  const timers = createTimers({ db, wake, engine, runs, known, schedules, subRuns, settings, log, onRun: () => {} });
  return { engine, definitions, runs, timers, life, session: await newSession() };
}

beforeAll(async () => {
  for (const [name, size] of Object.entries(POOLS)) await setPool(database.db, name, size);
  processes.push(await openProcess(), await openProcess());
});

const CLEAR = [
  statement("test.chains.clear_live", "truncate chains.live_node, chains.live_wait, kernel.audit_log"),
  statement("test.chains.clear", "truncate chains.job_chain_definition cascade"),
];
const LOOK = statement<{ run: string; nodes: string[] }>(
  "test.chains.look",
  `select r.status as run, (
     select array_agg(concat_ws(' ', n.node_id, n.status, n.attempt, l.state) order by n.node_id)
     from chains.job_run_node n left join chains.live_node l on l.run_id = n.run_id and l.node_id = n.node_id
     where n.run_id = r.run_id
   ) as nodes from chains.job_run r where r.run_id = $1`,
);

test("random commands leave exactly what the rules say", { timeout: 2 * TIME_LIMIT_MS }, async () => {
  const { db } = database;
  const anyStart = fc.record({ reversed: fc.boolean(), admitted: fc.nat(7).map((n) => n < 7) });
  const property = fc.asyncProperty(anyDag(), anyStart, anyCommands(), async (nodes, { reversed, admitted }, commands) => {
    arrived.clear();
    for (const clear of CLEAR) await db.rows(clear);
    const [first] = processes as [Process];
    const dagJson = { nodes: reversed ? nodes.toReversed() : nodes };
    const chain = await first.definitions.create({ name: "any", dagJson, runTimeoutMs: NEVER_MS }, ACTOR);
    const { runId } = await first.runs.start(chain.chain_id, { by: "test", opTime: OP_TIME });
    const model = createModel(nodes, { lostLimit: LOST_LIMIT, pools: POOLS });
    if (admitted) await run(model, runId, { by: 0, kind: "clock", jumpsTo: "now" });
    for (const [step, command] of commands.entries()) {
      await run(model, runId, command);
      const [row] = await db.rows(LOOK, [runId]);
      expect(row, `after step ${step}, ${command.kind}`).toEqual(model.rows());
      if (step % STEPS_BETWEEN_LOOKS === 0) expect(await findViolations(db), `after step ${step}`).toEqual([]);
    }
    expect(await findViolations(db)).toEqual([]);
  });
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: TIME_LIMIT_MS });
});

async function run(model: Model, runId: string, command: Command): Promise<void> {
  const process = processes[command.by] as Process;
  const { engine, runs, life } = process;
  const nodeAt = (pick: number) => model.nodes[pick % model.nodes.length]?.def.id as string;
  switch (command.kind) {
    case "claim": {
      const { from, limit } = command;
      const expected = model.ready(from, limit);
      const claimed = await claimNodes(database.db, from, { limit, session: process.session, worker: "test" });
      expect(claimed.map(({ node_id }) => node_id).sort()).toEqual(expected.sort());
      for (const { node_id: nodeId, fence, attempt } of claimed) {
        expect(attempt).toBe(model.claimed({ nodeId, fence, session: process.session }));
      }
      return;
    }
    case "report": {
      const held = model.held();
      const said = new Map(command.reports.map(({ pick, outcome }) => [held[pick % held.length], outcome]));
      const reports = [...said].flatMap(([grip, outcome]) => (grip ? [{ grip, outcome, child: randomUUID() }] : []));
      const expected = reports.map(({ grip, outcome, child }) => model.report(grip, outcome, child));
      const counted = reports.map((report) => engine.report({ runId, event: eventOf(report) }));
      expect(await Promise.all(counted)).toEqual(expected);
      return;
    }
    case "late report": {
      const { spent } = model;
      const grip = spent[command.pick % spent.length];
      if (!grip) return;
      const event = eventOf({ grip, outcome: command.outcome, child: randomUUID() });
      expect(await engine.report({ runId, event })).toBe(false);
      return;
    }
    case "child ended": {
      const parked = model.parked();
      const node = parked[command.pick % parked.length];
      if (!node?.child) return;
      const { status, right } = command;
      const childRunId = right ? node.child : randomUUID();
      const nodeId = node.def.id;
      const outcome = status === "SUCCESS" ? { status, artifact: null } : { status, error: "the child did not" };
      const expected = model.childEnded(nodeId, childRunId, status);
      const event = { kind: "child ended", nodeId, childRunId, outcome } as const;
      expect(await engine.report({ runId, event })).toBe(expected);
      return;
    }
    case "arrive": {
      const { table, told } = command;
      arrived.add(table);
      const expected = model.arrive(table, told);
      const waiting = told ? await findWaiting(database.db, table, OP_TIME) : [];
      const counted = waiting.map(({ node_id: nodeId }) =>
        engine.report({ runId, event: { kind: "arrived", nodeId, table } }),
      );
      expect((await Promise.all(counted)).filter(Boolean)).toHaveLength(expected);
      return;
    }
    case "crash":
      model.dead.add(process.session);
      await database.db.rows(CRASH[command.how], [process.session]);
      process.session = await newSession();
      return;
    case "clock":
      if (command.jumpsTo === "due") model.ripen();
      if (command.jumpsTo === "deadline") model.timeOut();
      if (command.jumpsTo === "grace") model.graceOver();
      model.admit();
      model.reclaim();
      if (command.jumpsTo !== "now") await database.db.rows(JUMP[command.jumpsTo]);
      await process.timers.runOnce();
      return;
    case "stop":
      life.changesLeft = command.dies ? 1 : Number.POSITIVE_INFINITY;
      expect(await answered(runs.stop(runId, ACTOR))).toBe(model.stop());
      await life.lastChange;
      life.changesLeft = Number.POSITIVE_INFINITY;
      if (!command.dies) model.settle();
      return;
    case "resume":
      expect(await answered(runs.resume(runId, ACTOR))).toBe(model.resume());
      return;
    case "retry":
    case "retry run": {
      const { downstream, dryRun } = command;
      const asked = command.kind === "retry" ? { nodeId: nodeAt(command.pick) } : {};
      const answer = await answered(runs.retry(runId, { ...asked, downstream, dryRun, reason: null }, ACTOR));
      const expected = model.retry({ nodeId: asked.nodeId, downstream }, dryRun);
      expect(typeof answer === "string" ? answer : answer.status).toBe(expected);
      return;
    }
    case "complete": {
      const nodeId = nodeAt(command.pick);
      const answer = await answered(runs.complete(runId, { nodeId, artifact: null, reason: null }, ACTOR));
      expect(typeof answer === "string" ? answer : answer.status).toBe(model.complete(nodeId));
      return;
    }
  }
}

const CRASH = {
  delete: statement("test.chains.delete_session", "delete from kernel.session where id = $1"),
  expire: statement("test.chains.expire_session", "update kernel.session set expires_at = now() where id = $1"),
};
const JUMP = {
  due: statement("test.chains.jump.due", "update chains.live_node set due_at = now() where state = 'delayed'"),
  deadline: statement("test.chains.jump.deadline", "update chains.live_run set deadline_at = now()"),
  grace: statement("test.chains.jump.grace", "update chains.live_run set grace_at = now() where grace_at is not null"),
};

function eventOf({ grip, outcome, child }: { grip: Grip; outcome: Outcome; child: string }): NodeEvent {
  const { nodeId, fence } = grip;
  switch (outcome) {
    case "succeeded":
      return { kind: outcome, nodeId, fence, artifact: null };
    case "failed":
    case "failed for good":
      return { kind: "failed", nodeId, fence, error: "broke", final: outcome === "failed for good" };
    case "skipped":
      return { kind: outcome, nodeId, fence, reason: "its `if` said no" };
    case "released":
      return { kind: outcome, nodeId, fence };
    case "parked":
      return { kind: outcome, nodeId, fence, childRunId: child };
  }
}

/** A refusal is an answer too. */
function answered<T>(promise: Promise<T>): Promise<T | string> {
  return promise.catch((error: unknown) => {
    if (error instanceof ApiError) return error.code;
    throw error;
  });
}
