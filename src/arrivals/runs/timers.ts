/**
 * What happens because time passes: quiet periods end and deadlines go by. One statement says whether there is anything to
 * do; the loop then sleeps until the next thing is due, or a hint comes.
 */
import type { Db } from "../../kernel/data/db.ts";
import { type Counts, createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Events } from "../events.ts";
import { nextDeadline } from "../models/deadline.ts";
import { type DueDeadline, dueDeadlines, look, setDeadlines } from "../store/deadlines.ts";
import { dueInstances } from "../store/instances.ts";
import { READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import { reconsider } from "./consider.ts";
import { keyOf } from "./judge.ts";
import { arrivedOf, needsOf } from "./needs.ts";

export interface TimersDeps {
  db: Db;
  wake: Wake;
  events: Events;
  log: ServiceLog;
  onRun: OnRun;
}

const INTERVAL_MS = 30_000;
const AT_ONCE = 200;

export function createTimers({ db, wake, events, log, onRun }: TimersDeps): Service {
  let nextDueMs: number | undefined;

  async function runOnce(): Promise<Counts> {
    const seen = await look(db);
    const due = (inMs: number | null) => inMs !== null && inMs <= 0;
    if (seen.ready) wake.hint(READY_TOPIC);
    const quietened = due(seen.next_due_ms) ? await endQuiet() : 0;
    const late = due(seen.next_deadline_ms) ? await passDeadlines() : 0;
    const times = [seen.next_due_ms, seen.next_deadline_ms].filter((ms) => ms !== null);
    nextDueMs = times.length > 0 ? Math.min(...times) : undefined;
    return { quietened, late };
  }

  async function endQuiet(): Promise<number> {
    const keys = await dueInstances(db, AT_ONCE);
    await db.tx((tx) => reconsider(tx, keys, null, wake));
    return keys.length;
  }

  /** Tells of tables that are late, lets models go on that do not need them, and sets each timer to its next opTime. */
  async function passDeadlines(): Promise<number> {
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
      // In the same transaction: the timer that would come back to them has just been set to another opTime.
      await reconsider(tx, [...keys.values()], "deadline", wake);
      // There may be more than one batch, and the next is due before this look knew.
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
