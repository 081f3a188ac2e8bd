/** The announcements of arrivals on the real HTTP server, with a worker that runs the models. */
import { type Arrivals, createArrivals } from "../../src/arrivals/arrivals.ts";
import { CATALOGUE } from "../../src/arrivals/catalogue.ts";
import { openRoutes } from "../../src/arrivals/open-routes.ts";
import { createEngines } from "../../src/engines/engines.ts";
import type { Db } from "../../src/kernel/data/db.ts";
import type { Http } from "../../src/kernel/http/server.ts";
import { createOutbox } from "../../src/kernel/work/outbox.ts";
import { openSession } from "../../src/kernel/work/session.ts";
import { noHints } from "../../test/no-hints.ts";
import { type BenchServer, serveBench } from "../server.ts";

export interface ArrivalsServer extends BenchServer {
  arrivals: Arrivals;
}

export async function serveArrivals(db: Db, addRoutes?: (http: Http) => void): Promise<ArrivalsServer> {
  let made: Arrivals | undefined;
  const server = await serveBench(db, async ({ log, registry, pulse, wake, http }) => {
    const metrics = registry.define(CATALOGUE.metrics);
    const session = await openSession({ pulse, log, version: "bench", roles: ["api", "worker"] });
    session.service.start();
    const engines = createEngines({}, { lakeDir: undefined });
    const settings = {
      slots: 8,
      waitSeconds: 30,
      timeoutSeconds: 60,
      rowsMax: 1_000,
      resultBytesMax: 1_048_576,
      opTimePattern: ".*",
      tableCase: "as-given" as const,
      lostLimit: 5,
      keepDays: 1_095,
      runsKeepDays: 365,
      files: [],
    };
    const arrivals = createArrivals({
      db,
      wake,
      hints: noHints,
      session,
      metrics,
      log,
      onRun: () => {},
      settings,
      engines,
      outbox: createOutbox([], wake),
      chains: NO_CHAINS,
      onArrived: () => {},
    });
    made = arrivals;
    arrivals.worker.start();
    await http.register(async (scope) => openRoutes(scope as Http, { db, arrivals, settings }), {
      prefix: "/api/open/kpi",
    });
    addRoutes?.(http);
    return async () => {
      await arrivals.worker.stop();
      await engines.close();
      await session.close();
    };
  });
  if (!made) throw new Error("the server was made without arrivals");
  return { ...server, arrivals: made };
}

async function noChains(): Promise<never> {
  throw new Error("no model of this benchmark runs a chain");
}

const NO_CHAINS = {
  chains: { existing: noChains, all: noChains },
  start: noChains,
  outcome: noChains,
  underWay: noChains,
  stop: noChains,
  rootOf: noChains,
  onChange: () => {},
  endWait: noChains,
  stillWaiting: noChains,
};
