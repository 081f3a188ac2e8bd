/**
 * Servers for the chaos tests of arrivals. Their models run on a Postgres engine, where the test can hold each run open and
 * read how it ended.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { ArrivalsSettings } from "../src/arrivals/settings.ts";
import { temporaryFolder } from "../src/kernel/embedded-postgres/testing.fixture.ts";
import type { Answer, Api, Json } from "./client.ts";
import type { TestDatabase } from "./database.ts";
import { type Server, type ServerOptions, startServer } from "./server.ts";
import { until } from "./until.ts";

const MODEL = "m";
export const KPI = "K";

export interface SeenRun {
  status: string;
  generation: number;
  message: string | null;
  /** By the database's clock. */
  startMs: number;
}

export interface ArrivalServers {
  start(roles: string, database?: ServerOptions["database"]): Promise<Server>;
  /** Waits until the query of the run with this number for the opTime is executing. */
  began(opTime: string, run: number): Promise<void>;
  /** Lets that run continue; its value is its number. */
  openGate(opTime: string, run: number): Promise<void>;
  runs(opTime: string): Promise<SeenRun[]>;
  /** Waits for the last run of the opTime to have this status. */
  ended(opTime: string, status: string): Promise<SeenRun[]>;
}

const SECRET_KEY = "0".repeat(64);

/** Its model waits for table `a` and runs until its gate is open. */
export async function setUpServers(
  database: TestDatabase,
  settings: Partial<ArrivalsSettings> = {},
): Promise<ArrivalServers> {
  const { query } = database;
  const folder = await temporaryFolder();
  const config = join(folder, "millrace.yaml");
  const engines = { gate: { kind: "postgres", url: database.url } };
  await writeFile(config, JSON.stringify({ arrivals: settings, engines }));
  await query("create table if not exists gate (op_time text, run integer)");
  await query(
    `create or replace function gated(day text) returns float8 language plpgsql as $$
     declare run_no integer;
     begin
       select count(*) into run_no from arrivals.metrics_task_log where op_time = day;
       perform pg_advisory_lock_shared(hashtext(day), run_no);
       while not exists (select from gate where op_time = day and run = run_no) loop perform pg_sleep(0.005); end loop;
       return run_no;
     end $$`,
  );

  const runs = (opTime: string) =>
    query<SeenRun>(
      `select status, generation, message, (extract(epoch from start_time) * 1000)::float8 as "startMs"
       from arrivals.metrics_task_log where op_time = $1 order by id`,
      [opTime],
    );
  return {
    runs,
    start: (roles, other = database) =>
      startServer({
        database: other,
        env: { MILLRACE_ROLES: roles, MILLRACE_CONFIG: config, MILLRACE_SECRET_KEY: SECRET_KEY },
      }),
    began: async (opTime, run) =>
      void (await until(async () => {
        const rows = await query(
          `select from pg_locks join pg_database d on d.oid = pg_locks.database
           where d.datname = current_database() and locktype = 'advisory' and classid = hashtext($1)::oid and objid = $2`,
          [opTime, run],
        );
        return rows.length > 0;
      }, `run ${run} of ${opTime} to begin`)),
    openGate: async (opTime, run) => void (await query("insert into gate values ($1, $2)", [opTime, run])),
    ended: (opTime, status) =>
      until(async () => {
        const seen = await runs(opTime);
        return seen.at(-1)?.status === status && seen;
      }, `the run of ${opTime} to be ${status}`),
  };
}

/** Defines and publishes the gated model, or one with other fields. */
export async function defineModel({ api }: Pick<Server, "api">, fields: Json = {}): Promise<void> {
  const work = { engine: "gate", sql: `select '${KPI}' as kpi_id, gated($op_time) as value` };
  const body = { name: "gated", dependencies: [{ table: "a" }], kpis: [KPI], ...work, ...fields };
  expect((await api.put(`/api/v1/kpi/models/${MODEL}`, body)).status).toBe(201);
  expect((await api.post(`/api/v1/kpi/models/${MODEL}:publish`)).status).toBe(200);
}

/** Table `a` arrives; the answer does not wait for the model. */
export function announce(api: Api, opTime: string, key?: string): Promise<Answer<Json>> {
  return api.send("/api/open/kpi/srcTableComplete", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      prefer: "respond-async",
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    body: JSON.stringify({ srcTableName: "a", opTime }),
  });
}

/** The visible values of the opTime, each with its generation. */
export async function valuesOf({ api }: Pick<Server, "api">, opTime: string): Promise<[number, number][]> {
  const path = `/api/v1/kpi/data?kpiId=${KPI}&opTime=${opTime}`;
  const { body } = await api.get<{ items: { value: number; generation: number }[] }>(path);
  return body.items.map(({ value, generation }) => [value, generation]);
}

/** Expires the session of a dead process, so that the test does not wait 15 s for it, nor for the next reclaim. */
export async function endSessionOf({ query }: TestDatabase, pid: number): Promise<void> {
  await query("update kernel.session set expires_at = now() where process like '%:' || $1", [String(pid)]);
  await query("select pg_notify('millrace_wake', 'elsewhere arrivals.timer')");
}
