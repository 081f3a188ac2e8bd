/** The door of webhooks: who wants to hear of KPIs, and the deliveries that tell them (docs/webhooks.md tells more). */
export { webhookChecks } from "./doctor.ts";
export { webhookRoutes } from "./routes.ts";
export { WebhooksSettings } from "./settings.ts";
export { createWebhooks, type Webhooks } from "./webhooks.ts";
