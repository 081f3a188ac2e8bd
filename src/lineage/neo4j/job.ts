/**
 * The rebuild of the graph in Neo4j as a background job, since it takes longer than a request may: one at a time, in the process
 * that was asked, with its progress. A restart ends it, and it has to be started again.
 */

import type { Ids } from "../../kernel/ids.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import { lineageError } from "../catalogue.ts";
import type { Projection } from "./index.ts";

/** RUNNING -> SUCCESS or FAILED. */
export const REBUILD_STATUSES = ["RUNNING", "SUCCESS", "FAILED"] as const;

export interface Rebuild {
  id: string;
  status: (typeof REBUILD_STATUSES)[number];
  /** The only tenant that it is about; null for all. */
  tenantId: string | null;
  startedAt: Date;
  endedAt: Date | null;
  /** The one at work, or the last one. */
  currentTenantId: string | null;
  tenants: number;
  /** Of all tenants together. */
  deleted: number;
  nodes: number;
  edges: number;
  error: string | null;
}

export interface ProjectionJob {
  /** Throws if one is running. */
  start(tenantId: string | undefined): Rebuild;
  /** The one that is running, or the last one that this process has begun. */
  last(): Rebuild | null;
}

export interface ProjectionJobDeps {
  projection: Pick<Projection, "rebuild">;
  clock: Clock;
  ids: Ids;
  log: ServiceLog;
}

const ERROR_LENGTH_MAX = 2_000;

export function createProjectionJob({ projection, clock, ids, log }: ProjectionJobDeps): ProjectionJob {
  let last: Rebuild | null = null;

  async function run(job: Rebuild): Promise<void> {
    // Of a tenant each report has everything so far, so the last one of each is what counts.
    const before = { deleted: 0, nodes: 0, edges: 0 };
    try {
      await projection.rebuild(job.tenantId ?? undefined, (tenantId, soFar) => {
        if (job.currentTenantId !== tenantId) {
          Object.assign(before, { deleted: job.deleted, nodes: job.nodes, edges: job.edges });
          job.currentTenantId = tenantId;
          job.tenants += 1;
        }
        job.deleted = before.deleted + soFar.deleted;
        job.nodes = before.nodes + soFar.nodes;
        job.edges = before.edges + soFar.edges;
      });
      job.status = "SUCCESS";
      log.info({ rebuild: job.id, nodes: job.nodes, edges: job.edges }, "the graph in Neo4j was rebuilt");
    } catch (err) {
      job.status = "FAILED";
      job.error = messageOf(err).slice(0, ERROR_LENGTH_MAX).toWellFormed();
      log.error({ err, rebuild: job.id }, "the graph in Neo4j could not be rebuilt");
    } finally {
      job.endedAt = new Date(clock.now());
    }
  }

  return {
    start(tenantId) {
      if (last?.status === "RUNNING") {
        throw lineageError("REBUILD_RUNNING", { rebuildId: last.id, startedAt: last.startedAt.toISOString() });
      }
      last = {
        id: ids.uuid(),
        status: "RUNNING",
        tenantId: tenantId ?? null,
        startedAt: new Date(clock.now()),
        endedAt: null,
        currentTenantId: null,
        tenants: 0,
        deleted: 0,
        nodes: 0,
        edges: 0,
        error: null,
      };
      void run(last);
      return last;
    },
    last: () => last,
  };
}
