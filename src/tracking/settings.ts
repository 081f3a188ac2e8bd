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
    /** How long files are kept after the last stage of all their shards is done. */
    keepDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 365 }),
  },
  { additionalProperties: false, default: {} },
);
export type TrackingSettings = Static<typeof TrackingSettings>;
