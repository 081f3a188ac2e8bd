/** What `millrace.yaml` may say under `chains`. */
import { type Static, Type } from "typebox";

export const ChainsSettings = Type.Object(
  {
    /** How many nodes one process runs at the same time. */
    slots: Type.Integer({ minimum: 1, maximum: 10_000, default: 100 }),
    /** How long a node may take to stop before it is given up. */
    stopGraceSeconds: Type.Integer({ minimum: 0, maximum: 86_400, default: 30 }),
    /** How long a process that shuts down waits for its nodes before it gives them back. */
    drainSeconds: Type.Integer({ minimum: 0, maximum: 3_600, default: 5 }),
    /** After this many silent workers in a row a node is `FAILED`: it may be what kills them. */
    lostLimit: Type.Integer({ minimum: 1, maximum: 1_000, default: 5 }),
    /** Runs that ended so long ago are deleted, with all that was written of them. */
    keepDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 365 }),
    /** Files with node types of your own, relative to the configuration file's folder. */
    nodeTypes: Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), { maxItems: 100, default: [] }),
  },
  { additionalProperties: false, default: {} },
);
export type ChainsSettings = Static<typeof ChainsSettings>;
