/** The webhooks of a process, for tests: on the test's database, with a receiver, and with services that the test starts. */

import { randomBytes, randomUUID } from "node:crypto";
import { afterEach, beforeEach } from "vitest";
import type { TestDatabase } from "../../test/database.ts";
import { recordingLog } from "../../test/log.ts";
import { noHints } from "../../test/no-hints.ts";
import { until } from "../../test/until.ts";
import { systemIds } from "../kernel/ids.ts";
import { createOutbound } from "../kernel/net/outbound.ts";
import { createSecretBox } from "../kernel/secrets/cipher.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { openPulse } from "../kernel/work/pulse.ts";
import { openSession } from "../kernel/work/session.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import type { KpiUpdated } from "./events.ts";
import { type Receiver, startReceiver } from "./receiver.fixture.ts";
import type { WebhooksSettings } from "./settings.ts";
import type { DeliveryRow } from "./store/delivery-reads.ts";
import type { NewSubscription } from "./subscriptions.ts";
import { createWebhooks, type WebhooksDeps } from "./webhooks.ts";

const secrets = createSecretBox(randomBytes(32));
export const actor = {
  caller: { name: "test", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "127.0.0.1",
  requestId: "test",
};
const SETTINGS: WebhooksSettings = {
  slots: 500,
  timeoutSeconds: 15,
  drainSeconds: 0,
  rotationHours: 24,
  disableAfterDays: 5,
  keepDays: 30,
  alerts: [],
};

export interface ProcessOptions extends Partial<WebhooksDeps> {
  allowPrivate?: boolean;
  settings?: WebhooksSettings;
}

export type TestProcess = Awaited<ReturnType<typeof openProcess>>;

async function openProcess(database: TestDatabase, { allowPrivate = true, ...given }: ProcessOptions) {
  const { db } = database;
  const log = recordingLog();
  const pulse = await openPulse({ db, log });
  const session = await openSession({ pulse, log, version: "0", roles: [] });
  const outbound = given.outbound ?? createOutbound({ allowPrivate });
  const webhooks = createWebhooks({
    db,
    log,
    session,
    outbound,
    secrets,
    wake: createWake(),
    hints: noHints,
    metrics: createMetrics().define(CATALOGUE.metrics),
    onRun: () => {},
    clock: systemClock,
    ids: systemIds,
    settings: SETTINGS,
    env: {},
    ...given,
  });
  const [sender, retention] = webhooks.services;
  const { reclaimer } = sender;
  if (!reclaimer) throw new Error("the worker does not reclaim");
  return {
    ...webhooks,
    sender,
    reclaimer,
    retention,
    session,
    log,
    /** Delivers an event to the consumer, as the relay does; answers its id. */
    async consume(topic: string, payload: object, eventId: string = randomUUID()): Promise<string> {
      await webhooks.consumer.deliver({ eventId, topic, payload }, new AbortController().signal);
      return eventId;
    },
    async stop() {
      await Promise.all(webhooks.services.map((service) => service.stop()));
      await session.close();
      await pulse.stop();
      await outbound.close();
    },
  };
}

export interface TestWebhooks {
  /** A new one for each test. */
  receiver: Receiver;
  open(options?: ProcessOptions): Promise<TestProcess>;
  settings(fields: Partial<WebhooksSettings>): WebhooksSettings;
  /** All deliveries, oldest first. */
  rows(): Promise<DeliveryRow[]>;
  /** Waits until there are `count` deliveries and all have ended. */
  ended(count: number): Promise<DeliveryRow[]>;
}

/** Call it at the top of a test file, after `useDatabase`. */
export function useWebhooks(database: TestDatabase): TestWebhooks {
  const opened: TestProcess[] = [];
  const test: TestWebhooks = {
    receiver: undefined as unknown as Receiver,
    async open(options = {}) {
      const process = await openProcess(database, options);
      opened.push(process);
      return process;
    },
    settings: (fields) => ({ ...SETTINGS, ...fields }),
    rows: () => database.query("select * from webhooks.delivery order by created_at, id"),
    ended: (count) =>
      until(async () => {
        const rows = await test.rows();
        return rows.length === count && rows.every(({ ended_at }) => ended_at !== null) && rows;
      }, `${count} deliveries to end`),
  };
  beforeEach(async () => {
    await database.query(
      "truncate webhooks.delivery, webhooks.metrics_webhook_subscription, webhooks.endpoint, webhooks.delivery_attempt, kernel.session",
    );
    test.receiver = await startReceiver();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((process) => process.stop()));
    await test.receiver.stop();
  });
  return test;
}

export function subscription(callbackUrl: string, fields: Partial<NewSubscription> = {}): NewSubscription {
  return { kpiId: "KD1001", callbackUrl, retryNum: 3, status: "1", teamName: "", userId: "", ...fields };
}

export function update(fields: Partial<KpiUpdated> = {}): KpiUpdated {
  return {
    modelId: "MODEL-01",
    opTime: "20251219",
    affectedKpiIds: ["KD1001", "KD1002"],
    generation: 1,
    rerun: false,
    causedBy: { table: "DW_FACT_ORDER_D", opTime: "20251219" },
    at: "2025-12-19T08:00:00.000Z",
    ...fields,
  };
}
