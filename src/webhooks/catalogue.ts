/**
 * The settings, errors, metrics, hints and tags that webhooks adds to the catalogues of Millrace. It loads no package, because the
 * CLI reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { trueOrFalse } from "../kernel/config/kinds.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Hints } from "../kernel/hints/hints.ts";
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
    SUBSCRIPTION_EXISTS: {
      status: 409,
      sentence:
        "Subscription {id} has this KPI, callback and team already, with another {fields}. Change it: PATCH /api/v1/kpi/subscriptions/{id}.",
    },
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
  hints: {
    subscription: {
      scope: "kpi:read",
      id: "`id`",
      help: "It was created, changed or deleted, or its key rotated; `*` also when an endpoint was disabled.",
    },
    delivery: {
      scope: "kpi:read",
      id: "`id`",
      help: "It was created, claimed or sent, or is to be sent again; `*` also when old ones were deleted.",
    },
  },
  tags: {
    webhooks: "Subscriptions and deliveries",
  },
} as const satisfies Catalogue;

export const webhooksError = errorsOf(CATALOGUE.errors);
export type WebhooksHints = Hints<typeof CATALOGUE.hints>;
export type WebhooksMetrics = Metrics<typeof CATALOGUE.metrics>;
