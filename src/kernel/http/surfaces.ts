/** The routes that are open to everyone: health, metrics and the front page. */
import { Type } from "typebox";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { MetricsRegistry } from "../telemetry/metrics.ts";
import { type FrontPage, frontPage } from "./front-page.ts";
import type { Http } from "./server.ts";

const PING = statement("kernel.ping", "select 1");

export function publicSurfaces(http: Http, deps: { db: Db; metrics: MetricsRegistry; page: FrontPage }): void {
  const open = { config: { scope: "public" } as const };
  const Alive = Type.Object({ status: Type.String() });

  http.get(
    "/healthz",
    { ...open, schema: { tags: ["server"], summary: "Whether the process lives", response: { 200: Alive } } },
    async () => ({
      status: "alive",
    }),
  );
  http.get(
    "/readyz",
    {
      ...open,
      schema: { tags: ["server"], summary: "Whether it can serve", response: { 200: Alive } },
    },
    async () => {
      await deps.db.rows(PING);
      return { status: "ready" };
    },
  );
  http.get(
    "/metrics",
    {
      ...open,
      schema: {
        tags: ["server"],
        summary: "Metrics in the Prometheus text format",
        response: { 200: { content: { "text/plain": { schema: Type.String() } } } },
      },
    },
    async (_request, reply) => reply.type(deps.metrics.contentType).send(await deps.metrics.render()),
  );
  http.get("/", { ...open, schema: { hide: true } }, async (_request, reply) =>
    reply
      .type("text/html; charset=utf-8")
      .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")
      .send(frontPage(deps.page)),
  );
}
