/**
 * Async tasks: embeddings of assets and summaries of statements. They are queued in the transaction of their event and run
 * after it is acknowledged, so their failures never reach ingest.
 */

import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Outbound } from "../../kernel/net/outbound.ts";
import type { Environment } from "../../kernel/secrets/environment-references.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { LeaseWorker } from "../../kernel/work/lease-worker.ts";
import type { OnRun, Service, ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { LineageHints, LineageMetrics } from "../catalogue.ts";
import { createTaskActions, type TaskActions } from "./actions.ts";
import { measureBacklog } from "./backlog.ts";
import type { Batch } from "./batch.ts";
import { type ChangedAsset, enqueue, type TaskTenant } from "./enqueue.ts";
import { fingerprintOf, type TenantModel } from "./model.ts";
import { createModels, type Models } from "./models.ts";
import { normalized } from "./providers/hash-embedder.ts";
import { ProviderError } from "./providers/provider.ts";
import { createProviders } from "./providers/providers.ts";
import { createRequeue } from "./requeue.ts";
import { createRetention } from "./retention.ts";
import type { TasksSettings } from "./settings.ts";
import type { Changed } from "./settle.ts";
import { WANTED_BY_EVENT } from "./states.ts";
import { TASKS_TOPIC } from "./topics.ts";
import { createWorker } from "./worker.ts";

export type { ChangedAsset } from "./enqueue.ts";

export interface Tasks {
  /** Queues what the change makes necessary for this tenant's model; returns how many. Cheap when the tenant has no model. */
  enqueue(tx: Tx, tenant: TaskTenant, changed: readonly ChangedAsset[]): Promise<number>;
  /** The vector of what someone looks for. Undefined where the tenant has no model, or it does not answer at the moment. */
  embedQuery(
    tenant: { id: string; model: TenantModel | null },
    text: string,
    signal?: AbortSignal,
  ): Promise<{ fingerprint: string; vector: number[] } | undefined>;
  models: Models;
  actions: TaskActions;
  /** Start them in a process with the role `worker`. */
  services: readonly [worker: LeaseWorker<Batch>, requeue: Service, retention: Service];
}

export interface TasksDeps {
  db: Db;
  wake: Wake;
  hints: LineageHints;
  outbound: Outbound;
  metrics: LineageMetrics;
  log: ServiceLog;
  onRun: OnRun;
  clock: Clock;
  ids: Ids;
  settings: TasksSettings;
  /** Where the credentials of models are. */
  env: Environment;
  /** Called with the assets that get a new embedding or summary, in the transaction that writes it. */
  changed: Changed;
}

/** How long tasks are gathered before the worker is woken: a batch that is full costs no more calls than one that is not. */
const GATHER_MS = 50;

export function createTasks(deps: TasksDeps): Tasks {
  const { wake, hints, settings, log } = deps;
  const timeoutMs = settings.timeoutSeconds * 1_000;
  const providers = createProviders({ ...deps, timeoutMs, credentials: settings.credentials });
  let gathering: NodeJS.Timeout | undefined;

  function push(): void {
    gathering ??= setTimeout(() => {
      gathering = undefined;
      wake.hint(TASKS_TOPIC);
    }, GATHER_MS).unref();
  }

  measureBacklog(deps);
  return {
    async enqueue(tx, tenant, changed) {
      const queued = await enqueue(tx, tenant, changed, WANTED_BY_EVENT);
      if (queued > 0) {
        tx.afterCommit(push);
        hints.changed(tx, "lineage-task", "*", { tenantId: tenant.id });
      }
      return queued;
    },

    async embedQuery({ id, model }, text, signal = new AbortController().signal) {
      if (!model?.embedding) return undefined;
      try {
        const [vector] = await providers.embedder(model.embedding).embed([text], signal);
        if (vector instanceof ProviderError) throw vector;
        return vector && { fingerprint: fingerprintOf(model.embedding), vector: normalized(vector) };
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        log.warn({ tenantId: id, error: error.message }, "a search goes by words alone, since the model failed");
        return undefined;
      }
    },

    models: createModels({ ...deps, providers }),
    actions: createTaskActions(deps),
    services: [createWorker({ ...deps, providers }), createRequeue({ ...deps, push }), createRetention(deps)],
  };
}
