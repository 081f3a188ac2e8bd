/** The settings under `harvest` in `millrace.yaml`. */
import { type Static, Type } from "typebox";

export const HarvestSettings = Type.Object(
  {
    /** Tasks that run at once in one process. */
    slots: Type.Integer({ minimum: 1, maximum: 1_000, default: 16 }),
    /** How long a stop waits for pages under way. */
    drainSeconds: Type.Integer({ minimum: 0, maximum: 300, default: 5 }),
    /** The folder of response bodies. Unset: `bodies/` of the data directory. `postgres`: rows in the database. */
    bodies: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
    /** A task is FAILED after this many processes in a row were lost while they executed it. */
    lostLimit: Type.Integer({ minimum: 1, maximum: 1_000, default: 5 }),
    /** `host:port` of sources that may be private or have no TLS, beside those of MILLRACE_HARVEST_ALLOW_PRIVATE. */
    allowPrivate: Type.Array(Type.String({ pattern: "^[^\\s/@]+:[0-9]{1,5}$", maxLength: 300 }), {
      default: [],
      maxItems: 1_000,
    }),
  },
  { additionalProperties: false, default: {} },
);
export type HarvestSettings = Static<typeof HarvestSettings>;
