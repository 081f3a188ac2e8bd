/**
 * The graph in Neo4j, for those who query it there: a projection of the one in Postgres, fed by the outbox. When the server is
 * down or slow, events wait; nobody who sends lineage notices.
 */
import type { Db } from "../../kernel/data/db.ts";
import { OperatorError } from "../../kernel/errors.ts";
import type { OutboxConsumer } from "../../kernel/work/outbox.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import { tenantIds } from "../store/projection.ts";
import { createConsumer } from "./consumer.ts";
import type { GraphDriver } from "./driver.ts";
import { type OnProgress, type Rebuilt, rebuildTenant } from "./rebuild.ts";
import { prepareSchema } from "./schema.ts";
import type { Neo4jSettings } from "./settings.ts";
import { createWriter } from "./writer.ts";

export { GRAPH_TOPIC, type GraphChanged } from "./consumer.ts";
export { openDriver } from "./driver.ts";
export { Neo4jSettings } from "./settings.ts";

export interface ProjectionDeps {
  db: Db;
  log: ServiceLog;
  driver: GraphDriver;
  settings: Pick<Neo4jSettings, "database" | "batchRows">;
}

export interface Projection {
  consumer: OutboxConsumer;
  /** Creates constraints and indexes. The consumer does so by itself before its first write. */
  prepare(): Promise<void>;
  /** Of all tenants if none is named; answers what was done for each. */
  rebuild(tenantId: string | undefined, onProgress: OnProgress): Promise<Map<string, Rebuilt>>;
  /** Which server answers, such as `Neo4j/5.26.12`, or why none does. */
  health(): Promise<{ server: string } | { error: string }>;
  close(): Promise<void>;
}

export function createProjection({ db, log, driver, settings }: ProjectionDeps): Projection {
  const { database, batchRows } = settings;
  const writer = createWriter({ db, driver, settings });
  let preparation: Promise<void> | undefined;

  function prepare(): Promise<void> {
    preparation ??= prepareSchema({ db, driver, log, database }).catch((error: unknown) => {
      preparation = undefined;
      throw error;
    });
    return preparation;
  }

  return {
    consumer: createConsumer({ writer, batchRows, prepared: prepare }),
    prepare,
    async rebuild(tenantId, onProgress) {
      const all = await tenantIds(db);
      if (tenantId !== undefined && !all.includes(tenantId)) {
        throw new OperatorError(`There is no tenant ${tenantId}. GET /api/v1/lineage/tenants lists them.`);
      }
      await prepare();
      const rebuilt = new Map<string, Rebuilt>();
      for (const id of tenantId === undefined ? all : [tenantId]) {
        rebuilt.set(id, await rebuildTenant(writer, id, onProgress));
      }
      return rebuilt;
    },
    async health() {
      try {
        const { agent } = await driver.getServerInfo(database === undefined ? {} : { database });
        return { server: agent ?? "Neo4j" };
      } catch (error) {
        return { error: (error as Error).message };
      }
    },
    close: () => driver.close(),
  };
}
