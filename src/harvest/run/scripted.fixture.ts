/** Sources that tests write themselves: an HTTP server that answers by a function, and a plain REST definition that points at it. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll } from "vitest";
import type { Api } from "../../../test/client.ts";
import type { TestDatabase } from "../../../test/database.ts";
import { ADMIN_KEY, type MillraceOptions, startMillrace, type TestMillrace } from "../../../test/millrace.ts";
import { until } from "../../../test/until.ts";
import { endOf, type PlanReply, plan } from "../harvest.fixture.ts";

export interface Asked {
  method: string;
  /** Below the base URL. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: string;
  /** The client has closed the connection before the answer. */
  isGivenUp(): boolean;
}

export interface Said {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is instead, as XML. */
  xml?: string;
}

export type Script = (request: Asked) => Said | Promise<Said>;

export interface ScriptedServer {
  origin: string;
  host: string;
  /** Answers requests below `/name`. */
  on(name: string, script: Script): void;
  /** What was asked below `/name`. */
  asked(name: string): readonly Asked[];
  close(): Promise<void>;
}

async function respond(response: ServerResponse, asked: Asked, script: Script | undefined): Promise<void> {
  const { status = 200, headers, body = {}, xml }: Said = (await script?.(asked)) ?? { status: 404 };
  response.writeHead(status, { "content-type": xml === undefined ? "application/json" : "text/xml", ...headers });
  response.end(xml ?? JSON.stringify(body));
}

export async function startScripted(): Promise<ScriptedServer> {
  const scripts = new Map<string, { script: Script; asked: Asked[] }>();
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const url = new URL(request.url ?? "/", "http://x");
      const [, name = "", ...rest] = url.pathname.split("/");
      const found = scripts.get(name);
      let isGivenUp = false;
      response.on("close", () => {
        isGivenUp = !response.writableEnded;
      });
      const asked: Asked = {
        method: request.method ?? "",
        path: `/${rest.join("/")}`,
        query: url.searchParams,
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
        isGivenUp: () => isGivenUp,
      };
      found?.asked.push(asked);
      void respond(response, asked, found?.script);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    origin: `http://${host}`,
    on: (name, script) => void scripts.set(name, { script, asked: scripts.get(name)?.asked ?? [] }),
    asked: (name) => scripts.get(name)?.asked ?? [],
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

type Sections = Record<string, unknown>;

/** Days of records with a total, ten a page. `change` is merged into it, section by section; undefined removes a section. */
export function definitionOf(
  source: string,
  change: Sections = {},
  more: Sections = {},
): Sections & { source: string } {
  const endpoint: Sections = {
    path: "/items",
    default: true,
    http: { query: { from: "${window.from}", to: "${window.to}", offset: "${page.offset}", size: "${page.size}" } },
    pagination: { type: "OFFSET", pageSize: 10 },
    window: {
      supportsUpdatedSince: true,
      watermarkKey: "updated",
      granularity: "P1D",
      format: "yyyy-MM-dd",
      align: "day",
      minWindow: "P1D",
      maxWindow: "P1D",
    },
    response: { itemsPath: "$.items", idPath: "$.id", updatedAtPath: "$.updated", totalPath: "$.total" },
    rateLimit: { keys: [source], refillRatePerSec: 5_000, providerRatePerSec: 5_000, burstCapacity: 100 },
    retry: { baseMs: 1, capMs: 5, maxAttempts: 3 },
  };
  for (const [section, fields] of Object.entries(change)) {
    const isSection = typeof fields === "object" && fields !== null && !Array.isArray(fields);
    if (fields === undefined) delete endpoint[section];
    else endpoint[section] = isSection ? withoutUndefined({ ...(endpoint[section] as object), ...fields }) : fields;
  }
  return { source, name: source, baseUrl: "https://api.example.org", endpoints: { items: endpoint }, ...more };
}

function withoutUndefined(section: object): object {
  return Object.fromEntries(Object.entries(section).filter(([, value]) => value !== undefined));
}

export interface TestItem {
  id: string;
  updated: string;
  [field: string]: unknown;
}

/** `count` items of a day, at different seconds. */
export function itemsOf(count: number, day = "2026-08-01"): TestItem[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${day}-${String(index).padStart(5, "0")}`,
    updated: new Date(Date.parse(day) + index * 1_000).toISOString(),
  }));
}

/** A correct source of these items: the window by `from` and `to`, pages by `offset` and `size`. */
export function correct(items: readonly TestItem[]): Script {
  return ({ query }) => {
    const [from, to] = [query.get("from") ?? "", query.get("to") ?? "9"];
    const found = items.filter(({ updated }) => updated >= from && updated < to);
    const offset = Number(query.get("offset") ?? 0);
    return { body: { total: found.length, items: found.slice(offset, offset + Number(query.get("size") ?? 10)) } };
  };
}

export interface ScriptedHarvests {
  api: Api;
  server: ScriptedServer;
  millrace: TestMillrace;
  /** Applies a definition under a name of its own; answers the name. */
  source(script: Script, change?: Sections, more?: Sections): Promise<string>;
  /** Applies another definition of the source. */
  apply(source: string, change?: Sections, more?: Sections): Promise<void>;
  /** The same with further endpoints. */
  applyEndpoints(source: string, change: Sections, endpoints: Sections): Promise<void>;
  /** Plans the days from 1 August 2026 on, and answers the plan when it has ended. */
  harvest(source: string, days?: number): Promise<PlanReply>;
  plan(source: string, days?: number): Promise<string>;
  slices(planId: string): Promise<SliceSeen[]>;
  runs(planId: string): Promise<{ status: string; error: string | null; attempt: number }[]>;
  keys(source: string): Promise<string[]>;
  /** How many tasks the worker runs. */
  inFlight(): Promise<number>;
  /** Makes the waiting tasks of a plan due now. */
  makeDue(planId: string): Promise<void>;
  /** The first task of the plan, when it has this status and waits. */
  waits(planId: string): Promise<{ reason: string; seconds: number }>;
}

export interface SliceSeen {
  status: string;
  reason: string | null;
  generation: number;
  batches: number;
  received: number;
  expected: number | null;
  day: string;
}

let sources = 0;

/** Call it at the top of a test file, after `useDatabase`. */
export function useScripted(
  database: TestDatabase,
  env: Record<string, string> = {},
  options: Omit<MillraceOptions, "env"> = {},
): ScriptedHarvests {
  const harvests = {} as ScriptedHarvests;
  beforeAll(async () => {
    const server = await startScripted();
    const millrace = await startMillrace(database, {
      ...options,
      env: {
        MILLRACE_ROLES: "api,scheduler,worker",
        MILLRACE_SECRET_KEY: "0".repeat(64),
        ...env,
        MILLRACE_HARVEST_ALLOW_PRIVATE: [server.host, env["MILLRACE_HARVEST_ALLOW_PRIVATE"] ?? []].flat().join(","),
      },
    });
    Object.assign(harvests, { server, millrace, api: millrace.api });
  });
  afterAll(async () => {
    await harvests.millrace.app.stop();
    await harvests.server.close();
  });

  async function apply(source: string, change: Sections = {}, more: Sections = {}): Promise<void> {
    await applyScripted(harvests, definitionOf(source, change, more));
  }
  const planned = async (source: string, days = 1) =>
    (await plan(harvests.api, { source, window: { from: "2026-08-01", to: dayAfter(days) } })).planId;
  return Object.assign(harvests, {
    apply,
    async applyEndpoints(source: string, change: Sections, endpoints: Sections) {
      const definition = definitionOf(source, change);
      await applyScripted(harvests, {
        ...definition,
        endpoints: { ...(definition["endpoints"] as object), ...endpoints },
      } as { source: string });
    },
    async source(script: Script, change: Sections = {}, more: Sections = {}) {
      sources += 1;
      const name = `scripted-${sources}`;
      harvests.server.on(name, script);
      await apply(name, change, more);
      return name;
    },
    plan: planned,
    harvest: async (source: string, days?: number) => endOf(harvests.api, await planned(source, days)),
    slices: (planId: string) =>
      database.query<SliceSeen>(
        `select status_code as status, reason, generation, batches, received::int, expected::int,
                to_char(window_from at time zone 'UTC', 'YYYY-MM-DD') as day
         from harvest.ing_plan_slice where plan_id = $1 order by window_from, slice_id`,
        [planId],
      ),
    runs: (planId: string) =>
      database.query<{ status: string; error: string | null; attempt: number }>(
        `select r.status_code as status, r.error, r.attempt_no as attempt
         from harvest.ing_task_run r join harvest.ing_task t using (task_id) where t.plan_id = $1 order by run_id`,
        [planId],
      ),
    keys: async (source: string) =>
      (
        await database.query<{ key: string }>(
          `select item_key as key from harvest.record r join harvest.reg_prov_endpoint_def e using (endpoint_id)
           where e.provenance_code = $1 order by 1`,
          [source],
        )
      ).map(({ key }) => key),
    inFlight: async () => {
      const headers = { authorization: `Bearer ${ADMIN_KEY}` };
      const text = await (await fetch(`${harvests.millrace.url}/metrics`, { headers })).text();
      return Number(/^patra_ingest_executor_concurrency (\d+)/m.exec(text)?.[1]);
    },
    makeDue: async (planId: string) => {
      await database.query(
        "update harvest.ing_task set scheduled_at = now() where plan_id = $1 and status_code = 'QUEUED'",
        [planId],
      );
      await database.query("select pg_notify('millrace_wake', 'test harvest.tasks')");
    },
    waits: (planId: string) =>
      until(async () => {
        const [row] = await database.query<{ reason: string; seconds: number }>(
          `select wait_reason as reason, extract(epoch from scheduled_at - now())::float8 as seconds
           from harvest.ing_task where plan_id = $1 and status_code = 'QUEUED' and wait_reason is not null`,
          [planId],
        );
        return row;
      }, "a task that waits"),
  });
}

/** The day that is so many days after 1 August 2026. */
function dayAfter(days: number): string {
  return new Date(Date.UTC(2026, 7, 1 + days)).toISOString().slice(0, 10);
}

/** Points the definition at its part of the server. */
export async function applyScripted(
  { api, server }: Pick<ScriptedHarvests, "api" | "server">,
  definition: { source: string },
): Promise<void> {
  const { source } = definition;
  const baseUrl = encodeURIComponent(`${server.origin}/${source}`);
  const answer = await api.put(`/api/v1/harvest/registry/sources/${source}?baseUrl=${baseUrl}`, definition);
  if (answer.status >= 300) throw new Error(`${source} was refused: ${JSON.stringify(answer.body)}`);
}
