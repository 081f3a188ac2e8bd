/**
 * An in-memory model of the rules of arrivals, which the module is compared with. Each decision is computed from the
 * tables; there are no locks, batches or queues.
 */
import type { InstanceState, RerunPolicy, TaskStatus } from "../src/arrivals/runs/states.ts";

const WAITING: ReadonlySet<InstanceState> = new Set(["waiting", "quiet", "asking"]);

export interface ModelDef {
  id: string;
  tables: readonly { table: string; optional: boolean; quiet: boolean }[];
  rerun: RerunPolicy;
  produces: string | null;
}

/** A run that a process holds. */
export interface Hold {
  session: string;
  /** The number of the run. */
  no: number;
}

/** What a run uses: how often each table had arrived. */
type Used = Record<string, number>;

interface Arrival {
  count: number;
  key: string | null;
  /** Its quiet period has ended. */
  isOld: boolean;
}

interface Instance {
  model: string;
  opTime: string;
  state: InstanceState;
  generation: number;
  again: boolean;
  used: Used | null;
  lost: number;
  hold: Hold | null;
}

interface Task {
  model: string;
  opTime: string;
  generation: number;
  status: TaskStatus;
  used: Used;
}

export interface Announced {
  table: string;
  opTime: string;
  key: string | null;
}

type Refusal = "MODEL_NOT_PUBLISHED" | "TABLES_MISSING" | "MODEL_RUNNING";

export type Model = ReturnType<typeof createModel>;

export function createModel(given: readonly ModelDef[], { lostLimit }: { lostLimit: number }) {
  const models = new Map(given.map((def) => [def.id, { def, published: true }]));
  const arrivals = new Map<string, Arrival>();
  const instances = new Map<string, Instance>();
  const tasks: Task[] = [];
  const dead = new Set<string>();
  const pastHolds: Hold[] = [];
  /** Which run the current values are from. */
  const values = new Map<string, number>();
  const emitted = { "kpi.updated": 0, "model.failed": 0 };

  const all = () => [...instances.values()];
  const defOf = (model: string) => models.get(model)?.def as ModelDef;
  const isPublished = (model: string) => models.get(model)?.published ?? false;
  const arrivalOf = (table: string, opTime: string) => arrivals.get(`${table} ${opTime}`);

  function usable(model: string, opTime: string): Used {
    const here = defOf(model).tables.map(
      ({ table }) => [`${table} ${opTime}`, arrivalOf(table, opTime)?.count] as const,
    );
    return Object.fromEntries(here.flatMap(([key, count]) => (count === undefined ? [] : [[key, count]])));
  }

  function isMissing(model: string, opTime: string): boolean {
    return defOf(model).tables.some(({ table, optional }) => !optional && !arrivalOf(table, opTime));
  }

  function stateFor({ model, opTime, used }: Instance): InstanceState {
    const { tables, rerun } = defOf(model);
    if (isMissing(model, opTime)) return "waiting";
    const isNew = Object.entries(usable(model, opTime)).some(([key, count]) => count > (used?.[key] ?? 0));
    if (used && !isNew) return "idle";
    if (used && rerun === "ask") return "asking";
    if (used && rerun === "ignore") return "idle";
    return tables.some(({ table, quiet }) => quiet && arrivalOf(table, opTime)?.isOld === false) ? "quiet" : "ready";
  }

  function instanceOf(model: string, opTime: string): Instance {
    const key = `${model} ${opTime}`;
    const fresh = { generation: 0, again: false, used: null, lost: 0, hold: null };
    const instance = instances.get(key) ?? { model, opTime, state: "idle" as const, ...fresh };
    instances.set(key, instance);
    return instance;
  }

  function consider(instance: Instance): void {
    if (instance.state === "running") instance.again = true;
    else if (instance.state !== "ready") instance.state = stateFor(instance);
  }

  function announce(announced: readonly Announced[]): void {
    const fresh = announced.filter(({ table, opTime, key }) => {
      const before = arrivalOf(table, opTime);
      if (before && key !== null && before.key === key) return false;
      arrivals.set(`${table} ${opTime}`, { count: (before?.count ?? 0) + 1, key, isOld: false });
      return true;
    });
    const affected = new Set<Instance>();
    for (const { table, opTime } of fresh) {
      for (const { def, published } of models.values()) {
        if (published && def.tables.some((one) => one.table === table)) affected.add(instanceOf(def.id, opTime));
      }
    }
    for (const instance of affected) consider(instance);
  }

  /** The run ends and its lease with it; the process that held it may not know yet. */
  function endHold(instance: Instance, status: TaskStatus): void {
    const { hold } = instance;
    if (!hold) throw new Error("no process holds it");
    (tasks[hold.no] as Task).status = status;
    pastHolds.push(hold);
    Object.assign(instance, { hold: null, again: false });
  }

  function force(instance: Instance): void {
    if (instance.state !== "running") instance.state = "ready";
  }

  return {
    models,
    dead,
    pastHolds,
    emitted,
    announce,
    held: () => all().flatMap(({ hold }) => hold ?? []),
    ready: () => all().filter(({ state }) => state === "ready").length,
    has: (...states: InstanceState[]) => all().some(({ state }) => states.includes(state)),

    /** In the form of the database rows. */
    rows: () => ({
      instances: all()
        .map(({ model, opTime, state, generation, again, used, lost }) => ({
          model,
          opTime,
          state,
          generation,
          again,
          used,
          lost,
        }))
        .sort((one, other) => (`${one.model} ${one.opTime}` < `${other.model} ${other.opTime}` ? -1 : 1)),
      tasks,
      values: [...values].map(([key, no]) => `${key} ${no}`).sort(),
    }),

    /** Answers the number of the new run. */
    claimed(model: string, opTime: string, session: string): number {
      const instance = instanceOf(model, opTime);
      if (instance.state !== "ready") throw new Error(`${model} is claimed for ${opTime} but ${instance.state}`);
      const no = tasks.length;
      instance.generation += 1;
      Object.assign(instance, { state: "running", hold: { session, no } });
      const { generation } = instance;
      tasks.push({ model, opTime, generation, status: "RUNNING", used: usable(model, opTime) });
      return no;
    },

    /** False if the lease was lost. */
    end(no: number, succeeds: boolean): boolean {
      const instance = all().find(({ hold }) => hold?.no === no);
      if (!instance) return false;
      const { model, opTime, again } = instance;
      const { produces } = defOf(model);
      const used = tasks[no]?.used ?? {};
      endHold(instance, succeeds ? "SUCCESS" : "FAILED");
      emitted[succeeds ? "kpi.updated" : "model.failed"] += 1;
      Object.assign(instance, { state: "idle", lost: 0, ...(succeeds ? { used } : {}) });
      if (succeeds) values.set(`${model} ${opTime}`, no);
      if (succeeds && produces !== null) announce([{ table: produces, opTime, key: null }]);
      if (again && isPublished(model)) consider(instance);
      return true;
    },

    release(no: number): void {
      const instance = all().find(({ hold }) => hold?.no === no);
      if (!instance) return;
      endHold(instance, "FAILED");
      instance.state = "ready";
      instance.generation -= 1;
    },

    /** Reclaims the runs of expired sessions. */
    reclaim(): void {
      for (const instance of all().filter(({ hold }) => hold && dead.has(hold.session))) {
        const { again, model } = instance;
        endHold(instance, "FAILED");
        instance.lost += 1;
        if (instance.lost < lostLimit) {
          instance.state = "ready";
          instance.generation -= 1;
        } else {
          Object.assign(instance, { state: "idle", lost: 0 });
          emitted["model.failed"] += 1;
          if (again && isPublished(model)) consider(instance);
        }
      }
    },

    /** Time passes and the timers run: all quiet periods end. */
    endQuietPeriods(): void {
      for (const arrival of arrivals.values()) arrival.isOld = true;
      for (const instance of all().filter(({ state }) => state === "quiet")) consider(instance);
    },

    setPublished(id: string, published: boolean): void {
      const model = models.get(id);
      if (model) model.published = published;
      if (published) return;
      const notRunning = all().filter(({ model: of, state }) => of === id && state !== "running");
      for (const instance of notRunning) instance.state = "idle";
    },

    setRerun(id: string, rerun: RerunPolicy): void {
      const model = models.get(id);
      if (model) model.def = { ...model.def, rerun };
      // A change of the model judges again what waits.
      const waits = all().filter(({ model: of, state }) => of === id && WAITING.has(state));
      for (const instance of waits) consider(instance);
    },

    run(id: string, opTime: string, forced: boolean): number | Refusal {
      if (!isPublished(id)) return "MODEL_NOT_PUBLISHED";
      if (!forced && isMissing(id, opTime)) return "TABLES_MISSING";
      const instance = instanceOf(id, opTime);
      if (instance.state === "running") return "MODEL_RUNNING";
      force(instance);
      return instance.generation + 1;
    },

    /** For all opTimes for which anything has arrived. */
    backfill(id: string): Refusal | undefined {
      if (!isPublished(id)) return "MODEL_NOT_PUBLISHED";
      const opTimes = new Set([...arrivals.keys()].map((key) => key.split(" ")[1] ?? ""));
      for (const opTime of opTimes) if (!isMissing(id, opTime)) force(instanceOf(id, opTime));
      return undefined;
    },

    /** Deletes the model and creates it again: only the log of its runs stays. */
    remake(id: string): void {
      for (const [key, instance] of instances) {
        if (instance.model !== id) continue;
        if (instance.hold) endHold(instance, "FAILED");
        instances.delete(key);
        values.delete(key);
      }
      const model = models.get(id);
      if (model) model.published = false;
    },
  };
}
