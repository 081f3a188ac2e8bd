/** Wires the parts of the module for one process: its use cases, the outbox consumer and the services. */

import type { Db } from "../kernel/data/db.ts";
import type { Ids } from "../kernel/ids.ts";
import type { InUse } from "../kernel/in-use.ts";
import type { Outbound } from "../kernel/net/outbound.ts";
import type { SecretBox } from "../kernel/secrets/cipher.ts";
import type { Environment } from "../kernel/secrets/environment-references.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { LeaseWorker } from "../kernel/work/lease-worker.ts";
import type { OutboxConsumer } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import type { Session } from "../kernel/work/session.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { createAlerts } from "./alerts.ts";
import type { WebhooksHints, WebhooksMetrics } from "./catalogue.ts";
import { createDeliveries, type Deliveries } from "./deliveries.ts";
import { createConsumer } from "./delivery/consumer.ts";
import { createOutcomes } from "./delivery/outcomes.ts";
import { createRetention } from "./delivery/retention.ts";
import { createWorker } from "./delivery/worker.ts";
import { createSealedSecrets } from "./secrets/sealed-secrets.ts";
import type { WebhooksSettings } from "./settings.ts";
import type { Claimed } from "./store/deliveries.ts";
import { createSubscriptions, type Subscriptions } from "./subscriptions.ts";

export interface Webhooks {
  subscriptions: Subscriptions;
  deliveries: Deliveries;
  /** Register it with the outbox in every process that emits or relays. */
  consumer: OutboxConsumer;
  /** Start them in a process with the role `worker`. */
  services: readonly [worker: LeaseWorker<Claimed>, retention: Service];
}

export interface WebhooksDeps {
  db: Db;
  wake: Wake;
  hints: WebhooksHints;
  session: Session;
  outbound: Outbound;
  secrets: SecretBox;
  metrics: WebhooksMetrics;
  log: ServiceLog;
  inUse?: InUse;
  onRun: OnRun;
  clock: Clock;
  ids: Ids;
  settings: WebhooksSettings;
  /** For `${env.NAME}` in the settings of alerts. */
  env: Environment;
}

export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const { settings, ids } = deps;
  const sealedSecrets = createSealedSecrets(deps.secrets);
  const alerts = createAlerts(settings.alerts, deps.env, ids);
  const timeoutMs = settings.timeoutSeconds * 1_000;
  const outcomes = createOutcomes({ ...deps, alerts });
  return {
    subscriptions: createSubscriptions({ ...deps, sealedSecrets, timeoutMs }),
    deliveries: createDeliveries(deps),
    consumer: createConsumer({ ...deps, sealedSecrets, alerts }),
    services: [createWorker({ ...deps, sealedSecrets, alerts, outcomes, timeoutMs }), createRetention(deps)],
  };
}
