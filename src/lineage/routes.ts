/** Registers the routes of the module: ingest on the paths that clients know, everything else under `/api/v1/lineage`. */

import type { Db } from "../kernel/data/db.ts";
import type { Http } from "../kernel/http/server.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { LineageMetrics } from "./catalogue.ts";
import { ingestRoutes } from "./ingest/routes.ts";
import type { Lineage } from "./lineage.ts";
import { projectionRoutes } from "./neo4j/routes.ts";
import { readRoutes } from "./reads/routes.ts";
import type { LineageSettings } from "./settings.ts";
import { taskRoutes } from "./tasks/routes.ts";
import { tenantRoutes } from "./tenants/routes.ts";

export interface LineageRoutesDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  metrics: LineageMetrics;
  lineage: Lineage;
  settings: LineageSettings;
}

export async function lineageRoutes(http: Http, deps: LineageRoutesDeps): Promise<void> {
  const { db, clock, ids, lineage } = deps;
  // In a scope of its own: it reads bodies as text, since events are kept word for word.
  await http.register(async (scope) => ingestRoutes(scope as Http, { ...deps, ...lineage }), { prefix: "/api" });
  await http.register(
    async (scope) => {
      const api = scope as Http;
      tenantRoutes(api, { db, ...lineage });
      taskRoutes(api, lineage);
      projectionRoutes(api, { db, clock, ids, ...lineage });
      readRoutes(api, { db, clock, semantic: lineage.semantic });
    },
    { prefix: "/api/v1/lineage" },
  );
}
