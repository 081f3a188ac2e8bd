/** Sources without a registry, and a planner with a clock that tests set. */

import { afterEach, beforeEach } from "vitest";
import type { TestDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import type { Actor } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { systemIds } from "../../kernel/ids.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import { createMetrics } from "../../kernel/telemetry/metrics.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import type { OutboxEvent } from "../../kernel/work/outbox.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { CATALOGUE, type HarvestMetrics, harvestError } from "../catalogue.ts";
import type { Definition, ParamValues } from "../definition/definition.ts";
import type { EndpointSpec, Snapshot, WindowSpec } from "../spec/snapshot.ts";
import { createPlanner, type Planner } from "./planner.ts";
import type { KnownSource, Sources } from "./request.ts";
import { createSettle, type Settle } from "./settle.ts";

export const actor: Actor = {
  caller: { name: "ada", keyId: null, scopes: [], tenantId: null } as unknown as Actor["caller"],
  address: "127.0.0.1",
  requestId: "r1",
};

/** Days in UTC, which are closed an hour after their end. */
const WINDOW: WindowSpec = {
  supportsUpdatedSince: true,
  watermarkKey: "updated",
  granularityMs: DAY_MS,
  format: "yyyy-MM-dd",
  timezone: "UTC",
  safetyLagMs: HOUR_MS,
  align: "day",
  minWindowMs: DAY_MS,
  maxWindowMs: DAY_MS,
  monotone: false,
  order: "ascending",
  tolerance: 0,
  boundaryPolicy: "[from,to)",
};

export interface SourceOptions {
  window?: Partial<WindowSpec> | null;
  queuedTasksMax?: number;
  concurrency?: number;
  landing?: EndpointSpec["landing"];
  auth?: EndpointSpec["auth"];
  /** The definition does not compile. */
  problems?: { table: string; field: string; reason: string }[];
}

export interface TestPlanner {
  planner: Planner;
  settle: Settle;
  sources: Sources;
  events: OutboxEvent[];
  hints: string[];
  log: ReturnType<typeof recordingLog>;
  metrics: HarvestMetrics;
  /** What `/metrics` answers. */
  rendered(): Promise<string>;
  clock: { now(): number };
  /** Sets the clock. */
  at(time: string): void;
  addSource(name: string, options?: SourceOptions): Promise<void>;
  /** Another process of the same sources. */
  open(db: Db): Planner;
}

/** Call it at the top of a test file, after `useDatabase`. After each test the tables are empty. */
export function usePlanner(database: TestDatabase): TestPlanner {
  const planner = {} as TestPlanner;
  const known = new Map<string, KnownSource & { options: SourceOptions }>();
  let nowMs = 0;

  const sources: Sources = {
    async get(name) {
      const source = known.get(name);
      if (!source) throw harvestError("SOURCE_NOT_FOUND", { source: name }, { hint: "" });
      return source;
    },
    async compile({ source }, endpoint, operation, { params = {} }) {
      const options = known.get(source)?.options ?? {};
      const { problems } = options;
      if (problems)
        throw harvestError("DEFINITION_INVALID", { source, problems }, { reason: problems[0]?.reason ?? "" });
      const snapshot = snapshotOf(source, endpoint, params, options);
      return {
        snapshot: { ...snapshot, operation },
        specFingerprint: fingerprint(snapshot),
        exprProtoHash: fingerprint([source, endpoint, params]),
        origins: {},
        warnings: [],
      };
    },
  };

  function open(db: Db): Planner {
    const wake = { ...createWake(), hint: (topic: string) => void planner.hints.push(topic) };
    const outbox = {
      consume: () => {},
      relays: () => [],
      emit: async (_: unknown, events: readonly OutboxEvent[]) => void planner.events.push(...events),
    };
    const { clock, log, metrics } = planner;
    const landing = { wantCancelled: async () => {}, wantEnded: async () => {} };
    const deps = { wake, hints: noHints, ids: systemIds, clock, outbox, metrics, log, landing };
    planner.settle = createSettle(deps);
    return createPlanner({
      ...deps,
      db,
      sources,
      settle: planner.settle,
    });
  }

  beforeEach(() => {
    known.clear();
    const registry = createMetrics();
    const metrics = registry.define(CATALOGUE.metrics);
    Object.assign(planner, { sources, events: [], hints: [], log: recordingLog(), clock: { now: () => nowMs } });
    Object.assign(planner, { metrics, rendered: () => registry.render() });
    Object.assign(planner, {
      at: (time: string) => {
        nowMs = Date.parse(time);
      },
      open,
      addSource: async (name: string, options: SourceOptions = {}) => {
        await database.query(
          `insert into harvest.reg_provenance (provenance_code, name, base_url, updated_by) values ($1, $1, '', '')
           on conflict do nothing`,
          [name],
        );
        const ids = await database.query<{ endpoint_id: number; endpoint_name: string }>(
          `insert into harvest.reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, http_method, path_template)
           select $1, unnest(array['works', 'detail']), 'SEARCH', 'GET', ''
           on conflict (provenance_code, endpoint_name) do update set removed_at = null returning endpoint_id, endpoint_name`,
          [name],
        );
        known.set(name, {
          source: name,
          definition: definitionOf(name),
          endpointIds: new Map(ids.map(({ endpoint_id, endpoint_name }) => [endpoint_name, endpoint_id])),
          options,
        });
      },
      planner: open(database.db),
    });
    planner.at("2026-08-20T12:00:00Z");
  });
  afterEach(async () => {
    await database.query(
      `truncate harvest.ing_schedule_instance, harvest.ing_plan, harvest.ing_plan_slice, harvest.ing_task, harvest.ing_task_run,
         harvest.ing_cursor, harvest.ing_schedule, harvest.ing_partition, harvest.landing, harvest.ing_task_run_batch cascade`,
    );
  });
  return planner;
}

function definitionOf(source: string): Definition {
  const endpoint = { method: "GET", path: "/", requiresAuth: false } as const;
  return {
    source,
    name: source,
    baseUrl: "http://localhost",
    endpoints: {
      works: { ...endpoint, role: "SEARCH", default: true },
      detail: { ...endpoint, role: "DETAIL", default: false },
    },
  };
}

function snapshotOf(source: string, endpoint: string, params: ParamValues, options: SourceOptions): Snapshot {
  const { window = {}, queuedTasksMax = 10_000, concurrency = 8, landing, auth = { type: "NONE" } } = options;
  // What no plan looks at is left out.
  const spec = {
    http: { baseUrl: "http://localhost" },
    auth,
    pagination: { type: "OFFSET", pageSize: 100 },
    params: [
      { name: "q", location: "QUERY", required: false },
      { name: "mailto", location: "QUERY", required: false, selects: false },
    ],
    budget: { maxRequests: 1_000, maxDurationSec: 900, errorShareMax: 1, queuedTasksMax, concurrency },
    ...(window === null ? {} : { window: { ...WINDOW, ...window } }),
    ...(landing ? { landing } : {}),
  } as unknown as EndpointSpec;
  return {
    schemaVersion: 1,
    compilerVersion: "test",
    provenanceCode: source,
    endpointName: endpoint,
    operation: "HARVEST",
    spec,
    params,
  };
}
