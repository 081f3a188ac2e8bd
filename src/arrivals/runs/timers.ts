/**
 * The timers of arrivals: ends quiet periods and back-offs, handles passed deadlines, stops chains that take too long, and finds waits whose
 * end was not reported. One statement finds out whether anything is due;
 * then the loop sleeps until the next timer or hint.
 */
import type { Db } from "../../kernel/data/db.ts";
import { type Counts, createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ArrivalsHints } from "../catalogue.ts";
import type { Events } from "../events.ts";
import { instanceId } from "../hint-ids.ts";
import { nextDeadline } from "../models/deadline.ts";
import { type DueDeadline, dueDeadlines, readTimers, setDeadlines } from "../store/deadlines.ts";
import { dueInstances } from "../store/instances.ts";
import { retryDue } from "../store/retries.ts";
import { READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import { reconsider } from "./consider.ts";
import { keyOf } from "./decide.ts";
import { arrivedOf, needsOf } from "./needs.ts";
import type { NodeWaits } from "./node-waits.ts";
import type { Parking } from "./parking.ts";

export interface TimersDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  events: Events;
  parking: Parking;
  nodeWaits: NodeWaits;
  log: ServiceLog;
  onRun: OnRun;
}

const INTERVAL_MS = 20_000;
const CATCH_UP_INTERVAL_MS = 20_000;
const AT_ONCE = 200;

export function createTimers({ db, wake, hints, events, parking, nodeWaits, log, onRun }: TimersDeps): Service {
  let nextDueMs: number | undefined;
  let catchUpAtMs = 0;

  async function runOnce(): Promise<Counts> {
    const timers = await readTimers(db);
    const due = (inMs: number | null) => inMs !== null && inMs <= 0;
    if (timers.ready) wake.hint(READY_TOPIC);
    const quietened = due(timers.next_due_ms) ? await endQuietPeriods() : 0;
    const retried = due(timers.next_retry_ms) ? await endBackOffs() : 0;
    const late = due(timers.next_deadline_ms) ? await handlePassedDeadlines() : 0;
    const stopped = due(timers.next_timeout_ms) ? await parking.stopOverdue() : 0;
    const caughtUp = timers.waits && performance.now() >= catchUpAtMs ? await catchUp() : 0;
    const { next_due_ms, next_retry_ms, next_deadline_ms, next_timeout_ms } = timers;
    const times = [next_due_ms, next_retry_ms, next_deadline_ms, next_timeout_ms].filter((ms) => ms !== null);
    nextDueMs = times.length > 0 ? Math.min(...times) : undefined;
    return { quietened, retried, late, stopped, caught_up: caughtUp };
  }

  /** The process that ended a run may have died before it reported that. */
  async function catchUp(): Promise<number> {
    catchUpAtMs = performance.now() + CATCH_UP_INTERVAL_MS;
    return (await parking.catchUp()) + (await nodeWaits.settle());
  }

  async function endQuietPeriods(): Promise<number> {
    const keys = await dueInstances(db, AT_ONCE);
    await db.tx(async (tx) => {
      await reconsider(tx, keys, null, wake);
      hints.changed(tx, "model", keys.map(instanceId));
    });
    return keys.length;
  }

  /** Makes runs ready whose next attempt is due. */
  async function endBackOffs(): Promise<number> {
    return db.tx(async (tx) => {
      const due = await retryDue(tx, AT_ONCE);
      hints.changed(tx, "model", due.map(instanceId));
      tx.afterCommit(() => {
        wake.hint(READY_TOPIC);
        if (due.length === AT_ONCE) wake.hint(TIMER_TOPIC);
      });
      return due.length;
    });
  }

  /** Emits an event for each late table, runs models for which it is optional, and sets each timer to its next opTime. */
  async function handlePassedDeadlines(): Promise<number> {
    return db.tx(async (tx) => {
      const passed = await dueDeadlines(tx, AT_ONCE);
      const needs = passed.map((one) => needsOf({ ...one, dependencies: [one.dependency] }, one.op_time));
      const arrived = await arrivedOf(tx, needs.flat());
      const missing = passed.filter((_, index) => needs[index]?.some((need) => !arrived.has(keyOf(need))));
      const required = missing.filter(({ dependency }) => !dependency.optional);
      await events.late(tx, required.map(lateEvent));
      await setDeadlines(tx, passed.flatMap(nextOf));
      const optional = missing.filter(({ dependency }) => dependency.optional);
      const keys = new Map(optional.map(({ model_id, op_time }) => [`${model_id}\n${op_time}`, { model_id, op_time }]));
      // In the same transaction, because their timers have just been set to another opTime.
      await reconsider(tx, [...keys.values()], "deadline", wake);
      hints.changed(tx, "model", missing.map(instanceId)); // Late ones too: a page shows why they wait.
      // There may be further batches, and a new timer may be due before the one read above.
      tx.afterCommit(() => wake.hint(TIMER_TOPIC));
      return required.length;
    });
  }

  const service = createService({
    name: "arrivals.timers",
    intervalMs: INTERVAL_MS,
    log,
    onRun,
    runOnce,
    nextDueMs: () => nextDueMs,
  });
  wake.on(TIMER_TOPIC, service.wake);
  return service;
}

function lateEvent({ model_id, op_time, dependency, due_at }: DueDeadline) {
  return {
    modelId: model_id,
    opTime: op_time,
    table: dependency.dependency_table_name,
    deadline: due_at.toISOString(),
  };
}

function nextOf({ grain, time_zone: timeZone, dependency: { id, deadline }, due_at }: DueDeadline) {
  if (grain === null || deadline === null) return [];
  const next = nextDeadline({ grain, timeZone, deadline }, due_at.getTime());
  return [{ dependency_id: id, op_time: next.opTime, due_at: new Date(next.dueMs) }];
}
