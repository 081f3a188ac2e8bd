/** The settings under `webhooks` in `millrace.yaml`. */
import { type Static, Type } from "typebox";
import { RETRY_NUM_MAX } from "./delivery/retries.ts";
import { ALERT_EVENTS } from "./events.ts";
import { SECRET_LENGTH_MAX } from "./secrets/secret.ts";

/** Its address and keys may contain `${env.NAME}`, because many people can read a settings file. */
const AlertSettings = Type.Object(
  {
    /** Its name in lists. Unset: the host of the address. */
    name: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9_.:-]+$", maxLength: 64 })),
    url: Type.String({ pattern: "^(https?://|\\$\\{)", maxLength: 2_048, secret: true }),
    /** Unset: all events. */
    events: Type.Optional(Type.Array(Type.Enum(ALERT_EVENTS), { minItems: 1, maxItems: ALERT_EVENTS.length })),
    /** `Type,Key,Value`, as in a subscription. */
    secret: Type.Optional(Type.String({ minLength: 1, maxLength: SECRET_LENGTH_MAX, secret: true })),
    /** `whsec_...`. Unset: alerts go out unsigned. */
    signingKey: Type.Optional(Type.String({ minLength: 1, maxLength: 128, secret: true })),
    retryNum: Type.Integer({ minimum: 0, maximum: RETRY_NUM_MAX, default: 8 }),
  },
  { additionalProperties: false },
);
export type AlertSettings = Static<typeof AlertSettings>;

export const WebhooksSettings = Type.Object(
  {
    /** How many deliveries one process sends at the same time. */
    slots: Type.Integer({ minimum: 1, maximum: 10_000, default: 500 }),
    /** For a whole attempt, from the DNS lookup to the end of the answer. */
    timeoutSeconds: Type.Integer({ minimum: 1, maximum: 120, default: 15 }),
    /** How long a process that shuts down waits for its deliveries before it releases them. */
    drainSeconds: Type.Integer({ minimum: 0, maximum: 600, default: 5 }),
    /** How long the previous signing key still signs after a rotation. */
    rotationHours: Type.Integer({ minimum: 0, maximum: 8_760, default: 24 }),
    /** An endpoint that fails and had no success for this long is disabled. */
    disableAfterDays: Type.Integer({ minimum: 1, maximum: 365, default: 5 }),
    /** How long deliveries that have ended are kept. */
    keepDays: Type.Integer({ minimum: 1, maximum: 3_650, default: 30 }),
    /** Addresses that get failures. */
    alerts: Type.Array(AlertSettings, { maxItems: 20, default: [] }),
  },
  { additionalProperties: false, default: {} },
);
export type WebhooksSettings = Static<typeof WebhooksSettings>;
