/** Opens webhooks in a process: routes, services, checks and the outbox consumer. */
import { under } from "../kernel/http/server.ts";
import type { ModuleContext, Opened } from "../kernel/module.ts";
import { createOutbound, type Outbound } from "../kernel/net/outbound.ts";
import { CATALOGUE } from "./catalogue.ts";
import { webhookChecks } from "./doctor.ts";
import { webhooksOverview } from "./overview.ts";
import { webhookRoutes } from "./routes.ts";
import { WebhooksSettings } from "./settings.ts";
import type { KpiNames } from "./subscriptions.ts";
import { createWebhooks } from "./webhooks.ts";

export { WebhooksSettings as section };

export interface WebhooksApi {
  /** Calls addresses that users gave, if the settings allow them. */
  outbound: Outbound;
  /** Connects the module that knows the indicators: subscriptions to others are refused. */
  connectKpis(kpis: KpiNames): void;
}

export async function open(context: ModuleContext<typeof CATALOGUE, WebhooksSettings>): Promise<Opened<WebhooksApi>> {
  const { section, box, outbox, onClose } = context;
  const { allowPrivate } = context.settings;
  const outbound = createOutbound({ allowPrivate, setting: CATALOGUE.settings.allowPrivate.env });
  onClose("outgoing requests", outbound.close);
  const webhooks = createWebhooks({ ...context, outbound, secrets: box, settings: section });
  outbox.consume(webhooks.consumer);
  return {
    api: { outbound, connectKpis: webhooks.subscriptions.connectKpis },
    checks: webhookChecks,
    overview: webhooksOverview,
    services: { worker: webhooks.services },
    routes: (http) => under(http, "/api/v1", (api) => webhookRoutes(api, { webhooks })),
  };
}
