/** Async tasks as a process has them, for tests: on the test's database, with a service of models, and loops that start when asked. */

import { createHash } from "node:crypto";
import { afterEach, beforeEach } from "vitest";
import type { TestDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { until } from "../../../test/until.ts";
import { systemIds } from "../../kernel/ids.ts";
import { createOutbound } from "../../kernel/net/outbound.ts";
import { createMetrics } from "../../kernel/telemetry/metrics.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { CATALOGUE } from "../catalogue.ts";
import type { Attributes } from "../graph/facts.ts";
import { type AssetName, columnName, keyOf, ownName, tableName } from "../graph/names.ts";
import { createTasks, type TasksDeps } from "./index.ts";
import type { TenantModel } from "./model.ts";
import { DIMENSION, type ModelServer, startModelServer } from "./providers/model-server.fixture.ts";
import type { TasksSettings } from "./settings.ts";
import type { TaskStatus } from "./states.ts";

export const actor = {
  caller: { name: "test", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "127.0.0.1",
  requestId: "test",
};
export const BUILTIN: TenantModel = {
  embedding: { provider: "builtin", model: "hash-v1", dimension: DIMENSION },
  summary: { provider: "builtin", model: "rules-v1" },
};
export const KEY = "a-credential-of-the-test";

export const SETTINGS: TasksSettings = {
  batchSize: 64,
  batches: 4,
  perTenant: 2,
  claimSeconds: 20,
  timeoutSeconds: 30,
  keepDays: 30,
  credentials: [],
};

export interface Asset {
  id: string;
  name: AssetName;
  attributes: Attributes;
}

export type TestTasks = ReturnType<typeof openTasks>;

function openTasks(database: TestDatabase, given: Partial<TasksDeps>) {
  const { db } = database;
  const log = recordingLog();
  const wake = createWake();
  const outbound = given.outbound ?? createOutbound({ allowPrivate: true });
  const registry = createMetrics();
  const metrics = registry.define(CATALOGUE.metrics);
  /** What the graph was told of, transaction by transaction. */
  const told: { tenantId: string; nodeIds: readonly string[] }[] = [];
  const tasks = createTasks({
    db,
    wake,
    hints: noHints,
    outbound,
    metrics,
    log,
    onRun: () => {},
    clock: systemClock,
    ids: systemIds,
    settings: SETTINGS,
    env: { MODEL_KEY: KEY },
    changed: (_, tenantId, nodeIds) => {
      told.push({ tenantId, nodeIds });
      return Promise.resolve();
    },
    ...given,
  });
  const [worker, requeue, retention] = tasks.services;
  return {
    ...tasks,
    registry,
    worker,
    requeue,
    retention,
    wake,
    log,
    metrics,
    told,
    async stop() {
      await Promise.all(tasks.services.map((service) => service.stop()));
      await outbound.close();
    },
  };
}

export interface TaskRow {
  id: string;
  tenant_id: string;
  task_type: string;
  resource_id: string;
  status: TaskStatus;
  retry_count: number;
  last_error: string | null;
  next_run_at: Date;
  claim_token: string | null;
}

export interface TestTasksFile {
  /** Set anew for each test. */
  models: ModelServer;
  open(options?: Partial<TasksDeps>): TestTasks;
  /** A model behind the service, with a credential where the settings allow it. */
  served(fields?: { summary?: boolean; credentialRef?: string }): TenantModel;
  tenant(id: string, model: TenantModel | null): Promise<{ id: string; code: string; model: TenantModel | null }>;
  asset(tenantId: string, name: AssetName, attributes?: Attributes): Promise<Asset>;
  /** Columns `c1`, `c2` and so on of one table. */
  columns(tenantId: string, count: number): Promise<Asset[]>;
  /** Gives an asset other attributes, as an event would. */
  change(tenantId: string, asset: Asset, attributes: Attributes): Promise<Asset>;
  rows(tenantId?: string): Promise<TaskRow[]>;
  /** Waits until no task is waiting or running. */
  ended(): Promise<TaskRow[]>;
  /** What waits for its time is due now. */
  due(): Promise<unknown>;
}

/** Call at the top of a test file, after `useDatabase`. */
export function useTasks(database: TestDatabase): TestTasksFile {
  const opened: TestTasks[] = [];
  const file: TestTasksFile = {
    models: undefined as unknown as ModelServer,
    open(options = {}) {
      const process = openTasks(database, options);
      opened.push(process);
      return process;
    },
    served({ summary = false, credentialRef } = {}) {
      const service = {
        provider: "openai",
        endpoint: file.models.endpoint,
        ...(credentialRef ? { credentialRef } : {}),
      } as const;
      return {
        embedding: { ...service, model: "embed-small", dimension: DIMENSION },
        ...(summary ? { summary: { ...service, model: "chat-small" } } : {}),
      };
    },
    async tenant(id, model) {
      const code = `tenant-${id}`;
      await database.query(
        "insert into lineage.tenant (id, code, name, state, model) values ($1, $2, $2, 'READY', $3)",
        [id, code, model],
      );
      return { id, code, model };
    },
    async asset(tenantId, name, attributes = {}) {
      const [row] = await database.query<{ id: string }>(
        `insert into lineage.node (tenant_id, kind, key, path, name, attributes) values ($1, $2, $3, $4, $5, $6) returning id`,
        [tenantId, name.kind, keyOf(name), name.path, ownName(name), attributes],
      );
      return { id: row?.id ?? "", name, attributes };
    },
    async columns(tenantId, count) {
      const table = tableName("gravitino", "lake", "sales", "orders");
      const names = Array.from({ length: count }, (_, n) => columnName(table, `c${n + 1}`));
      const rows = await database.query<{ id: string }>(
        `insert into lineage.node (tenant_id, kind, key, path, name)
         select $1, 'COLUMN', k, string_to_array(p, '|'), n
         from unnest($2::uuid[], $3::text[], $4::text[]) as u(k, p, n) returning id`,
        [tenantId, names.map(keyOf), names.map(({ path }) => path.join("|")), names.map(ownName)],
      );
      return names.map((name, index) => ({ id: rows[index]?.id ?? "", name, attributes: {} }));
    },
    async change(tenantId, asset, attributes) {
      await database.query("update lineage.node set attributes = $3 where tenant_id = $1 and id = $2", [
        tenantId,
        asset.id,
        attributes,
      ]);
      return { ...asset, attributes };
    },
    rows: (tenantId) =>
      database.query("select * from lineage.ol_async_task where $1::bigint is null or tenant_id = $1 order by id", [
        tenantId ?? null,
      ]),
    ended: () =>
      until(async () => {
        const rows = await file.rows();
        return rows.every(({ status }) => status !== "PENDING" && status !== "RUNNING") && rows;
      }, "the tasks to end"),
    due: () => database.query("update lineage.ol_async_task set next_run_at = now() where status = 'FAILED'"),
  };
  beforeEach(async () => {
    // Quicker than to truncate, for the few rows of a test.
    for (const table of ["ol_async_task", "ol_async_batch", "node", "tenant"]) {
      await database.query(`delete from lineage.${table}`);
    }
    file.models = await startModelServer();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((process) => process.stop()));
    await file.models.stop();
  });
  return file;
}

/** A statement as the graph holds it. */
export function sqlAsset(content: string): [AssetName, Attributes] {
  const hash = createHash("sha256").update(content).digest("hex");
  return [
    { kind: "SQL", path: ["spark", "daily_orders", hash] },
    { content, dialect: "spark" },
  ];
}
