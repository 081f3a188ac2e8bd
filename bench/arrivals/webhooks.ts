/** 5,000 deliveries to ten endpoints: how much the others are delayed by one that hangs. */

import { fork } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Db } from "../../src/kernel/data/db.ts";
import { statement } from "../../src/kernel/data/statement.ts";
import { systemIds } from "../../src/kernel/ids.ts";
import { createOutbound } from "../../src/kernel/net/outbound.ts";
import { createSecretBox } from "../../src/kernel/secrets/cipher.ts";
import { createLog } from "../../src/kernel/telemetry/log.ts";
import { createMetrics } from "../../src/kernel/telemetry/metrics.ts";
import { systemClock } from "../../src/kernel/time/clock.ts";
import { openPulse } from "../../src/kernel/work/pulse.ts";
import { openSession } from "../../src/kernel/work/session.ts";
import { createWake } from "../../src/kernel/work/wake.ts";
import { CATALOGUE } from "../../src/webhooks/catalogue.ts";
import { createWebhooks } from "../../src/webhooks/webhooks.ts";
import { noHints } from "../../test/no-hints.ts";
import { atMost, printMarkdown, times, withGoal } from "../chains/report.ts";
import { type Contender, formatNumber, interleave, median } from "../measure.ts";

const DELIVERIES = 5_000;
const ENDPOINTS = 10;
const EVENTS = DELIVERIES / ENDPOINTS;
const ACTOR = {
  caller: { name: "bench", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "",
  requestId: "",
};
const SETTINGS = {
  slots: 500,
  timeoutSeconds: 15,
  drainSeconds: 0,
  rotationHours: 24,
  disableAfterDays: 5,
  keepDays: 30,
  alerts: [],
};

const SUBSCRIPTION = { kpiId: "K", retryNum: 3, status: "1", teamName: "", userId: "" } as const;

const LEFT = statement<{ n: number }>(
  "bench.webhooks.left",
  "select count(*)::int as n from webhooks.delivery where status in ('PENDING', 'SENDING') and callback_url not like '%/hang'",
);
const P95 = statement<{ ms: number }>(
  "bench.webhooks.p95",
  `select percentile_cont(0.95) within group (order by extract(epoch from ended_at - created_at)) * 1000 as ms
   from webhooks.delivery where status = 'DELIVERED'`,
);

export async function compareWebhooks(db: Db, rounds: number): Promise<void> {
  const receiver = await startReceiver();
  const perSecond = new Map<string, number[]>();
  const contender = (name: string, endpoints: readonly string[]): Contender => ({
    name,
    async round() {
      const { p95, seconds } = await deliver(db, endpoints);
      perSecond.set(name, [...(perSecond.get(name) ?? []), DELIVERIES / seconds]);
      return p95;
    },
  });
  const paths = Array.from({ length: ENDPOINTS }, (_, index) => `${receiver.url}/${index}`);
  const alone = contender("all ten answer", paths);
  const beside = contender("one of ten hangs", [...paths.slice(1), `${receiver.url}/hang`]);
  const figures = await interleave([alone, beside], rounds, console.error);
  receiver.stop();
  const of = ({ name }: Contender) => median(figures.get(name) ?? []);
  const ratio = of(beside) / of(alone);
  const row = (one: Contender) => [
    one.name,
    `${formatNumber(of(one))} ms`,
    `${formatNumber(median(perSecond.get(one.name) ?? []))} deliveries/s`,
  ];
  printMarkdown(
    `${DELIVERIES.toLocaleString("en")} deliveries made at once, ${ENDPOINTS} endpoints; p95 of those that answer`,
    ["", "p95 from made to delivered", "", "ratio", "goal"],
    [
      [...row(alone), "", ""],
      [...row(beside), times(ratio), withGoal(ratio, atMost(1.5, "x"))],
    ],
  );
}

async function deliver(db: Db, endpoints: readonly string[]): Promise<{ p95: number; seconds: number }> {
  await db.exclusive((client) => client.query("truncate webhooks.delivery cascade"));
  await db.exclusive((client) =>
    client.query("truncate webhooks.metrics_webhook_subscription, webhooks.endpoint cascade"),
  );
  const log = createLog({ level: "fatal" });
  const pulse = await openPulse({ db, log });
  const wake = createWake({ pulse, log });
  const session = await openSession({ pulse, log, version: "bench", roles: ["worker"] });
  session.service.start();
  const outbound = createOutbound({ allowPrivate: true });
  const webhooks = createWebhooks({
    db,
    wake,
    hints: noHints,
    session,
    outbound,
    secrets: createSecretBox(randomBytes(32)),
    metrics: createMetrics().define(CATALOGUE.metrics),
    log,
    onRun: () => {},
    clock: systemClock,
    ids: systemIds,
    settings: SETTINGS,
    env: {},
  });
  for (const callbackUrl of endpoints) await webhooks.subscriptions.create({ ...SUBSCRIPTION, callbackUrl }, ACTOR);
  const signal = new AbortController().signal;
  const at = new Date().toISOString();
  const payload = {
    modelId: "M",
    opTime: "20250101",
    affectedKpiIds: ["K"],
    generation: 1,
    rerun: false,
    causedBy: null,
    at,
  };
  for (let event = 0; event < EVENTS; event += 1) {
    await webhooks.consumer.deliver({ eventId: randomUUID(), topic: "kpi.updated", payload }, signal);
  }
  // From here on it is the sending that is measured, and not the making.
  await db.exclusive((client) => client.query("update webhooks.delivery set created_at = clock_timestamp()"));
  const started = performance.now();
  for (const service of webhooks.services) service.start();
  for (let left = DELIVERIES; left > 0; left = (await db.rows(LEFT))[0]?.n ?? 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const seconds = (performance.now() - started) / 1000;
  const [p95] = await db.rows(P95);
  await outbound.close();
  for (const service of webhooks.services) await service.stop();
  await session.close();
  await wake.stop();
  await pulse.stop();
  return { p95: p95?.ms ?? Number.NaN, seconds };
}

async function startReceiver(): Promise<{ url: string; stop(): void }> {
  const script = fileURLToPath(new URL("./receiver-process.ts", import.meta.url));
  const child = fork(script, { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  return { url: `http://127.0.0.1:${line.toString().trim()}`, stop: () => child.disconnect() };
}
