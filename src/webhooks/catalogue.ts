/**
 * The settings, errors, metrics and tags that webhooks adds to the catalogues of Millrace. It loads no package, because the
 * CLI reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { trueOrFalse } from "../kernel/config/kinds.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

export const CATALOGUE = {
  name: "webhooks",
  settings: {
    allowPrivate: {
      env: "MILLRACE_WEBHOOKS_ALLOW_PRIVATE",
      flag: "webhooks-allow-private",
      kind: trueOrFalse,
      default: "false",
      description:
        "Whether webhooks and chain nodes of type `http` may call loopback, private and other addresses that are not public.",
    },
  },
  errors: {
    SUBSCRIPTION_NOT_FOUND: { status: 404, sentence: "There is no subscription {id}." },
    CALLBACK_URL_INVALID: { status: 400, sentence: "The callback URL cannot be used: {reason}." },
    SECRET_INVALID: { status: 400, sentence: "The secret cannot be used: {reason}. {hint}" },
    DELIVERY_NOT_FOUND: { status: 404, sentence: "There is no delivery {id}." },
    DELIVERY_WRONG_STATE: { status: 409, sentence: "Cannot send delivery {id} again: {because}." },
  },
  metrics: {
    millrace_webhooks_deliveries_total: {
      kind: "counter",
      help: "Deliveries by outcome: delivered, retry_later, give_up, cancel, or lost if it ended after its lease.",
      labels: ["event", "outcome"],
    },
    millrace_webhooks_attempt_seconds: {
      kind: "histogram",
      help: "Time of a delivery attempt, from the DNS lookup to the end of the answer.",
      labels: ["event", "outcome"],
    },
    millrace_webhooks_in_flight: {
      kind: "gauge",
      help: "Deliveries in flight in this process.",
      labels: [],
    },
  },
  tags: {
    webhooks: "Subscriptions and deliveries",
  },
} as const satisfies Catalogue;

export const webhooksError = errorsOf(CATALOGUE.errors);
export type WebhooksMetrics = Metrics<typeof CATALOGUE.metrics>;
