/**
 * The Neo4j projection: a copy of the graph in Postgres, fed by the outbox. While the server is down or slow, changes wait in the
 * outbox and ingest goes on. A change that the server refuses as invalid is recorded as a gap of its tenant, whose graph there
 * is incomplete until it is rebuilt.
 */
import type { Db } from "../../kernel/data/db.ts";
import { storableText } from "../../kernel/data/storable.ts";
import { OperatorError } from "../../kernel/errors.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { OutboxConsumer } from "../../kernel/work/outbox.ts";
import { backlogOf, discardDead, type OutboxBacklog } from "../../kernel/work/outbox-backlog.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import { CONSUMER, createConsumer } from "./consumer.ts";
import type { GraphDriver } from "./driver.ts";
import { type OnProgress, type Rebuilt, rebuildTenant } from "./rebuild.ts";
import { prepareSchema } from "./schema.ts";
import type { Neo4jSettings } from "./settings.ts";
import { databaseTime, deleteGap, type Gap, listGaps, noteGap } from "./store/gaps.ts";
import { tenantIds } from "./store/projection.ts";
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

/** How far the graph in Neo4j is behind. Known to Postgres, whether Neo4j answers or not. */
export interface MirrorState {
  backlog: OutboxBacklog;
  /** Tenants that need a rebuild, and why. */
  gaps: Gap[];
}

export async function mirrorState(db: Db): Promise<MirrorState> {
  const [backlog, gaps] = await Promise.all([backlogOf(db, CONSUMER), listGaps(db)]);
  return { backlog, gaps };
}

const ERROR_LENGTH_MAX = 2_000;

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

  async function refused(tenantId: string, err: unknown): Promise<void> {
    const error = storableText(messageOf(err), ERROR_LENGTH_MAX);
    if (!(await noteGap(db, tenantId, error))) return;
    log.warn({ err, tenantId }, "Neo4j refuses a change of the graph; the tenant needs a rebuild there");
  }

  return {
    consumer: createConsumer({ writer, batchRows, prepared: prepare, refused }),
    prepare,
    async rebuild(tenantId, onProgress) {
      const all = await tenantIds(db);
      if (tenantId !== undefined && !all.includes(tenantId)) {
        throw new OperatorError(`There is no tenant ${tenantId}. GET /api/v1/lineage/tenants lists them.`);
      }
      await prepare();
      const rebuilt = new Map<string, Rebuilt>();
      for (const id of tenantId === undefined ? all : [tenantId]) {
        const begunAt = await databaseTime(db);
        rebuilt.set(id, await rebuildTenant(writer, id, onProgress));
        // What was refused since it began may be missing again.
        await deleteGap(db, id, begunAt);
        await discardDead(db, { consumer: CONSUMER, payload: { tenantId: id }, before: begunAt });
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
