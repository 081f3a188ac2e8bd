/** Schedules: their use cases, and firing those that are due, each exactly once over all processes. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import { type Db, isUnavailable, sqlState, type Tx, UNIQUE_VIOLATION } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import type { Ids } from "../../kernel/ids.ts";
import { differences } from "../../kernel/json/differences.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { oneLine } from "../../kernel/text/sentences.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { checkCron, type MissedPolicy, nextFire, planFires } from "../../kernel/time/cron.ts";
import { type Grain, opTimeAt } from "../../kernel/time/op-time.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ChainsHints, chainsError } from "../catalogue.ts";
import type { Definitions } from "../definitions/definitions.ts";
import { type ChainRow, findChain } from "../store/definitions.ts";
import { insertChainRuns } from "../store/runs.ts";
import * as store from "../store/schedules.ts";
import { TIMER_TOPIC } from "../topics.ts";

export interface ScheduleInput {
  name: string;
  cron: string;
  timeZone: string;
  missed: MissedPolicy;
  /** The opTime of its runs: that of the fire time, shifted by `offset` grains. */
  opTime?: { grain: Grain; offset: number } | null;
  params?: Record<string, unknown>;
  priority?: number;
  paused?: boolean;
}
/** Absent fields stay as they are. */
export type ScheduleChange = Pick<ScheduleInput, "name" | "cron"> & Partial<ScheduleInput>;

export interface ScheduleKey {
  chainId: string;
  scheduleId: string;
}

export interface Schedules {
  create(chainId: string, input: ScheduleInput, actor: Actor, options?: DryRun): Promise<store.ScheduleRow>;
  update(schedule: ScheduleKey, input: ScheduleChange, actor: Actor, options?: DryRun): Promise<store.ScheduleRow>;
  setPaused(schedule: ScheduleKey, paused: boolean, actor: Actor, options?: DryRun): Promise<store.ScheduleRow>;
  remove(schedule: ScheduleKey, actor: Actor, options?: DryRun): Promise<void>;
  list(chainId: string): Promise<store.ScheduleRow[]>;
  get(chainId: string, scheduleId: string): Promise<store.ScheduleRow>;
  /** Starts the runs of schedules that are due; returns how many. */
  fire(limit: number): Promise<{ fired: number }>;
}

const CATCH_UP_MAX = 100;
/** The delay of a schedule that failed to fire, for example because this Node does not know its time zone. */
const POSTPONED_SECONDS = 600;
const PROBLEM_LENGTH_MAX = 1_000;

/** Its runs cannot be started. */
class CannotFire extends Error {}

export function createSchedules(deps: {
  db: Db;
  wake: Wake;
  hints: ChainsHints;
  clock: Clock;
  ids: Ids;
  definitions: Definitions;
  log: ServiceLog;
}): Schedules {
  const { db, wake, hints, clock, ids, definitions, log } = deps;

  function rowOf(chain: ChainRow, scheduleId: string, input: ScheduleInput): store.ScheduleWrite {
    const wrong = checkCron(input.cron, input.timeZone) ?? lacksOpTime(chain, input);
    if (wrong !== undefined) throw chainsError("SCHEDULE_INVALID", {}, { reason: wrong });
    return {
      schedule_id: scheduleId,
      chain_id: chain.chain_id,
      name: input.name,
      cron: input.cron,
      time_zone: input.timeZone,
      missed: input.missed,
      op_time: input.opTime ?? null,
      params: input.params ?? {},
      priority: input.priority ?? 0,
      paused: input.paused ?? false,
      next_at: nextAt(input.cron, input.timeZone),
    };
  }

  function nextAt(cron: string, timeZone: string): Date | null {
    const ms = nextFire(cron, timeZone, clock.now());
    return ms === undefined ? null : new Date(ms);
  }

  async function find(chainId: string, scheduleId: string): Promise<store.ScheduleRow> {
    const row = await store.readSchedule(db, chainId, scheduleId);
    if (!row) throw chainsError("SCHEDULE_NOT_FOUND", { chainId, scheduleId });
    return row;
  }

  const hintTimers = () => wake.hint(TIMER_TOPIC);
  function changed(tx: Tx, scheduleId: string): void {
    tx.afterCommit(hintTimers);
    hints.changed(tx, "schedule", scheduleId);
  }

  return {
    async create(chainId, input, actor, options = FOR_REAL) {
      const row = rowOf(await definitions.get(chainId), ids.uuid(), input);
      return transact(db, options, async (tx) => {
        const inserted = await store.insertSchedule(tx, row);
        if (!inserted) throw chainsError("SCHEDULE_NAME_TAKEN", { name: input.name });
        await audit(tx, actor, "schedule.create", row.schedule_id, { chainId, name: input.name, cron: input.cron });
        changed(tx, row.schedule_id);
        return inserted;
      });
    },

    async update({ chainId, scheduleId }, input, actor, options = FOR_REAL) {
      try {
        return await transact(db, options, async (tx) => {
          const present = await store.lockSchedule(tx, chainId, scheduleId);
          const chain = present && (await findChain(tx, chainId));
          if (!chain) throw chainsError("SCHEDULE_NOT_FOUND", { chainId, scheduleId });
          const row = rowOf(chain, scheduleId, { ...inputOf(present), ...input });
          // A time that could not be fired is still to come: the change may be what was missing.
          const sameTimes = row.cron === present.cron && row.time_zone === present.time_zone && !present.paused;
          const next_at = sameTimes ? present.next_at : row.next_at;
          const updated = await store.updateSchedule(tx, { ...row, next_at });
          if (!updated) throw new Error(`schedule ${scheduleId} is locked but gone`);
          const changes = auditedChanges(differences(inputOf(present), inputOf(updated)));
          await audit(tx, actor, "schedule.update", scheduleId, { chainId, name: input.name, ...changes });
          changed(tx, scheduleId);
          return updated;
        });
      } catch (error) {
        if (sqlState(error) === UNIQUE_VIOLATION) throw chainsError("SCHEDULE_NAME_TAKEN", { name: input.name });
        throw error;
      }
    },

    setPaused: ({ chainId, scheduleId }, paused, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const row = await store.lockSchedule(tx, chainId, scheduleId);
        if (!row) throw chainsError("SCHEDULE_NOT_FOUND", { chainId, scheduleId });
        if (row.paused === paused) return row;
        // Times during the pause do not count as missed.
        const next_at = paused ? row.next_at : nextAt(row.cron, row.time_zone);
        const updated = await store.updateSchedule(tx, { ...row, paused, next_at });
        await audit(tx, actor, paused ? "schedule.pause" : "schedule.unpause", scheduleId, { chainId, name: row.name });
        changed(tx, scheduleId);
        return updated ?? row;
      }),

    async remove({ chainId, scheduleId }, actor, options = FOR_REAL) {
      await transact(db, options, async (tx) => {
        const name = await store.deleteSchedule(tx, chainId, scheduleId);
        if (name === undefined) throw chainsError("SCHEDULE_NOT_FOUND", { chainId, scheduleId });
        await audit(tx, actor, "schedule.delete", scheduleId, { chainId, name });
        changed(tx, scheduleId);
      });
    },

    async list(chainId) {
      await definitions.get(chainId);
      return store.listSchedules(db, chainId);
    },

    get: find,

    async fire(limit) {
      let fired = 0;
      for (const scheduleId of await store.dueSchedules(db, limit)) fired += await fireOne(scheduleId);
      return { fired };
    },
  };

  /** One transaction each, so that one that fails does not hold up the others. */
  async function fireOne(scheduleId: string): Promise<number> {
    try {
      return await db.tx(async (tx) => {
        const row = await store.lockDue(tx, scheduleId);
        return row ? startRuns(tx, row) : 0;
      });
    } catch (error) {
      if (isUnavailable(error)) throw error;
      const problem = oneLine(messageOf(error), PROBLEM_LENGTH_MAX);
      const fields = { scheduleId, seconds: POSTPONED_SECONDS, reason: problem };
      const cause = error instanceof CannotFire ? {} : { err: error };
      log.error({ ...fields, ...cause }, "a schedule failed to fire and is postponed");
      await store.postponeSchedule(db, scheduleId, { seconds: POSTPONED_SECONDS, problem });
      return 0;
    }
  }

  async function startRuns(tx: Tx, row: store.DueRow): Promise<number> {
    const {
      schedule_id: scheduleId,
      chain_id: chainId,
      cron,
      time_zone: timeZone,
      missed: policy,
      next_at,
      op_time,
    } = row;
    const plan = planFires({
      cron,
      timeZone,
      policy,
      dueMs: next_at.getTime(),
      nowMs: row.now_ms,
      catchUpMax: CATCH_UP_MAX,
    });
    const runs = plan.fires.map((fireMs) => ({
      run_id: ids.uuid(),
      chain_id: chainId,
      job_id: scheduleId,
      params: row.params,
      op_time: op_time && opTimeAt(fireMs, op_time.grain, timeZone, op_time.offset),
      priority: row.priority,
      trigger: "schedule",
      triggered_by: `schedule ${row.name}`,
      parent_run_id: null,
      parent_node_id: null,
      depth: 0,
      request: null,
    }));
    const made = row.enabled && runs.length > 0 ? await insertChainRuns(tx, runs) : [];
    if (row.enabled && made.length < runs.length) {
      throw new CannotFire("The chain waits for tables, so the schedule needs an `opTime`.");
    }
    const lastFireMs = plan.fires.at(-1);
    await store.markFired(tx, {
      scheduleId,
      nextAt: plan.nextMs === undefined ? null : new Date(plan.nextMs),
      lastAt: lastFireMs === undefined ? null : new Date(lastFireMs),
      lastRunId: made.length > 0 ? (runs.at(-1)?.run_id ?? null) : null,
    });
    changed(tx, scheduleId);
    hints.changed(
      tx,
      "run",
      made.map(({ run_id }) => run_id),
    );
    return made.length;
  }
}

function inputOf(row: store.ScheduleRow): ScheduleInput {
  const { name, cron, missed, params, priority, paused } = row;
  return { name, cron, timeZone: row.time_zone, missed, opTime: row.op_time, params, priority, paused };
}

/** Without an opTime its runs could not be started. */
function lacksOpTime({ name, dag }: ChainRow, { opTime }: ScheduleInput): string | undefined {
  const table = dag.nodes.flatMap(({ waitsFor = [] }) => waitsFor)[0];
  if (opTime || table === undefined) return undefined;
  return `Chain \`${name}\` waits for tables such as \`${table}\`, so a schedule of it needs an \`opTime\``;
}
