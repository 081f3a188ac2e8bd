/** What is open to everyone: health and metrics with and without a database, and the front page. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { until } from "../../../test/until.ts";
import { type Db, openDb } from "../data/db.ts";
import type { MetricTable } from "../telemetry/metric-table.ts";
import { frontPage } from "./front-page.ts";
import { publicSurfaces } from "./surfaces.ts";

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

function start(db: Db): Promise<TestHttp> {
  return startHttp({
    db,
    routes(routes, { metrics }) {
      metrics.define(METRICS).gauge("connections", () => [{ labels: { state: "idle" }, value: db.stats().idle }]);
      publicSurfaces(routes, { db, metrics, page });
    },
  });
}

beforeAll(async () => {
  http = await start(database.db);
  return () => http.stop();
});

describe("health", () => {
  test("says alive and ready while all is well", async () => {
    expect(await http.send("/healthz")).toMatchObject({ status: 200, body: { status: "alive" } });
    expect(await http.send("/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  });

  test("says alive but not ready while the database is away, and ready again when it is back", async () => {
    const wire = await cuttableWire();
    const db = openDb({ connection: { connectionString: wire.url } });
    onTestFinished(() => db.close());
    const cut = await start(db);
    onTestFinished(cut.stop);
    expect((await cut.send("/readyz")).status).toBe(200);

    await wire.cut();
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

    await wire.mend();
    expect((await cut.send("/readyz")).status).toBe(200);
  });

  /** A port that leads to the test's Postgres until it is cut. */
  async function cuttableWire(): Promise<{ url: string; cut(): Promise<void>; mend(): Promise<void> }> {
    const target = new URL(database.url);
    const host = target.searchParams.get("host") ?? target.hostname;
    const port = Number(target.port || 5432);
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const far = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on("error", () => {}).on("close", () => sockets.delete(socket));
      }
      near.pipe(far).pipe(near);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address() as { port: number };
    const cut = async () => {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    };
    onTestFinished(cut);
    const url = new URL(target);
    url.searchParams.delete("host");
    url.host = `127.0.0.1:${address.port}`;
    return {
      url: url.href,
      cut,
      async mend() {
        server.listen(address.port, "127.0.0.1");
        await once(server, "listening");
      },
    };
  }
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
  test("says what runs, and nothing on it can be taken for markup", async () => {
    const response = await fetch(`${http.url}/`);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = await response.text();
    for (const shown of ["1.2.3", "api, worker", "2025-01-01T00:00:00.000Z", "a &lt;Postgres&gt; &amp; more"]) {
      expect(html).toContain(`<dd>${shown}</dd>`);
    }
  });

  test("escapes an ampersand once", () => {
    expect(frontPage({ ...page, database: "&lt;script>" })).toContain("<dd>&amp;lt;script&gt;</dd>");
  });
});
