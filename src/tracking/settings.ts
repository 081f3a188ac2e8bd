/** The settings under `tracking` in `millrace.yaml`. */
import { type Static, Type } from "typebox";

const Seconds = Type.Integer({ minimum: 1, maximum: 7 * 86_400 });

export const TrackingSettings = Type.Object(
  {
    /** How long a shard may stay `started` without a lease before it returns to its queue. Unset: for ever. */
    stageTimeoutSeconds: Type.Object(
      {
        "shard-splitter": Type.Optional(Seconds),
        "shard-worker": Type.Optional(Seconds),
        "mysql-sender": Type.Optional(Seconds),
      },
      { additionalProperties: false, default: {} },
    ),
    /** After this many lost workers a shard is `failed` instead of queued again: it may be what kills them. */
    lostLimit: Type.Integer({ minimum: 1, maximum: 1000, default: 10 }),
  },
  { additionalProperties: false, default: {} },
);
export type TrackingSettings = Static<typeof TrackingSettings>;
