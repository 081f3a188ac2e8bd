/** What arrivals shows on the overview: models that failed, are late or ask, and the tables that others wait for. */
import type { Db } from "../kernel/data/db.ts";
import { ENTRIES_MAX, NEEDED_DAYS, type Need, type OverviewPart, type Waiting } from "../kernel/overview/part.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { DAY_MS } from "../kernel/time/units.ts";
import { decide, type Need as TableNeed } from "./runs/decide.ts";
import { knownModels, readNeeds } from "./runs/needs.ts";
import { endedModels, failedModels, instancesIn, type WaitingInstanceRow, waitingModels } from "./store/overview.ts";

/** What a model waits for is worked out for the newest of those that wait, not for each that ever waited. */
const INSTANCES_MAX = 500;

export function createOverview({ clock }: { clock: Clock }): OverviewPart {
  return {
    scope: "kpi:read",
    async now(db) {
      const [failed, asking, missing, waiting] = await Promise.all([
        failedModels(db),
        instancesIn(db, "asking", ENTRIES_MAX),
        missingTables(db, clock.now()),
        waitingModels(db),
      ]);
      const byTable = groupedByTable(missing);
      return {
        needs: [
          ...failed.map(
            ({ model_id, op_time, message, end_time, runs }): Need => ({
              about: { kind: "model", id: model_id, opTime: op_time },
              state: "failed",
              title: model_id,
              reason: message ?? "It has failed.",
              count: runs,
              at: end_time,
            }),
          ),
          ...asking.map(
            ({ model_id, op_time, updated_at }): Need => ({
              about: { kind: "model", id: model_id, opTime: op_time },
              state: "asking",
              title: model_id,
              reason: "A table has arrived again. The model waits for somebody to run it.",
              count: 1,
              at: updated_at,
            }),
          ),
          ...byTable.flatMap((some) => lateNeed(some, clock.now())).slice(0, ENTRIES_MAX),
        ],
        waiting: [...byTable.map(waitingFor), ...waitingOf(waiting)],
      };
    },
    activity: async (db, range) => ({ ended: [await endedModels(db, range)] }),
  };
}

interface Missing {
  instance: WaitingInstanceRow;
  need: TableNeed;
}

/** The tables that the newest models which wait are waiting for, each with the model. */
async function missingTables(db: Db, nowMs: number): Promise<Missing[]> {
  const instances = await instancesIn(db, "waiting", INSTANCES_MAX);
  const reader = { rows: db.read };
  const models = await knownModels(
    reader,
    instances.map(({ model_id }) => model_id),
  );
  const { needs, arrived } = await readNeeds(reader, instances, models);
  return instances.flatMap((instance) => {
    const facts = { needs: needs.get(instance) ?? [], arrived, consumed: null, rerun: "auto", nowMs } as const;
    const verdict = decide(facts);
    return verdict.kind === "waiting" ? verdict.missing.map((need) => ({ instance, need })) : [];
  });
}

/** The table that most models wait for first. */
function groupedByTable(missing: readonly Missing[]): Missing[][] {
  const groups = new Map<string, Missing[]>();
  for (const one of missing) {
    const group = groups.get(one.need.table);
    if (group) group.push(one);
    else groups.set(one.need.table, [one]);
  }
  return [...groups.values()].sort((a, b) => b.length - a.length).slice(0, ENTRIES_MAX);
}

function waitingFor(some: readonly Missing[]): Waiting {
  const instances = new Set(some.map(({ instance }) => instance));
  const { table, opTime } = newestOf(some).need;
  return {
    cause: "table",
    kind: "model",
    subject: table,
    about: { kind: "table", id: table, opTime },
    count: instances.size,
    oldestAt: new Date(Math.min(...[...instances].map(({ updated_at }) => updated_at.getTime()))),
    nextAt: null,
  };
}

/** One entry for a table that is late, however many models wait for it. */
function lateNeed(some: readonly Missing[], nowMs: number): Need[] {
  const late = some.filter(
    ({ need: { deadlineMs } }) =>
      deadlineMs !== null && deadlineMs <= nowMs && deadlineMs > nowMs - NEEDED_DAYS * DAY_MS,
  );
  if (late.length === 0) return [];
  const { instance, need } = newestOf(late);
  return [
    {
      about: { kind: "model", id: instance.model_id, opTime: instance.op_time },
      state: "late",
      title: need.table,
      reason: `The table has not arrived for ${need.opTime}. Model ${instance.model_id} waits for it.`,
      count: new Set(late.map((one) => one.instance)).size,
      at: need.deadlineMs === null ? null : new Date(need.deadlineMs),
    },
  ];
}

function newestOf(some: readonly Missing[]): Missing {
  const [first, ...others] = some;
  if (!first) throw new Error("a group has no entry");
  return others.reduce((newest, one) => (one.need.opTime > newest.need.opTime ? one : newest), first);
}
