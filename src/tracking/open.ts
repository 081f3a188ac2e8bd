/** Opens tracking in a process: routes, the reclaimer, checks and long polls. */
import { under } from "../kernel/http/server.ts";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import { createRetention } from "../kernel/work/retention.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { deletionRoutes } from "./deletion-routes.ts";
import { trackingChecks } from "./doctor.ts";
import { createGrid } from "./grid.ts";
import { gridRoutes } from "./grid-routes.ts";
import { createLongPoll } from "./long-poll.ts";
import { trackingOverview } from "./overview.ts";
import { trackingRoutes } from "./routes.ts";
import { TrackingSettings } from "./settings.ts";
import { deletesFiles } from "./store/deletion.ts";
import { createStuck } from "./stuck.ts";
import { stuckRoutes } from "./stuck-routes.ts";
import { type Completion, createTracking } from "./tracking.ts";
import { createReclaimer } from "./worker.ts";

export { TrackingSettings as section };

/** A file may have thousands of shards. */
const FILES_AT_ONCE = 50;

export interface TrackingNeeds {
  arrivals: { completion: Completion };
}

export async function open(
  context: ModuleContext<typeof CATALOGUE, TrackingSettings>,
  { arrivals }: TrackingNeeds,
): Promise<Opened> {
  const { db, wake, section } = context;
  const tracking = createTracking({ ...context, settings: section, completion: arrivals.completion });
  const longPoll = createLongPoll({ tracking, wake });
  return {
    api: {},
    checks: trackingChecks,
    overview: trackingOverview,
    services: {
      scheduler: [
        createReclaimer(tracking, context),
        createRetention({
          ...context,
          name: "tracking.retention",
          deleteBatch: deletesFiles(section.keepDays),
          batchMax: FILES_AT_ONCE,
        }),
      ],
    },
    routes: (http) =>
      under(http, "/api/v1/pipeline", (api) => {
        trackingRoutes(api, { db, tracking, longPoll });
        deletionRoutes(api, context);
        gridRoutes(api, createGrid(db));
        stuckRoutes(api, createStuck(context));
      }),
    endWaits: () => void longPoll.stop(),
    async drain() {
      await longPoll.stop();
      await tracking.drain();
    },
  };
}
