/** Opens chains in a process. */
import type { Engines } from "../engines/index.ts";
import { under } from "../kernel/http/server.ts";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import type { Outbound } from "../kernel/net/outbound.ts";
import { CATALOGUE } from "./catalogue.ts";
import { type Chains, createChains } from "./chains.ts";
import { chainRoutes } from "./definitions/routes.ts";
import { chainsChecks } from "./doctor.ts";
import { chainsOverview } from "./overview.ts";
import { runRoutes } from "./runs/routes.ts";
import { createRunStreams } from "./runs/stream.ts";
import { poolRoutes, scheduleRoutes } from "./schedules/routes.ts";
import { ChainsSettings } from "./settings.ts";
import { createTables, type Tables } from "./tables.ts";
import { timingRoutes } from "./timing/routes.ts";
import { httpType } from "./types/http.ts";
import { shell } from "./types/shell.ts";
import { sqlType } from "./types/sql.ts";
import { loadUserTypes } from "./types/user-types.ts";

export { ChainsSettings as section };

export interface ChainsNeeds {
  engines: Engines;
  webhooks: { outbound: Outbound };
}

export interface ChainsApi extends Pick<Chains, "addTypes" | "arrived" | "called" | "history" | "onRunsEnded"> {
  /** Connects the module that records the arrival of tables. */
  connectTables(tables: Tables): void;
}

const { env: ALLOW_SHELL } = CATALOGUE.settings.allowShell;

export async function open(
  context: ModuleContext<typeof CATALOGUE, ChainsSettings>,
  { engines, webhooks: { outbound } }: ChainsNeeds,
): Promise<Opened<ChainsApi>> {
  const { db, wake, gates, clock, section, settings, configDir } = context;
  const userTypes = await loadUserTypes(section.nodeTypes, configDir);
  const tables = createTables();
  const chains = createChains({
    ...context,
    ...tables,
    settings: section,
    types: [
      httpType({ outbound, gates, clock }),
      sqlType(engines),
      ...(settings.allowShell ? [shell] : []),
      ...userTypes,
    ],
    disabledTypes: settings.allowShell ? {} : { shell: `it is disabled; ${ALLOW_SHELL}=true enables it` },
  });
  const streams = createRunStreams({ db, wake });
  return {
    api: { ...chains, connectTables: tables.connect },
    checks: chainsChecks,
    overview: chainsOverview,
    services: {
      scheduler: [chains.timers, chains.retention],
      worker: [{ name: "nodes in flight", ...chains.worker }],
    },
    routes: (http) =>
      under(http, "/api/v1", (api) => {
        chainRoutes(api, { chains });
        scheduleRoutes(api, { chains });
        poolRoutes(api, chains);
        runRoutes(api, { chains, streams });
        timingRoutes(api, chains.timing);
      }),
    endWaits: streams.stop,
  };
}
