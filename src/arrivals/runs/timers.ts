/**
 * What happens because time passes: quiet periods end, deadlines go by, and the runs of silent processes are taken back.
 * One look tells whether there is anything to do; between looks it sleeps until the next thing is due, or somebody hints.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import { type Counts, createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Events } from "../events.ts";
import { nextDeadline } from "../models/deadline.ts";
import { type DueDeadline, dueDeadlines, look, setDeadlines } from "../store/deadlines.ts";
import { calmInstances, dueInstances, giveBackInstances, type InstanceKey, lostInstances } from "../store/instances.ts";
import { findModels } from "../store/models.ts";
import { endLostTasks } from "../store/tasks.ts";
import { ENDED_TOPIC, READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import { consider } from "./consider.ts";
import { keyOf } from "./judge.ts";
import { arrivedOf, knownModels, needsOf } from "./needs.ts";
import { MODEL_STATES, type Trigger } from "./states.ts";

export interface TimersDeps {
  db: Db;
  wake: Wake;
  session: Pick<Session, "onSilence">;
  events: Events;
  lostLimit: number;
  log: ServiceLog;
  onRun: OnRun;
}

const INTERVAL_MS = 30_000;
const AT_ONCE = 200;

export function createTimers({ db, wake, session, events, lostLimit, log, onRun }: TimersDeps): Service {
  let nextDueMs: number | undefined;

  async function runOnce(): Promise<Counts> {
    const seen = await look(db);
    const due = (inMs: number | null) => inMs !== null && inMs <= 0;
    if (seen.ready) wake.hint(READY_TOPIC);
    const reclaimed = seen.lost ? await reclaim() : 0;
    const quietened = due(seen.next_due_ms) ? await endQuiet() : 0;
    const late = due(seen.next_deadline_ms) ? await passDeadlines() : 0;
    const times = [seen.next_due_ms, seen.next_deadline_ms].filter((ms) => ms !== null);
    nextDueMs = times.length > 0 ? Math.min(...times) : undefined;
    return { reclaimed, quietened, late };
  }

  async function reclaim(): Promise<number> {
    const lost = await lostInstances(db, AT_ONCE);
    return db.tx(async (tx) => {
      const given = await giveBackInstances(tx, lost, { lost: true, lostLimit });
      await endLostTasks(tx, given, "the process that ran it fell silent");
      const over = given.filter(({ state }) => state === "idle");
      if (over.length > 0) await tellLost(tx, over);
      // The run is over, but what arrived during it is still owed one.
      await reconsider(
        tx,
        given.filter(({ state, again }) => state === "idle" && again),
        null,
      );
      tx.afterCommit(() => {
        if (given.length > 0) wake.hint(READY_TOPIC);
        if (over.length > 0) wake.hint(ENDED_TOPIC);
      });
      return given.length;
    });
  }

  /** Those that were lost so often that they are over. */
  async function tellLost(tx: Tx, over: readonly (InstanceKey & { generation: number })[]): Promise<void> {
    const message = `${lostLimit} processes in a row fell silent while they ran it`;
    const models = await findModels(tx, [...new Set(over.map(({ model_id }) => model_id))]);
    for (const { model_id: modelId, op_time: opTime, generation } of over) {
      await events.failed(tx, { modelId, opTime, generation, message });
      const model = models.get(modelId);
      if (!model) continue; // Deleted in this moment.
      await events.ended(tx, { model, opTime, generation, failure: message, kpis: model.kpis, computed: [] });
    }
  }

  async function endQuiet(): Promise<number> {
    const keys = await dueInstances(db, AT_ONCE);
    await db.tx((tx) => reconsider(tx, keys, null));
    return keys.length;
  }

  async function reconsider(tx: Tx, keys: readonly InstanceKey[], trigger: Trigger | null): Promise<void> {
    const models = await knownModels(
      tx,
      keys.map(({ model_id }) => model_id),
    );
    const isPublished = ({ model_id }: InstanceKey) => models.get(model_id)?.state === MODEL_STATES.published;
    // Those whose table arrived in the moment in which they were unpublished would be due for ever.
    const others = new Set(keys.filter((key) => !isPublished(key)).map(({ model_id }) => model_id));
    for (const modelId of others) await calmInstances(tx, modelId);
    const considered = await consider(tx, keys.filter(isPublished), models, { trigger });
    if (considered.some(({ verdict }) => verdict.kind === "ready")) tx.afterCommit(() => wake.hint(READY_TOPIC));
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
      await reconsider(tx, [...keys.values()], "deadline");
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
    more: ({ reclaimed = 0 }) => reclaimed > 0,
    nextDueMs: () => nextDueMs,
  });
  wake.on(TIMER_TOPIC, service.wake);
  session.onSilence(service.wake);
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
