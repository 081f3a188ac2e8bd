/** The DAG of a chain as users write it: its schema, its types and its limits. */

import { type Static, Type } from "typebox";
import { DAY_MS } from "../../kernel/time/units.ts";
import { RetryFields } from "../../kernel/work/retry-fields.ts";

export const NODES_MAX = 10_000;
export const DAG_BYTES_MAX = 4 * 1024 * 1024;
const PARENTS_MAX = 1_000;
const TABLES_MAX = 100;

const NODE_ID_PATTERN = "^[A-Za-z0-9_.-]{1,64}$";
export const RUN_WHEN = ["all_success", "all_done", "one_failed"] as const;
export type RunWhen = (typeof RUN_WHEN)[number];

const closed = { additionalProperties: false };

const NameSchema = Type.String({ pattern: NODE_ID_PATTERN, description: "1 to 64 letters, digits, `_`, `.` or `-`." });

export const NodeSchema = Type.Object(
  {
    id: NameSchema,
    type: Type.String({ minLength: 1, maxLength: 64 }),
    dependsOn: Type.Optional(Type.Array(Type.String(), { maxItems: PARENTS_MAX })),
    cfg: Type.Optional(Type.Object({}, { additionalProperties: true })),
    retry: Type.Optional(RetryFields),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 7 * DAY_MS })),
    runWhen: Type.Optional(Type.Enum(RUN_WHEN)),
    if: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096, description: "A CEL expression." })),
    waitsFor: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: TABLES_MAX })),
    pool: Type.Optional(NameSchema),
  },
  closed,
);
export type NodeDef = Static<typeof NodeSchema>;

export interface Dag {
  nodes: NodeDef[];
}

/** What is wrong with a DAG. */
export interface DagProblem {
  /** Where: `nodes[3].cfg.url`. */
  path: string;
  nodeId?: string;
  message: string;
}
