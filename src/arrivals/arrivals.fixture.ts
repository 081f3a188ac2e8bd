/** A Millrace that runs models, for tests of the KPI API: shorthands for its calls, and runs that a test can hold open. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { stringify } from "yaml";
import type { Answer, Json } from "../../test/client.ts";
import type { TestDatabase } from "../../test/database.ts";
import { type MillraceOptions, startMillrace, type TestMillrace } from "../../test/millrace.ts";
import { until } from "../../test/until.ts";
import type { ArrivalReply } from "./schemas.ts";
import { TIMER_TOPIC } from "./topics.ts";

const BASE = "/api/v1/kpi";
export const TODAY = "20251219";

interface Task extends Json {
  id: string;
  status: string;
  message: string | null;
  generation: number;
  trigger: string;
  causedBy: Json | null;
  consumed: Record<string, string>;
}

interface Value {
  kpiId: string;
  value: number;
  dimensions: Json;
}

interface Why extends Json {
  state: string;
  verdict: string;
  tables: { table: string; arrivedAt: string | null; sequence: string | null }[];
  runs: Task[];
  wouldRun: string[];
  computed: { kpiId: string; missing: string[] }[];
}

/** While it is closed, runs whose SQL has `from` in it do not end. */
export interface Gate {
  from: string;
  open(): Promise<void>;
}

interface TestKpis extends TestMillrace {
  get<Body = Json>(path: string): Promise<Answer<Body>>;
  put(path: string, body: unknown): Promise<Answer<Json>>;
  post(path: string, body?: unknown): Promise<Answer<Json>>;
  /** Defines a model; it waits for table T and returns the value 1 for KD1001 unless `fields` says otherwise. */
  define(modelId: string, fields?: Json): Promise<Json>;
  /** Defines and publishes it. */
  publish(modelId: string, fields?: Json): Promise<void>;
  /** Its parts are defined first, if they are not. */
  compute(kpiId: string, expression: string): Promise<void>;
  /** Announces a table; the answer must be 200. */
  arrive(table: string, opTime?: string, headers?: Record<string, string>): Promise<ArrivalReply>;
  /** Without waiting for what it triggers. */
  arriveAsync(table: string, opTime?: string): Promise<ArrivalReply>;
  why(modelId: string, opTime?: string): Promise<Why>;
  /** The newest first. */
  tasks(modelId: string, opTime?: string): Promise<Task[]>;
  /** Waits until a run of this generation has the status. */
  reaches(modelId: string, status: string, generation?: number): Promise<Task>;
  /** `KD1001=3`, with the dimensions if there are any: `KD1001{"region":"EU"}=3`. */
  values(opTime?: string): Promise<string[]>;
  /** The payloads of the emitted events, oldest first. */
  events(topic: string): Promise<Json[]>;
  /** Closed until the test opens it, or ends. */
  gate(): Promise<Gate>;
  /** Makes the timers run now. */
  wakeTimers(): Promise<void>;
  /** Waits until exactly `count` statements that contain the text are blocked, with this wait event. */
  untilBlocked(count: number, reason: "transactionid" | "advisory", text: string): Promise<unknown>;
}

/**
 * Call it at the top of a test file, after `useDatabase`. Beside `duckdb` there is the engine `warehouse`, which is the
 * test's own database. After each test all rows of arrivals are deleted.
 */
export function useKpis(database: TestDatabase, options: MillraceOptions = {}): TestKpis {
  const kpis = {} as TestKpis;
  const gates = new Set<Gate>();
  let directory = "";
  let gatesMade = 0;

  beforeAll(async () => {
    // Delivered events are deleted from the outbox, so a trigger copies them as they are emitted.
    await database.query(
      "create table public.emitted (id bigint generated always as identity, topic text, payload jsonb)",
    );
    await database.query(`create function public.record_emitted() returns trigger language plpgsql as $$
      begin insert into public.emitted (topic, payload) values (new.topic, new.payload); return new; end $$`);
    await database.query(
      "create trigger emitted after insert on kernel.outbox for each row execute function public.record_emitted()",
    );
    directory = await mkdtemp(join(tmpdir(), "millrace-kpis-"));
    const config = join(directory, "millrace.yaml");
    await writeFile(config, stringify({ engines: { warehouse: { kind: "postgres", url: database.url } } }));
    const env = {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_SECRET_KEY: "0".repeat(64),
      MILLRACE_CONFIG: config,
      ...options.env,
    };
    Object.assign(kpis, await startMillrace(database, { ...options, env }));
  });
  afterEach(async () => {
    for (const gate of gates) await gate.open();
    await allRunsEnded();
    for (const table of ["metrics_model", "metrics_etl_log", "metrics_task_log", "metrics_kpi", "metrics_kpi_data"]) {
      await database.query(`delete from arrivals.${table}`);
    }
    await database.query("delete from public.emitted");
  });
  afterAll(async () => {
    await kpis.app.stop();
    await rm(directory, { recursive: true });
  });

  const allRunsEnded = () =>
    until(async () => {
      const busy = await database.query(
        "select from arrivals.model_instance where state in ('ready', 'running', 'parked', 'returned')",
      );
      return busy.length === 0;
    }, "all runs to end");

  return Object.assign(kpis, {
    get: (path) => kpis.api.get(BASE + path),
    put: (path, body) => kpis.api.put(BASE + path, body),
    post: (path, body) => kpis.api.post(BASE + path, body),

    define: async (modelId, fields) => done(await kpis.put(`/models/${modelId}`, modelBody(fields))),

    async publish(modelId, fields) {
      await kpis.define(modelId, fields);
      done(await kpis.post(`/models/${modelId}:publish`));
    },

    async compute(kpiId, expression) {
      const answer = await kpis.put(`/indicators/${kpiId}`, { type: "COMPUTED", name: kpiId, expression });
      const { problem, name } = (answer.body["details"] ?? {}) as { problem?: string; name?: string };
      if (problem !== "unknown") return void done(answer);
      done(await kpis.put(`/indicators/${name}`, { type: "EXTENDED", name }));
      await kpis.compute(kpiId, expression);
    },

    async arrive(table, opTime = TODAY, headers = {}) {
      const answer = await kpis.api.send<ArrivalReply>("/api/open/kpi/srcTableComplete", {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ srcTableName: table, opTime }),
      });
      return done(answer);
    },
    arriveAsync: (table, opTime) => kpis.arrive(table, opTime, { prefer: "respond-async" }),

    why: async (modelId, opTime = TODAY) => done(await kpis.get<Why>(`/models/${modelId}/why?opTime=${opTime}`)),

    async tasks(modelId, opTime = TODAY) {
      const path = `/task-logs?modelId=${modelId}&opTime=${opTime}&size=1000`;
      return done(await kpis.get<{ items: Task[] }>(path)).items;
    },

    reaches: (modelId, status, generation = 1) =>
      until(async () => {
        const tasks = await kpis.tasks(modelId);
        return tasks.find((task) => task.generation === generation && task.status === status);
      }, `run ${generation} of ${modelId} to be ${status}`),

    async values(opTime = TODAY) {
      const { items } = done(await kpis.get<{ items: Value[] }>(`/data?opTime=${opTime}&size=1000`));
      return items.map(({ kpiId, value, dimensions }) => {
        const shown = JSON.stringify(dimensions);
        return `${kpiId}${shown === "{}" ? "" : shown}=${value}`;
      });
    },

    async events(topic) {
      const query = "select payload from public.emitted where topic = $1 order by id";
      return (await database.query<{ payload: Json }>(query, [topic])).map(({ payload }) => payload);
    },

    async gate() {
      gatesMade += 1;
      const key = gatesMade;
      const client = await database.db.dedicated("gate");
      await client.query("select pg_advisory_lock(7400, $1)", [key]);
      const gate: Gate = {
        from: `from (select pg_advisory_xact_lock_shared(7400, ${key})) as gate`,
        async open() {
          if (gates.delete(gate)) await client.end();
        },
      };
      gates.add(gate);
      return gate;
    },

    untilBlocked: (count, reason, text) =>
      until(async () => {
        const found = await database.query(
          "select from pg_stat_activity where datname = current_database() and wait_event = $1 and strpos(query, $2) > 0",
          [reason, text],
        );
        return found.length === count;
      }, `${count} statements to be blocked`),

    async wakeTimers() {
      await database.query("select pg_notify('millrace_wake', $1)", [`test ${TIMER_TOPIC}`]);
    },
  } satisfies Omit<TestKpis, keyof TestMillrace>);
}

export function modelBody(fields: Json = {}): Json {
  const work = "chain" in fields ? {} : { sql: "select 'KD1001' as kpi_id, 1 as value" };
  return { name: "a model", ...work, dependencies: [{ table: "T" }], kpis: ["KD1001"], ...fields };
}

/** The model's dependencies on these tables, without further conditions. */
export function on(...tables: string[]): { table: string }[] {
  return tables.map((table) => ({ table }));
}

function done<Body>({ status, body }: Answer<Body>): Body {
  if (status !== 200 && status !== 201) throw new Error(`answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
