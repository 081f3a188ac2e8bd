/**
 * Applies random commands on random DAGs to the real engine, as two processes on one database, and to a model of it. After each
 * command every node must match the model. A failure prints its seed and the shortest counterexample; pass `{ seed, path }` of
 * that message to `fc.assert` to repeat it.
 */

import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { anyCommands, anyDag, type Command, canHaveEffect, NEVER_MS, POOLS } from "../../../test/chains-commands.ts";
import { createModel, type Lease, type Model, type Outcome } from "../../../test/chains-model.ts";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { statement } from "../../kernel/data/statement.ts";
import { ApiError } from "../../kernel/errors.ts";
import { systemIds } from "../../kernel/ids.ts";
import { createMetrics } from "../../kernel/telemetry/metrics.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { CATALOGUE } from "../catalogue.ts";
import { createDefinitions } from "../definitions/definitions.ts";
import { createRuns } from "../runs/runs.ts";
import { createSubRuns } from "../runs/sub-runs.ts";
import { createSchedules } from "../schedules/schedules.ts";
import { setPool } from "../store/definitions.ts";
import { findViolations } from "../store/invariants.ts";
import { type ClaimedNode, claimNodes } from "../store/live.ts";
import { findWaiting } from "../store/waits.ts";
import { noop } from "../types/noop.ts";
import { createRegistry } from "../types/registry.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createRunCache } from "./run-cache.ts";
import type { NodeStatus } from "./states.ts";
import { createTimers } from "./timers.ts";
import type { NodeEvent } from "./transition.ts";

const RUNS = process.env["MILLRACE_TEST_LONG"] ? 3_000 : 80;
const TIME_LIMIT_MS = 600_000;
const STEPS_BETWEEN_CHECKS = 5;
const LOST_LIMIT = 2;
const OP_TIME = "20240102";
const ACTOR = {
  caller: { name: "test", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "",
  requestId: "",
};

const database = useDatabase();
/** The tables that have arrived. */
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

/** An engine with everything around it but the loops: the commands do their work. */
async function openProcess() {
  const { db } = database;
  const log = silentLog;
  const wake = createWake();
  const runCache = createRunCache();
  const hasArrived = async () => arrived;
  const real = createEngine({
    db,
    wake,
    hints: noHints,
    progress: { changed: () => {} },
    metrics: createMetrics().define(CATALOGUE.metrics),
    runCache,
    hasArrived,
    runsEnded: undefined,
    random: () => 0.5,
    log,
  });
  const worker = { room: 0, adopted: [] as ClaimedNode[], session: await newSession() };
  real.setLocalWorker({
    session: () => worker.session,
    name: "test",
    reserve: (wanted) => Math.min(wanted, worker.room),
    adopt: (nodes) => void worker.adopted.push(...nodes),
    answerLost: () => {},
  });
  const changes = { changesLeft: Number.POSITIVE_INFINITY, lastChange: Promise.resolve() as Promise<unknown> };
  const engine: Engine = {
    ...real,
    change(runId, change) {
      changes.changesLeft -= 1;
      if (changes.changesLeft < 0) return Promise.reject(new Error("the process died before"));
      const changed = real.change(runId, change);
      changes.lastChange = changed.catch(() => {});
      return changed;
    },
  };
  const ids = systemIds;
  const definitions = createDefinitions({
    db,
    hints: noHints,
    registry: createRegistry([noop]),
    ids,
    secrets: { list: async () => [] },
  });
  const runs = createRuns({ db, wake, hints: noHints, engine, definitions, ids, stopGraceMs: NEVER_MS });
  const subRuns = createSubRuns({ db, engine, runs, ids, log });
  const schedules = createSchedules({ db, wake, hints: noHints, clock: systemClock, ids, definitions, log });
  const settings = {
    slots: 1,
    stopGraceSeconds: NEVER_MS / 1000,
    drainSeconds: 0,
    lostLimit: LOST_LIMIT,
    keepDays: 365,
    nodeTypes: [],
  };
  const timers = createTimers({
    db,
    wake,
    session: { onExpiry: () => {} },
    engine,
    runs,
    runCache,
    schedules,
    subRuns,
    settings,
    log,
    catchUpWithArrivals: async () => 0, // The command `arrive` reports, or does not.
    onRun: () => {},
  });
  return { engine, definitions, runs, timers, changes, worker };
}

beforeAll(async () => {
  for (const [name, size] of Object.entries(POOLS)) await setPool(database.db, name, size);
  processes.push(await openProcess(), await openProcess());
});

const ADMIT = { kind: "timers", by: 0, always: true, due: "nothing", pick: 0 } as const;
const CLEAR = [
  statement(
    "test.chains.clear_live",
    "truncate chains.live_node, chains.live_wait, chains.job_run_node, kernel.audit_log",
  ),
  statement("test.chains.clear", "truncate chains.job_chain_definition cascade"),
];
const READ_RUN = statement<{ run: string; nodes: string[] }>(
  "test.chains.runTimers",
  `select r.status as run, (
     select array_agg(concat_ws(' ', n.node_id, n.status, n.attempt, l.state) order by n.node_id)
     from chains.job_run_node n left join chains.live_node l on l.run_id = n.run_id and l.node_id = n.node_id
     where n.run_id = r.run_id
   ) as nodes from chains.job_run r where r.run_id = $1`,
);

test("after random commands, every node is as the model says", { timeout: 2 * TIME_LIMIT_MS }, async () => {
  const { db } = database;
  const anyStart = fc.record({
    reversed: fc.boolean(),
    admitted: fc.constantFrom("at once", "at once", "at once", "by timers", "by timers", "by timers", "later"),
    room: fc.nat(2),
  });
  const property = fc.asyncProperty(
    anyDag(),
    anyStart,
    anyCommands(),
    async (nodes, { reversed, admitted, room }, commands) => {
      arrived.clear();
      for (const clear of CLEAR) await db.rows(clear);
      const [first] = processes as [Process];
      const dagJson = { nodes: reversed ? nodes.toReversed() : nodes };
      const chain = await first.definitions.create({ name: "any", dagJson, runTimeoutMs: NEVER_MS }, ACTOR);
      const model = createModel(nodes, { lostLimit: LOST_LIMIT, pools: POOLS });
      const runId = await start(model, first, chain.chain_id, admitted === "at once" ? room : undefined);
      const all = admitted === "by timers" ? [{ ...ADMIT, room }, ...commands] : commands;
      for (const [step, command] of all.entries()) {
        if (!command.always && !canHaveEffect(model, command)) continue;
        await run(model, runId, command);
        const [row] = await db.rows(READ_RUN, [runId]);
        expect(row, `after step ${step}, ${command.kind}`).toEqual(model.rows());
        if (step % STEPS_BETWEEN_CHECKS === 0) expect(await findViolations(db), `after step ${step}`).toEqual([]);
      }
      expect(await findViolations(db)).toEqual([]);
    },
  );
  await fc.assert(property, { numRuns: RUNS, interruptAfterTimeLimit: TIME_LIMIT_MS });
});

async function run(model: Model, runId: string, command: Command): Promise<void> {
  const process = processes[command.by] as Process;
  const { engine, runs, changes, worker } = process;
  const { session } = worker;
  switch (command.kind) {
    case "claim":
      return claim(model, session, command.limit);
    case "report": {
      const said = new Map(command.reports.map(({ pick, outcome }) => [at(model.held(), pick), outcome]));
      const reports = [...said].flatMap(([lease, outcome]) => (lease ? [{ lease, outcome, child: randomUUID() }] : []));
      const waited = model.waiting();
      const expected = reports.map(({ lease, outcome, child }) => model.report(lease, outcome, child));
      worker.room = command.room;
      const counted = reports.map((report) => engine.report({ runId, event: eventOf(report) }));
      expect(await Promise.all(counted)).toEqual(expected);
      const ends = reports.filter(({ outcome }) => outcome === "succeeded" || outcome === "skipped").length;
      const offered = model.ready("free", model.nodes.length).filter((id) => waited.includes(id));
      adopt(model, worker, offered, ends);
      return;
    }
    case "late report": {
      const lease = at(model.lostLeases, command.pick);
      if (!lease) return;
      const event = eventOf({ lease, outcome: command.outcome, child: randomUUID() });
      expect(await engine.report({ runId, event })).toBe(false);
      return;
    }
    case "child ended": {
      const { pick, outcome, right } = command;
      const node = at(model.parked(), pick);
      if (!node?.child) return;
      const nodeId = node.def.id;
      const childRunId = right ? node.child : randomUUID();
      const expected = model.childEnded(nodeId, childRunId, outcome);
      const event = { kind: "child ended", nodeId, childRunId, outcome: childOutcomeOf(outcome) } as const;
      expect(await engine.report({ runId, event })).toBe(expected);
      return;
    }
    case "arrive": {
      const { table, reported } = command;
      arrived.add(table);
      const expected = model.arrive(table, reported);
      const waiting = reported ? await findWaiting(database.db, [{ table, opTime: OP_TIME }]) : [];
      const counted = waiting.map(({ node_id: nodeId }) =>
        engine.report({ runId, event: { kind: "arrived", nodeId, table } }),
      );
      expect((await Promise.all(counted)).filter(Boolean)).toHaveLength(expected);
      return;
    }
    case "crash":
      await claim(model, session, command.limit);
      model.dead.add(session);
      await database.db.rows(CRASH[command.how], [session]);
      worker.session = await newSession();
      if (command.noticed) await runTimers(model, process, undefined, 0);
      return;
    case "timers": {
      const { due, pick, room } = command;
      const node = due === "a retry" ? at(model.delayed(), pick) : due === "a child" ? at(model.parked(), pick) : null;
      if (node) await database.db.rows(NODE_IS_DUE, [node.def.id]);
      if (due === "the deadline" || due === "the grace") await database.db.rows(RUN_IS_DUE[due]);
      return runTimers(model, process, node ?? due, room);
    }
    case "stop":
      changes.changesLeft = command.dies ? 1 : Number.POSITIVE_INFINITY;
      expect(statusIn(await answered(runs.stop(runId, ACTOR)))).toBe(model.stop());
      await changes.lastChange;
      changes.changesLeft = Number.POSITIVE_INFINITY;
      if (!command.dies) model.endRunIfDone();
      return;
    case "resume":
      expect(statusIn(await answered(runs.resume(runId, ACTOR)))).toBe(model.resume());
      return;
    case "retry":
    case "retry run": {
      const { downstream, dryRun } = command;
      const asked = command.kind === "retry" ? { nodeId: pickNode(model, command.pick, ["FAILED", "STOPPED"]) } : {};
      const answer = await answered(runs.retry(runId, { ...asked, downstream, dryRun, reason: null }, ACTOR));
      const expected = model.retry({ nodeId: asked.nodeId, downstream }, dryRun);
      expect(statusIn(answer)).toBe(expected);
      return;
    }
    case "complete": {
      const nodeId = pickNode(model, command.pick, ["FAILED", "STOPPED", "RUNNING"]);
      const answer = await answered(runs.complete(runId, { nodeId, artifact: null, reason: null }, ACTOR));
      expect(statusIn(answer)).toBe(model.complete(nodeId));
      return;
    }
  }
}

/** The timers run once: they find `due`, and reclaim the nodes of dead processes. */
async function runTimers(
  model: Model,
  { timers, worker }: Process,
  due: Model["nodes"][number] | string | undefined,
  room: number,
): Promise<void> {
  const wasStopping = model.rows().run === "STOPPING";
  model.reclaim();
  const begins = model.admit();
  if (typeof due === "object") model.due(due);
  if (due === "the deadline" && !begins) model.timeOut();
  if (wasStopping) model.stopWaits();
  if (due === "the grace") model.expireGrace();
  worker.room = room;
  await timers.runOnce();
  adopt(model, worker, begins ? model.ready("free", model.nodes.length) : []);
}

/** Starts a run; without `room`, the timers have to admit it. */
async function start(model: Model, { runs, worker }: Process, chainId: string, room: number | undefined) {
  const request = { by: "test", opTime: OP_TIME };
  if (room === undefined) return (await runs.startMany(chainId, [request]))[0] as string;
  worker.room = room;
  const { runId } = await runs.start(chainId, request);
  model.admit();
  adopt(model, worker, model.ready("free", model.nodes.length));
  return runId;
}

/** A process with room has adopted nodes that it made ready. */
function adopt(model: Model, worker: Process["worker"], offered: readonly string[], most = Infinity): void {
  const adopted = worker.adopted.splice(0);
  expect(offered).toEqual(expect.arrayContaining(adopted.map(({ node_id }) => node_id)));
  expect(adopted).toHaveLength(Math.min(most, worker.room, offered.length));
  begin(model, worker.session, adopted);
}

async function claim(model: Model, session: string, limit: number): Promise<void> {
  for (const kind of ["free", "pooled"] as const) {
    const expected = model.ready(kind, limit);
    const claimed = await claimNodes(database.db, kind, { limit, session, worker: "test" });
    expect(claimed.map(({ node_id }) => node_id).sort()).toEqual(expected.sort());
    begin(model, session, claimed);
  }
}

function begin(model: Model, session: string, claimed: readonly ClaimedNode[]): void {
  for (const { node_id: nodeId, fence, attempt } of claimed) {
    expect(attempt).toBe(model.claimed({ nodeId, fence, session }));
  }
}

const at = <T>(all: readonly T[], pick: number): T | undefined => all[pick % all.length];

/** A node with one of these statuses, each status equally likely; sometimes, or if there is none, any node. */
function pickNode(model: Model, pick: number, statuses: readonly NodeStatus[]): string {
  const groups = statuses.map((wanted) => model.nodes.filter(({ status }) => status === wanted));
  const fit = groups.filter(({ length }) => length > 0);
  const group = (pick % 10 > 0 && at(fit, pick)) || model.nodes;
  return at(group, pick)?.def.id as string;
}

const CRASH = {
  delete: statement("test.chains.delete_session", "delete from kernel.session where id = $1"),
  expire: statement("test.chains.expire_session", "update kernel.session set expires_at = now() where id = $1"),
};
const NODE_IS_DUE = statement(
  "test.chains.node_is_due",
  "update chains.live_node set due_at = now() where due_at is not null and node_id = $1",
);
const RUN_IS_DUE = {
  "the deadline": statement("test.chains.deadline", "update chains.live_run set deadline_at = now()"),
  "the grace": statement("test.chains.grace", "update chains.live_run set grace_at = now() where status = 'STOPPING'"),
};

function eventOf({ lease, outcome, child }: { lease: Lease; outcome: Outcome; child: string }): NodeEvent {
  const { nodeId, fence } = lease;
  switch (outcome) {
    case "succeeded":
      return { kind: outcome, nodeId, fence, artifact: null };
    case "failed":
    case "failed for good":
      return { kind: "failed", nodeId, fence, error: "broke", final: outcome === "failed for good" };
    case "skipped":
      return { kind: outcome, nodeId, fence, reason: "its `if` is false" };
    case "released":
      return { kind: outcome, nodeId, fence };
    case "parked":
      return { kind: outcome, nodeId, fence, childRunId: child };
  }
}

function childOutcomeOf(outcome: Outcome) {
  if (outcome === "succeeded") return { status: "SUCCESS", artifact: null } as const;
  return { status: "FAILED", error: "the child broke", final: outcome === "failed for good" } as const;
}

function statusIn(answer: { status: string } | string): string {
  return typeof answer === "string" ? answer : answer.status;
}

/** The code of a refusal counts as an answer. */
function answered<T>(promise: Promise<T>): Promise<T | string> {
  return promise.catch((error: unknown) => {
    if (error instanceof ApiError) return error.code;
    throw error;
  });
}
