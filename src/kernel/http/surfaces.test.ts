/** The public routes: health and metrics with and without a database, and the front page. */
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { startPostgresProxy } from "../../../test/postgres-proxy.ts";
import { until } from "../../../test/until.ts";
import { type Db, openDb } from "../data/db.ts";
import type { MetricTable } from "../telemetry/metric-table.ts";
import { frontPage } from "./front-page.ts";
import { frontPageRoutes, publicSurfaces } from "./surfaces.ts";

const database = useDatabase();
const page = {
  version: "1.2.3",
  roles: ["api", "worker"],
  database: "a <Postgres> & more",
  startedAt: new Date("2025-01-01T00:00:00Z"),
};
const METRICS = {
  calls_total: { kind: "counter", help: "Calls.", labels: [] },
  call_seconds: { kind: "histogram", help: "Time of a call.", labels: [] },
  connections: { kind: "gauge", help: "Connections.", labels: ["state"] },
} as const satisfies MetricTable;
let http: TestHttp;

function start(db: Db, isStopping = () => false): Promise<TestHttp> {
  return startHttp({
    db,
    isStopping,
    routes(routes, { metrics }) {
      metrics.define(METRICS).gauge("connections", () => [{ labels: { state: "idle" }, value: db.stats().idle }]);
      publicSurfaces(routes, { db, metrics });
      frontPageRoutes(routes, page);
    },
  });
}

beforeAll(async () => {
  http = await start(database.db);
  return () => http.stop();
});

describe("health", () => {
  test("is alive and ready", async () => {
    expect(await http.send("/healthz")).toMatchObject({ status: 200, body: { status: "alive" } });
    expect(await http.send("/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  });

  test("is alive but not ready while the database is unavailable, and ready again afterwards", async () => {
    const proxy = await startPostgresProxy(database);
    const db = openDb({ connection: { connectionString: proxy.url } });
    onTestFinished(() => db.close());
    const cut = await start(db);
    onTestFinished(cut.stop);
    expect((await cut.send("/readyz")).status).toBe(200);

    await proxy.cut();
    const notReady = await until(async () => {
      const answer = await cut.send("/readyz");
      return answer.status === 503 && answer;
    }, "the loss to be noticed");
    expect(notReady.body).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    expect(notReady.headers.get("retry-after")).toBe("2");
    for (const path of ["/healthz", "/metrics", "/"]) {
      const stale = { headers: { authorization: `Bearer mlr_${"A".repeat(43)}` } };
      expect((await cut.send(path, stale)).status).toBe(200);
    }

    await proxy.restore();
    await until(async () => (await cut.send("/readyz")).status === 200, "the return to be noticed");
  });

  test("is not ready when the database does not answer", async () => {
    const db = openDb({ connection: database.connection, poolSize: 1 });
    onTestFinished(() => db.close());
    const stuck = await start({ ...db, rows: () => new Promise(() => {}) });
    onTestFinished(stuck.stop);
    const answers = await Promise.all([stuck.send("/readyz"), stuck.send("/readyz")]);
    expect(answers).toMatchObject([{ status: 503 }, { status: 503, body: { code: "DATABASE_UNAVAILABLE" } }]);
  });

  test("queries the database once for many callers, and again a second later", async () => {
    let asked = 0;
    const rows = ((...args: Parameters<Db["rows"]>) => {
      asked += 1;
      return database.db.rows(...args);
    }) as Db["rows"];
    const counted = await start({ ...database.db, rows });
    onTestFinished(counted.stop);
    const answers = await Promise.all(Array.from({ length: 50 }, () => counted.send("/readyz")));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(asked).toBe(1);
    await until(async () => (await counted.send("/readyz")).status === 200 && asked > 1, "the next question");
  });

  test("is SHUTTING_DOWN at once, whatever was cached", async () => {
    let stopping = false;
    const stops = await start(database.db, () => stopping);
    onTestFinished(stops.stop);
    expect((await stops.send("/readyz")).status).toBe(200);
    stopping = true;
    expect(await stops.send("/readyz")).toMatchObject({ status: 503, body: { code: "SHUTTING_DOWN" } });
  });
});

test("metrics are made once for many callers", async () => {
  let made = 0;
  const counted = await startHttp({
    db: database.db,
    routes: (routes, { metrics }) => {
      const render = () => {
        made += 1;
        return metrics.render();
      };
      publicSurfaces(routes, { db: database.db, metrics: { ...metrics, render } });
    },
  });
  onTestFinished(counted.stop);
  const begunAt = performance.now();
  await Promise.all(Array.from({ length: 50 }, () => counted.send("/metrics")));
  const seconds = (performance.now() - begunAt) / 1_000; // More than one on a busy machine.
  expect(made).toBeLessThanOrEqual(1 + Math.floor(seconds));
});

test("metrics come in the Prometheus text format under all their declared names", async () => {
  const response = await fetch(`${http.url}/metrics`);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const text = await response.text();
  for (const [name, { kind, help }] of Object.entries(METRICS)) {
    expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`);
  }
});

describe("the front page", () => {
  test("shows version, roles and database, with markup escaped", async () => {
    const response = await fetch(`${http.url}/`);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = await response.text();
    for (const shown of ["1.2.3", "api, worker", "2025-01-01T00:00:00.000Z", "a &lt;Postgres&gt; &amp; more"]) {
      expect(html).toContain(`<dd>${shown}</dd>`);
    }
  });

  test("links to the API only where it is", () => {
    expect(frontPage(page)).toContain('href="/docs"');
    const ofWorker = frontPage({ ...page, roles: ["worker"] });
    expect(ofWorker).not.toMatch(/href="\/(docs|openapi\.json)"/);
    expect(ofWorker).toContain("a process with the role <code>api</code>");
  });

  test("escapes an ampersand once", () => {
    expect(frontPage({ ...page, database: "&lt;script>" })).toContain("<dd>&amp;lt;script&gt;</dd>");
  });
});
