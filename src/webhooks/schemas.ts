/** Request and reply bodies of subscriptions and deliveries, with the field names of the KPI library's tables in camel case. */
import { Type } from "typebox";
import { Body, Nullable, Page, PageQuery, ReplyTime, Time } from "../kernel/http/schemas.ts";
import { OP_TIME_PATTERN } from "../kernel/time/op-time.ts";
import { RETRY_NUM_DEFAULT, RETRY_NUM_MAX } from "./delivery/retries.ts";
import { DELIVERY_STATUSES, RECOVERABLE_STATUSES } from "./delivery/states.ts";
import { SECRET_LENGTH_MAX } from "./secrets/secret.ts";
import { PENDING_MAX } from "./store/subscriptions.ts";

/** A path accepts any text: one that is not a valid id is answered like an unknown id. */
export const IdParams = Body({ id: Type.String({ minLength: 1, maxLength: 256 }) });
const plain = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
const KpiId = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]+$",
  examples: ["KD1001"],
  description: "A KPI's id has 1 to 64 characters, not only spaces, and no control characters.",
});
const CallbackUrl = Type.String({ minLength: 1, maxLength: 512, examples: ["https://example.org/hooks/kpi"] });
const Secret = Nullable(
  Type.String({
    minLength: 1,
    maxLength: SECRET_LENGTH_MAX,
    description: "`Query,<name>,<value>`, `Header,<name>,<value>` or `Body,json,{...}`; never shown again.",
    examples: ["Header,Authorization,Bearer xxx"],
  }),
);
const retryNum = { minimum: 0, maximum: RETRY_NUM_MAX };
const STATUSES = ["1", "0", 1, 0] as const;
const status = { description: "`1` is enabled, `0` is not; as text or as a number." };
const Name = (options: object = {}) =>
  Type.String({
    maxLength: 64,
    pattern: plain,
    description: "At most 64 characters, no control characters.",
    ...options,
  });

const createFields = Body({
  kpiId: KpiId,
  callbackUrl: CallbackUrl,
  secret: Type.Optional(Secret),
  // No `default` in the schema: a field that is left out is not compared with a subscription that is there.
  retryNum: Type.Optional(Type.Integer({ ...retryNum, description: `${RETRY_NUM_DEFAULT} if it is left out.` })),
  status: Type.Optional(Type.Enum(STATUSES, { description: `${status.description} Enabled if it is left out.` })),
  teamName: Name({ default: "" }),
  userId: Type.Optional(Name()),
});
/** Without an example the reference page generates one with an invalid secret. */
export const CreateBody = Object.assign(createFields, {
  examples: [
    { kpiId: "KD1001", callbackUrl: "https://example.org/hooks/kpi", secret: "Header,Authorization,Bearer xxx" },
  ],
});
export const ChangeBody = Body({
  kpiId: Type.Optional(KpiId),
  callbackUrl: Type.Optional(CallbackUrl),
  secret: Type.Optional(Secret),
  retryNum: Type.Optional(Type.Integer(retryNum)),
  status: Type.Optional(Type.Enum(STATUSES, status)),
  teamName: Type.Optional(Name()),
  userId: Type.Optional(Name()),
});

const subscription = {
  id: Type.Integer(),
  kpiId: Type.String(),
  callbackUrl: Type.String(),
  secretType: Nullable(Type.String()),
  secretKey: Nullable(Type.String()),
  retryNum: Type.Integer(),
  status: Type.String(),
  teamName: Type.String(),
  userId: Type.String(),
  heldUntil: Nullable(ReplyTime),
  pending: Type.Integer({
    description: `Deliveries that are to be sent, among the first ${PENDING_MAX} of its callback.`,
  }),
  failingSince: Nullable(ReplyTime),
  disabledAt: Nullable(ReplyTime),
  disabledReason: Nullable(Type.String()),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
};
export const SubscriptionReply = Type.Object(subscription);
export const SavedReply = Type.Object({
  ...subscription,
  signingKey: Type.Optional(
    Type.String({ description: "Shown only when the callback is new for the team, and only this once." }),
  ),
});
export const SubscriptionsQuery = Body({
  ...PageQuery,
  kpiId: Type.Optional(Type.String({ maxLength: 64 })),
  callbackUrl: Type.Optional(Type.String({ maxLength: 512 })),
  teamName: Type.Optional(Type.String({ maxLength: 64 })),
  status: Type.Optional(Type.Enum(["", "0", "1"] as const)),
  q: Type.Optional(
    Type.String({ maxLength: 512, description: "Part of the KPI, the callback, the team or the user." }),
  ),
});
export const SubscriptionsReply = Page(SubscriptionReply);

export const RotateReply = Type.Object({
  id: Type.Integer(),
  signingKey: Type.String({ description: "Shown only this once." }),
  previousValidUntil: ReplyTime,
});

const attempt = {
  statusCode: Nullable(Type.Integer()),
  error: Nullable(Type.String()),
  answer: Nullable(Type.String({ description: "The beginning of the receiver's answer." })),
  durationMs: Type.Integer(),
};
export const TestReply = Type.Object({ delivered: Type.Boolean(), ...attempt });

const delivery = {
  id: Type.String({ description: "The `webhook-id` of the request." }),
  event: Type.String(),
  eventId: Type.String(),
  callbackUrl: Nullable(Type.String()),
  alert: Nullable(Type.String({ description: "The name of the alert in the settings, instead of a callback." })),
  subscriptionIds: Type.Array(Type.Integer()),
  modelId: Nullable(Type.String()),
  opTime: Nullable(Type.String()),
  status: Type.Enum(DELIVERY_STATUSES),
  attempts: Type.Integer(),
  retryNum: Type.Integer(),
  nextAttemptAt: Nullable(ReplyTime),
  statusCode: Nullable(Type.Integer()),
  error: Nullable(Type.String()),
  createdAt: ReplyTime,
  endedAt: Nullable(ReplyTime),
  durationMs: Nullable(Type.Integer({ description: "Of the last attempt." })),
  kpiIds: Type.Array(Type.String(), { description: "The first 20 of the payload's `affectedKpiIds`." }),
  endpoint: Type.Object(
    { heldUntil: Nullable(ReplyTime), failingSince: Nullable(ReplyTime), disabledReason: Nullable(Type.String()) },
    { description: "The present state of the receiver: why a delivery waits." },
  ),
};
export const DeliveryReply = Type.Object(delivery);
export const DeliveryDetail = Type.Object({
  ...delivery,
  payload: Type.Unknown({ description: "The event as it is sent, before a Body secret is merged into it." }),
  request: Type.Object(
    { method: Type.String(), url: Nullable(Type.String()), headers: Type.Record(Type.String(), Type.String()) },
    { description: "The last request, without its secrets." },
  ),
  log: Type.Array(Type.Object({ attempt: Type.Integer(), at: ReplyTime, ...attempt }), {
    description: "The last 100 attempts, oldest first.",
  }),
});
const which = {
  callbackUrl: Type.Optional(Type.String({ maxLength: 512 })),
  subscriptionId: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })),
  modelId: Type.Optional(Type.String({ maxLength: 255 })),
  opTime: Type.Optional(
    Type.String({ pattern: OP_TIME_PATTERN, description: "An opTime has 1 to 255 of `A-Z a-z 0-9 _ . : -`." }),
  ),
};
export const DeliveriesQuery = Body({
  ...which,
  status: Type.Optional(Type.Enum(DELIVERY_STATUSES)),
  since: Type.Optional(Time),
  after: Type.Optional(Type.String({ format: "uuid", description: "The `next` of the previous page." })),
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 50 }),
});
export const DeliveriesReply = Type.Object({ items: Type.Array(DeliveryReply), next: Nullable(Type.String()) });

export const RecoverBody = Body({
  ...which,
  callbackUrl: Type.Optional(Nullable(CallbackUrl)),
  since: Time,
  status: Type.Enum(RECOVERABLE_STATUSES, { default: "FAILED" }),
});
export const RecoverReply = Type.Object({ recovered: Type.Integer() });
