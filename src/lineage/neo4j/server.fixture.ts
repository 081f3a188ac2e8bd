/** A server with the routes of the projection alone, into a graph in memory whose statements a test can hold up or fail. */
import type { TestDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import type { Http } from "../../kernel/http/server.ts";
import { systemIds } from "../../kernel/ids.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { createTenants } from "../tenants/tenants.ts";
import { openMemoryGraph, watched } from "./graph.fixture.ts";
import { createProjection } from "./index.ts";
import { projectionRoutes } from "./routes.ts";

export interface ProjectionServer extends TestHttp {
  /** Called before each statement. */
  before: (cypher: string) => Promise<void>;
}

export async function startProjectionServer(database: TestDatabase): Promise<ProjectionServer> {
  const { db } = database;
  const { driver } = openMemoryGraph();
  const held: Pick<ProjectionServer, "before"> = { before: async () => {} };
  const projection = createProjection({
    db,
    log: silentLog,
    driver: watched(driver, (cypher) => held.before(cypher)),
    settings: { batchRows: 2 },
  });
  const wake = createWake();
  const tenants = createTenants({
    db,
    wake,
    hints: noHints,
    clock: systemClock,
    settings: { createTenants: false, clockToleranceSeconds: 0 },
  });
  const http = await startHttp({
    db,
    routes: (server) =>
      void server.register(
        async (scope) =>
          projectionRoutes(scope as Http, { db, clock: systemClock, ids: systemIds, tenants, projection }),
        { prefix: "/api/v1/lineage" },
      ),
  });
  return Object.assign(held, http);
}
