/** The real HTTP server with the routes of tracking on a given database, for one admin key. */
import type { AddressInfo } from "node:net";
import { createKeys } from "../../src/kernel/auth/keys.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import type { Db } from "../../src/kernel/db.ts";
import { createHttp, type Http } from "../../src/kernel/http/server.ts";
import { createLog } from "../../src/kernel/telemetry/log.ts";
import { createMetrics } from "../../src/kernel/telemetry/metrics.ts";
import { createWake } from "../../src/kernel/wake.ts";
import { createLongPoll, createTracking, trackingRoutes } from "../../src/tracking/index.ts";
import type { Tracking } from "../../src/tracking/tracking.ts";

export interface TrackingServer {
  url: string;
  key: string;
  tracking: Tracking;
  get(path: string): Promise<unknown>;
  stop(): Promise<void>;
}

export async function serveTracking(db: Db, addRoutes?: (http: Http) => void): Promise<TrackingServer> {
  const key = "a".repeat(32);
  const log = createLog({ level: "error" });
  const metrics = createMetrics();
  const wake = createWake({ db, log });
  await wake.start();
  const http = await createHttp({
    log,
    metrics,
    keys: createKeys({ db, wake, clock: systemClock, adminKey: key }),
    version: "bench",
    anonymousScopes: [],
    bodyLimitBytes: 1_048_576,
    rateLimitPerMinute: 1_000_000_000,
    isStopping: () => false,
  });
  const tracking = createTracking({ db, wake, metrics, settings: { stageTimeoutSeconds: {}, lostLimit: 10 } });
  const longPoll = createLongPoll({ tracking, wake });
  await http.register(async (scope) => trackingRoutes(scope as Http, { db, tracking, longPoll }), {
    prefix: "/api/v1/pipeline",
  });
  addRoutes?.(http);
  await http.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(http.server.address() as AddressInfo).port}`;
  return {
    url,
    key,
    tracking,
    async get(path) {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } });
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
      return response.json();
    },
    async stop() {
      await http.close();
      await wake.stop();
    },
  };
}
