/** The door of tracking: files and shards on their way through the pipeline's stages (docs/architecture.md tells more). */
export { trackingChecks } from "./doctor.ts";
export { createLongPoll } from "./long-poll.ts";
export { trackingRoutes } from "./routes.ts";
export { TrackingSettings } from "./settings.ts";
export { createTracking, type Tracking } from "./tracking.ts";
export { createReclaimer } from "./worker.ts";
