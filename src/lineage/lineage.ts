/** Wires the parts of the module for one process: tenants, ingest, tasks, services and the Neo4j projection. */

import type { Db, Tx } from "../kernel/data/db.ts";
import { guarded } from "../kernel/data/savepoint.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Outbound } from "../kernel/net/outbound.ts";
import type { Environment } from "../kernel/secrets/environment-references.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import type { Wake } from "../kernel/work/wake.ts";
import type { LineageHints, LineageMetrics } from "./catalogue.ts";
import type { GraphChange } from "./graph/apply.ts";
import type { JudgedRename } from "./graph/reported-renames.ts";
import { createReread } from "./graph/reread.ts";
import { type Admission, createAdmission } from "./ingest/admission.ts";
import { createIngest, type Ingest } from "./ingest/ingest.ts";
import { isTransient } from "./ingest/intake.ts";
import { measureMirror } from "./neo4j/doctor.ts";
import { createProjection, GRAPH_TOPIC, type GraphChanged, openDriver, type Projection } from "./neo4j/index.ts";
import type { Semantic } from "./reads/search.ts";
import { nearest } from "./reads/store/nearest.ts";
import { createRetention } from "./retention.ts";
import type { LineageSettings } from "./settings.ts";
import { ensureMonths } from "./store/retention.ts";
import { createTasks, type Tasks } from "./tasks/index.ts";
import { readModel, requeueAll } from "./tasks/store/models.ts";
import { createTenantRate, type TenantRate } from "./tenants/rate.ts";
import { createTenants, type Tenants } from "./tenants/tenants.ts";

export interface Lineage {
  tenants: Tenants;
  ingest: Ingest;
  tasks: Tasks;
  admission: Admission;
  rate: TenantRate;
  semantic: Semantic;
  /** Where Neo4j is configured. */
  projection: Projection | undefined;
  /** Start them in a process with the role `worker`. */
  services: Service[];
  /** Makes sure that events have a place before the first one comes. */
  prepare(): Promise<void>;
  close(): Promise<void>;
}

export interface LineageDeps {
  db: Db;
  wake: Wake;
  hints: LineageHints;
  outbound: Outbound;
  outbox: Pick<Outbox, "emit">;
  metrics: LineageMetrics;
  log: ServiceLog;
  onRun: OnRun;
  clock: Clock;
  ids: Ids;
  settings: LineageSettings;
  env: Environment;
}

export async function createLineage(deps: LineageDeps): Promise<Lineage> {
  const { db, wake, hints, log, clock, ids, settings } = deps;
  const tenants = createTenants({ db, wake, hints, clock, settings });
  const projection = settings.neo4j && (await openProjection(deps, settings.neo4j));

  /** Those who mirror the graph read the current state of what is named here. */
  async function notifyMirrors(tx: Tx, changed: GraphChanged): Promise<void> {
    if (!projection || changed.nodes.length + changed.edges.length === 0) return;
    await deps.outbox.emit(tx, [{ eventId: ids.uuid(), topic: GRAPH_TOPIC, payload: changed }]);
  }

  const tasks = createTasks({
    ...deps,
    settings: settings.tasks,
    async changed(tx, tenantId, nodes) {
      hints.changed(tx, "asset", nodes, { tenantId });
      await notifyMirrors(tx, { tenantId, nodes: [...nodes], edges: [] });
    },
  });

  function warnOf(tenantId: string, { name, to, doubt }: JudgedRename): void {
    deps.metrics.count("millrace_lineage_doubted_renames_total", { tenant: tenantId, reason: doubt ?? "" });
    log.warn(
      { tenantId, from: name.path.slice(1), to: to.path.slice(1), reason: doubt },
      "a rename that an engine reported cannot have happened, and was not applied",
    );
  }

  async function onChange(tx: Tx, tenantId: string, change: GraphChange): Promise<void> {
    if (change.doubted.length > 0) tx.afterCommit(() => change.doubted.forEach((rename) => warnOf(tenantId, rename)));
    const ends = change.edges.flatMap(({ src, dst }) => [src, dst]);
    hints.changed(tx, "asset", new Set([...change.nodes, ...ends]), { tenantId });
    await notifyMirrors(tx, { tenantId, nodes: change.nodes, edges: change.edges });
    if (change.assets.length === 0) return;
    // On the transaction's own connection: waiting for a second one while holding the first could deadlock the pool.
    const tenant = await readModel(tx, tenantId);
    if (!tenant?.model) return;
    try {
      await guarded(tx, (own) => tasks.enqueue(own, { id: tenantId, ...tenant }, change.assets));
    } catch (err) {
      if (isTransient(err)) throw err;
      log.error(
        { err, tenantId },
        "tasks could not be queued now, and will be later; the event was taken all the same",
      );
      await requeueAll(tx, tenantId);
    }
  }

  const ingest = createIngest({ ...deps, onChange });

  return {
    tenants,
    ingest,
    tasks,
    admission: createAdmission({ clock }),
    rate: createTenantRate({ clock }),
    semantic: createSemantic({ db, tenants, tasks }),
    projection,
    services: [...tasks.services, createRetention(deps), createReread({ ...deps, onChange })],
    prepare: async () => void (await ensureMonths(db)),
    close: async () => projection?.close(),
  };
}

async function openProjection(deps: LineageDeps, settings: NonNullable<LineageSettings["neo4j"]>): Promise<Projection> {
  const { db, log, env } = deps;
  measureMirror(deps);
  return createProjection({ db, log, settings, driver: await openDriver(settings, env) });
}

function createSemantic({ db, tenants, tasks }: { db: Db; tenants: Tenants; tasks: Tasks }): Semantic {
  return async (tenantId, text, among) => {
    const tenant = await tenants.find(tenantId);
    const query = tenant && (await tasks.embedQuery(tenant, text));
    if (!query) return undefined;
    const found = await nearest(db, tenantId, query.vector, query.fingerprint, among);
    return found.map(({ node_id, similarity }) => ({ nodeId: node_id, score: similarity }));
  };
}
