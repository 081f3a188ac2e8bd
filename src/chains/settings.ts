/** The settings under `chains` in `millrace.yaml`. */
import { type Static, Type } from "typebox";

export const ChainsSettings = Type.Object(
  {
    /** How many nodes one process runs at a time. */
    slots: Type.Integer({ minimum: 1, maximum: 10_000, default: 100 }),
    /** How long a node may take to stop before its result is ignored and the node is STOPPED. */
    stopGraceSeconds: Type.Integer({ minimum: 0, maximum: 86_400, default: 30 }),
    /** How long a process that shuts down waits for its nodes before it releases them. */
    drainSeconds: Type.Integer({ minimum: 0, maximum: 3_600, default: 5 }),
    /** After this many lost workers in a row a node is `FAILED`: it may be what crashes them. */
    lostLimit: Type.Integer({ minimum: 1, maximum: 1_000, default: 5 }),
    /** Runs that ended longer ago than this are deleted, with their nodes, attempts, logs and events. */
    keepDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 365 }),
    /** Files with your own node types, relative to the configuration file's folder. */
    nodeTypes: Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), { maxItems: 100, default: [] }),
  },
  { additionalProperties: false, default: {} },
);
export type ChainsSettings = Static<typeof ChainsSettings>;
