/** Opens tracking in a process: routes, the reclaimer, checks and long polls. */
import { under } from "../kernel/http/server.ts";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import type { CATALOGUE } from "./catalogue.ts";
import { trackingChecks } from "./doctor.ts";
import { createLongPoll } from "./long-poll.ts";
import { trackingRoutes } from "./routes.ts";
import { TrackingSettings } from "./settings.ts";
import { type Completion, createTracking } from "./tracking.ts";
import { createReclaimer } from "./worker.ts";

export { TrackingSettings as section };

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
    services: { scheduler: [createReclaimer(tracking, context)] },
    routes: (http) => under(http, "/api/v1/pipeline", (api) => trackingRoutes(api, { db, tracking, longPoll })),
    endWaits: () => void longPoll.stop(),
    async drain() {
      await longPoll.stop();
      await tracking.drain();
    },
  };
}
