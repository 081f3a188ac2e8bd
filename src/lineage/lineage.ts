/** Puts the parts of the module together for one process: who may send, what is taken and applied, what is computed of it. */

import type { Db, Tx } from "../kernel/data/db.ts";
import { guarded } from "../kernel/data/savepoint.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Outbound } from "../kernel/net/outbound.ts";
import type { Environment } from "../kernel/secrets/environment-references.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { type Admission, createAdmission } from "./admission.ts";
import type { GraphChange } from "./apply.ts";
import type { LineageMetrics } from "./catalogue.ts";
import { createIngest, type Ingest } from "./ingest.ts";
import { mayPass } from "./intake.ts";
import { measureMirror } from "./neo4j/doctor.ts";
import { createProjection, GRAPH_TOPIC, type GraphChanged, openDriver, type Projection } from "./neo4j/index.ts";
import type { Semantic } from "./reads/search.ts";
import type { JudgedRename } from "./reported-renames.ts";
import { createReread } from "./reread.ts";
import { createRetention } from "./retention.ts";
import type { LineageSettings } from "./settings.ts";
import { readModel, requeueAll } from "./store/models.ts";
import { nearest } from "./store/nearest.ts";
import { ensureMonths } from "./store/retention.ts";
import { createTasks, type Tasks } from "./tasks/index.ts";
import { createTenantRate, type TenantRate } from "./tenant-rate.ts";
import { createTenants, type Tenants } from "./tenants.ts";

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
  const { db, wake, log, clock, ids, settings } = deps;
  const tenants = createTenants({ db, wake, clock, settings });
  const projection = settings.neo4j && (await openProjection(deps, settings.neo4j));

  /** Those who mirror the graph read the current state of what is named here. */
  async function tellMirrors(tx: Tx, changed: GraphChanged): Promise<void> {
    if (!projection || changed.nodes.length + changed.edges.length === 0) return;
    await deps.outbox.emit(tx, [{ eventId: ids.uuid(), topic: GRAPH_TOPIC, payload: changed }]);
  }

  const tasks = createTasks({
    ...deps,
    settings: settings.tasks,
    changed: (tx, tenantId, nodes) => tellMirrors(tx, { tenantId, nodes: [...nodes], edges: [] }),
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
    await tellMirrors(tx, { tenantId, nodes: change.nodes, edges: change.edges });
    if (change.assets.length === 0) return;
    // With the transaction's own connection: whoever holds one and asks for another may wait for ever.
    const tenant = await readModel(tx, tenantId);
    if (!tenant?.model) return;
    try {
      await guarded(tx, (own) => tasks.enqueue(own, { id: tenantId, ...tenant }, change.assets));
    } catch (err) {
      if (mayPass(err)) throw err;
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
  return async (tenantId, text, limit) => {
    const tenant = await tenants.find(tenantId);
    const query = tenant && (await tasks.embedQuery(tenant, text));
    if (!query) return undefined;
    const found = await nearest(db, tenantId, query.vector, query.fingerprint, limit);
    return found.map(({ node_id, similarity }) => ({ nodeId: node_id, score: similarity }));
  };
}
