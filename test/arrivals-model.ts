/**
 * The rules of arrivals once more, in memory and from their definitions: what the module is compared with. Whether a model
 * may run for an opTime is asked anew of its tables each time; there are no locks, no batches and no queue.
 */
import type { InstanceState, RerunPolicy, TaskStatus } from "../src/arrivals/runs/states.ts";

export interface ModelDef {
  id: string;
  tables: readonly { table: string; optional: boolean; quiet: boolean }[];
  rerun: RerunPolicy;
  produces: string | null;
}

/** A run in the hands of a process. */
export interface Grip {
  session: string;
  /** Its place among all runs. */
  no: number;
}

/** What a run uses: how often each table had arrived. */
type Used = Record<string, number>;

interface Arrival {
  count: number;
  key: string | null;
  /** So long ago that nobody waits for it to come again. */
  settled: boolean;
}

interface Instance {
  model: string;
  opTime: string;
  state: InstanceState;
  generation: number;
  again: boolean;
  used: Used | null;
  lost: number;
  grip: Grip | null;
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
  const spent: Grip[] = [];
  /** Which run brought the values that are to be seen. */
  const values = new Map<string, number>();
  const told = { "kpi.updated": 0, "model.failed": 0 };

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
    const isNews = Object.entries(usable(model, opTime)).some(([key, count]) => count > (used?.[key] ?? 0));
    if (used && !isNews) return "idle";
    if (used && rerun === "ask") return "asking";
    if (used && rerun === "ignore") return "idle";
    return tables.some(({ table, quiet }) => quiet && arrivalOf(table, opTime)?.settled === false) ? "quiet" : "ready";
  }

  function instanceOf(model: string, opTime: string): Instance {
    const key = `${model} ${opTime}`;
    const fresh = { generation: 0, again: false, used: null, lost: 0, grip: null };
    const instance = instances.get(key) ?? { model, opTime, state: "idle" as const, ...fresh };
    instances.set(key, instance);
    return instance;
  }

  function consider(instance: Instance): void {
    if (instance.state === "running") instance.again = true;
    else if (instance.state !== "ready") instance.state = stateFor(instance);
  }

  function announce(announced: readonly Announced[]): void {
    const news = announced.filter(({ table, opTime, key }) => {
      const before = arrivalOf(table, opTime);
      if (before && key !== null && before.key === key) return false;
      arrivals.set(`${table} ${opTime}`, { count: (before?.count ?? 0) + 1, key, settled: false });
      return true;
    });
    const concerned = new Set<Instance>();
    for (const { table, opTime } of news) {
      for (const { def, published } of models.values()) {
        if (published && def.tables.some((one) => one.table === table)) concerned.add(instanceOf(def.id, opTime));
      }
    }
    for (const instance of concerned) consider(instance);
  }

  /** The run is over, whatever becomes of its model; its holder does not know yet. */
  function letGo(instance: Instance, status: TaskStatus): void {
    const { grip } = instance;
    if (!grip) throw new Error("nobody holds it");
    (tasks[grip.no] as Task).status = status;
    spent.push(grip);
    Object.assign(instance, { grip: null, again: false });
  }

  function force(instance: Instance): void {
    if (instance.state !== "running") instance.state = "ready";
  }

  return {
    models,
    dead,
    spent,
    told,
    announce,
    held: () => all().flatMap(({ grip }) => grip ?? []),
    ready: () => all().filter(({ state }) => state === "ready").length,
    has: (...states: InstanceState[]) => all().some(({ state }) => states.includes(state)),

    /** In the form in which the tables tell it. */
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

    /** Answers the place of the run that begins. */
    claimed(model: string, opTime: string, session: string): number {
      const instance = instanceOf(model, opTime);
      if (instance.state !== "ready") throw new Error(`${model} is claimed for ${opTime} but ${instance.state}`);
      const no = tasks.length;
      instance.generation += 1;
      Object.assign(instance, { state: "running", grip: { session, no } });
      const { generation } = instance;
      tasks.push({ model, opTime, generation, status: "RUNNING", used: usable(model, opTime) });
      return no;
    },

    /** Answers whether it counts. */
    end(no: number, succeeds: boolean): boolean {
      const instance = all().find(({ grip }) => grip?.no === no);
      if (!instance) return false;
      const { model, opTime, again } = instance;
      const { produces } = defOf(model);
      const used = tasks[no]?.used ?? {};
      letGo(instance, succeeds ? "SUCCESS" : "FAILED");
      told[succeeds ? "kpi.updated" : "model.failed"] += 1;
      Object.assign(instance, { state: "idle", lost: 0, ...(succeeds ? { used } : {}) });
      if (succeeds) values.set(`${model} ${opTime}`, no);
      if (succeeds && produces !== null) announce([{ table: produces, opTime, key: null }]);
      if (again && isPublished(model)) consider(instance);
      return true;
    },

    giveBack(no: number): void {
      const instance = all().find(({ grip }) => grip?.no === no);
      if (!instance) return;
      letGo(instance, "FAILED");
      instance.state = "ready";
      instance.generation -= 1;
    },

    /** The timers notice whose process fell silent. */
    reclaim(): void {
      for (const instance of all().filter(({ grip }) => grip && dead.has(grip.session))) {
        const { again, model } = instance;
        letGo(instance, "FAILED");
        instance.lost += 1;
        if (instance.lost < lostLimit) {
          instance.state = "ready";
          instance.generation -= 1;
        } else {
          Object.assign(instance, { state: "idle", lost: 0 });
          told["model.failed"] += 1;
          if (again && isPublished(model)) consider(instance);
        }
      }
    },

    /** Time passes: what has arrived will not come again so soon. The timers notice. */
    settle(): void {
      for (const arrival of arrivals.values()) arrival.settled = true;
      for (const instance of all().filter(({ state }) => state === "quiet")) consider(instance);
    },

    setPublished(id: string, published: boolean): void {
      const model = models.get(id);
      if (model) model.published = published;
      if (published) return;
      const begun = all().filter(({ model: of, state }) => of === id && state !== "running");
      for (const instance of begun) instance.state = "idle";
    },

    setRerun(id: string, rerun: RerunPolicy): void {
      const model = models.get(id);
      if (model) model.def = { ...model.def, rerun };
    },

    run(id: string, opTime: string, forced: boolean): number | Refusal {
      if (!isPublished(id)) return "MODEL_NOT_PUBLISHED";
      if (!forced && isMissing(id, opTime)) return "TABLES_MISSING";
      const instance = instanceOf(id, opTime);
      if (instance.state === "running") return "MODEL_RUNNING";
      force(instance);
      return instance.generation + 1;
    },

    /** For all opTimes of which anything has arrived. */
    backfill(id: string): Refusal | undefined {
      if (!isPublished(id)) return "MODEL_NOT_PUBLISHED";
      const opTimes = new Set([...arrivals.keys()].map((key) => key.split(" ")[1] ?? ""));
      for (const opTime of opTimes) if (!isMissing(id, opTime)) force(instanceOf(id, opTime));
      return undefined;
    },

    /** It is deleted, and made again: the log of its runs is all that stays. */
    remake(id: string): void {
      for (const [key, instance] of instances) {
        if (instance.model !== id) continue;
        if (instance.grip) letGo(instance, "FAILED");
        instances.delete(key);
        values.delete(key);
      }
      const model = models.get(id);
      if (model) model.published = false;
    },
  };
}
