/** The real HTTP server on a given database, for one admin key: a suite adds the routes that it measures. */
import type { AddressInfo } from "node:net";
import { createConsoleAccess } from "../src/kernel/auth/console-access.ts";
import { createKeys } from "../src/kernel/auth/keys.ts";
import type { Db } from "../src/kernel/data/db.ts";
import { createHttp, type Http } from "../src/kernel/http/server.ts";
import { createLog, type Log } from "../src/kernel/telemetry/log.ts";
import { KERNEL_METRICS } from "../src/kernel/telemetry/metric-table.ts";
import { createMetrics, type MetricsRegistry } from "../src/kernel/telemetry/metrics.ts";
import { systemClock } from "../src/kernel/time/clock.ts";
import { openPulse, type Pulse } from "../src/kernel/work/pulse.ts";
import { createWake, type Wake } from "../src/kernel/work/wake.ts";
import { CATALOGUE } from "../src/modules.ts";
import { noHints } from "../test/no-hints.ts";

export interface BenchParts {
  log: Log;
  registry: MetricsRegistry;
  pulse: Pulse;
  wake: Wake;
  http: Http;
}

export interface BenchServer {
  url: string;
  key: string;
  stop(): Promise<void>;
}

/** `addRoutes` may answer what is to be stopped before the rest. */
export async function serveBench(
  db: Db,
  addRoutes: (parts: BenchParts) => Promise<(() => Promise<void>) | undefined>,
): Promise<BenchServer> {
  const key = "a".repeat(32);
  const log = createLog({ level: "error" });
  const registry = createMetrics();
  const pulse = await openPulse({ db, log });
  const wake = createWake({ pulse, log });
  const http = await createHttp({
    log,
    metrics: registry.define(KERNEL_METRICS),
    keys: createKeys({ db, wake, hints: noHints, clock: systemClock, adminKey: key }),
    sessions: createConsoleAccess({ db, wake, clock: systemClock, adminKey: key }).sessions,
    version: "bench",
    roles: ["api"],
    scopes: CATALOGUE.scopes,
    tags: CATALOGUE.tags,
    anonymousScopes: [],
    trustedProxies: [],
    bodyLimitBytes: 1_048_576,
    rateLimitPerMinute: 1_000_000_000,
    rev: () => 0n,
    isStopping: () => false,
  });
  const stopRoutes = await addRoutes({ log, registry, pulse, wake, http });
  await http.listen({ host: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${(http.server.address() as AddressInfo).port}`,
    key,
    async stop() {
      await http.close();
      await stopRoutes?.();
      await wake.stop();
      await pulse.stop();
    },
  };
}
