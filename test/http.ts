/** The kernel's HTTP server on a free port, with the routes of the test and no module. */
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { type ConsoleAccess, createConsoleAccess } from "../src/kernel/auth/console-access.ts";
import { createKeys, type Keys } from "../src/kernel/auth/keys.ts";
import type { Db } from "../src/kernel/data/db.ts";
import { createHttp, type Http, type HttpOptions } from "../src/kernel/http/server.ts";
import { KERNEL_METRICS } from "../src/kernel/telemetry/metric-table.ts";
import { createMetrics, type MetricsRegistry } from "../src/kernel/telemetry/metrics.ts";
import { systemClock } from "../src/kernel/time/clock.ts";
import { createWake } from "../src/kernel/work/wake.ts";
import { CATALOGUE } from "../src/modules.ts";
import type { Answer, Json } from "./client.ts";
import { ADMIN_KEY } from "./millrace.ts";
import { noHints } from "./no-hints.ts";

export interface TestHttp {
  port: number;
  url: string;
  keys: Keys;
  metrics: MetricsRegistry;
  /** Its log lines so far, warnings and worse. */
  lines: Json[];
  /** With the admin key unless `headers` has another. A body that is not a string or Buffer is sent as JSON. */
  send(path: string, request?: Sending): Promise<Answer<Json>>;
  stop(): Promise<void>;
}

export interface Sending {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export interface TestHttpOptions extends Partial<Omit<HttpOptions, "log" | "metrics" | "sessions">> {
  db: Db;
  routes: (http: Http, deps: ConsoleAccess & { keys: Keys; metrics: MetricsRegistry }) => void;
  /** After the routes. */
  beforeListening?: (http: Http) => Promise<unknown>;
}

export async function startHttp({ db, routes, beforeListening, ...options }: TestHttpOptions): Promise<TestHttp> {
  const lines: Json[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line) as Json) });
  const wake = createWake();
  const keys = options.keys ?? createKeys({ db, wake, hints: noHints, clock: systemClock, adminKey: ADMIN_KEY });
  const access = createConsoleAccess({ db, wake, clock: systemClock, adminKey: ADMIN_KEY });
  const metrics = createMetrics();
  const http = await createHttp({
    version: "0.0.0",
    roles: ["api"],
    anonymousScopes: [],
    trustedProxies: [],
    bodyLimitBytes: 10_000,
    rateLimitPerMinute: 0,
    isStopping: () => false,
    rev: () => 0n,
    scopes: CATALOGUE.scopes,
    tags: CATALOGUE.tags,
    ...options,
    log,
    metrics: metrics.define(KERNEL_METRICS),
    keys,
    sessions: access.sessions,
  });
  routes(http, { keys, metrics, ...access });
  await beforeListening?.(http);
  await http.listen({ host: "127.0.0.1", port: 0 });
  const { port } = http.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    port,
    url,
    keys,
    metrics,
    lines,
    stop: () => http.close(),
    async send(path, { method, headers, body } = {}) {
      const raw = typeof body === "string" || Buffer.isBuffer(body);
      const response = await fetch(url + path, {
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          authorization: `Bearer ${ADMIN_KEY}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
      return {
        status: response.status,
        headers: response.headers,
        body: isJson ? (JSON.parse(text) as Json) : { text },
      };
    },
  };
}
