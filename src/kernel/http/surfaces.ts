/**
 * The public routes: health, metrics and the front page. They have no rate limit, so an answer that is expensive to make is
 * made at most once a second, for all callers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Type } from "typebox";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { kernelError } from "../errors.ts";
import type { MetricsRegistry } from "../telemetry/metrics.ts";
import { FRONT_PAGE_POLICY } from "./browser.ts";
import { cachedFor } from "./cached-for.ts";
import { type FrontPage, frontPage } from "./front-page.ts";
import type { Http } from "./server.ts";

const PING = statement("kernel.ping", "select 1");
const KEEP_MS = 1_000;
/** A frozen connection would never answer. */
const PING_TIMEOUT_MS = 5_000;
const RETRY_AFTER_SECONDS = 2;

// A load balancer may add a parameter against caches, and a link to the page may carry one.
const OPEN = { config: { scope: "public", openQuery: true } } as const;

export function publicSurfaces(http: Http, deps: { db: Db; metrics: MetricsRegistry }): void {
  const ready = cachedFor(KEEP_MS, () => ping(deps.db));
  const metrics = cachedFor(KEEP_MS, () => deps.metrics.render());
  const Alive = Type.Object({ status: Type.String() });

  http.get(
    "/healthz",
    { ...OPEN, schema: { tags: ["server"], summary: "Whether the process is alive", response: { 200: Alive } } },
    async () => ({
      status: "alive",
    }),
  );
  http.get(
    "/readyz",
    {
      ...OPEN,
      schema: { tags: ["server"], summary: "Whether the process is ready", response: { 200: Alive } },
    },
    async () => {
      await ready();
      return { status: "ready" };
    },
  );
  http.get(
    "/metrics",
    {
      ...OPEN,
      schema: {
        tags: ["server"],
        summary: "Metrics in the Prometheus text format",
        response: { 200: { content: { "text/plain": { schema: Type.String() } } } },
      },
    },
    async (_request, reply) => reply.type(deps.metrics.contentType).send(await metrics()),
  );
}

/** Shown instead of the console, also by the links that sign in to it. */
export function frontPageRoutes(http: Http, page: FrontPage): void {
  for (const path of ["/", "/login"]) {
    http.get(path, { ...OPEN, schema: { hide: true } }, async (_request, reply) =>
      reply.type("text/html; charset=utf-8").header("content-security-policy", FRONT_PAGE_POLICY).send(frontPage(page)),
    );
  }
}

async function ping(db: Db): Promise<void> {
  const answered = new AbortController();
  const timedOut = sleep(PING_TIMEOUT_MS, undefined, { signal: answered.signal }).then(() => {
    throw kernelError("DATABASE_UNAVAILABLE", { seconds: RETRY_AFTER_SECONDS });
  });
  try {
    await Promise.race([db.rows(PING), timedOut]);
  } finally {
    answered.abort();
  }
}
