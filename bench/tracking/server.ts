/** The routes of tracking on the real HTTP server. */
import type { Db } from "../../src/kernel/data/db.ts";
import type { Http } from "../../src/kernel/http/server.ts";
import { CATALOGUE } from "../../src/tracking/catalogue.ts";
import { createLongPoll } from "../../src/tracking/long-poll.ts";
import { trackingRoutes } from "../../src/tracking/routes.ts";
import { createTracking, type Tracking } from "../../src/tracking/tracking.ts";
import { noHints } from "../../test/no-hints.ts";
import { type BenchServer, serveBench } from "../server.ts";

export interface TrackingServer extends BenchServer {
  tracking: Tracking;
  get(path: string): Promise<unknown>;
}

export async function serveTracking(db: Db, addRoutes?: (http: Http) => void): Promise<TrackingServer> {
  let made: Tracking | undefined;
  const server = await serveBench(db, async ({ registry, wake, http }) => {
    const metrics = registry.define(CATALOGUE.metrics);
    const tracking = createTracking({
      db,
      wake,
      hints: noHints,
      metrics,
      settings: { stageTimeoutSeconds: {}, keepDays: 365, lostLimit: 10 },
    });
    made = tracking;
    const longPoll = createLongPoll({ tracking, wake });
    await http.register(async (scope) => trackingRoutes(scope as Http, { db, tracking, longPoll }), {
      prefix: "/api/v1/pipeline",
    });
    addRoutes?.(http);
    return undefined;
  });
  if (!made) throw new Error("the server was made without tracking");
  return {
    ...server,
    tracking: made,
    async get(path) {
      const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } });
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
      return response.json();
    },
  };
}
