/** The bodies and replies of what people do to runs and arrivals: retry, stop, retract. */
import { Type } from "typebox";
import { Body, DryRunQuery, Nullable } from "../kernel/http/schemas.ts";
import { OpTime, Table } from "./schemas.ts";

export const RetryBody = Nullable(Body({ opTime: Type.Optional(OpTime) }));
export const RetryReply = Type.Object({
  modelId: Type.String(),
  dryRun: Type.Boolean(),
  opTimes: Type.Array(Type.String(), { description: "Those that run again, or would." }),
});
export const StopBody = Nullable(
  Body({
    opTime: Type.Optional(OpTime),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, pattern: "^[^\\u0000]*$" })),
  }),
);
export const StopReply = Type.Object({
  modelId: Type.String(),
  dryRun: Type.Boolean(),
  stopped: Type.Array(
    Type.Object({ opTime: Type.String(), was: Type.Enum(["ready", "running", "parked", "retrying"] as const) }),
    {
      description: "Those that were about to run, ran, waited for their chain or for their next attempt.",
    },
  ),
});

export const RetractQuery = Body({ ...DryRunQuery.properties, table: Table, opTime: OpTime });
const Concerned = Type.Array(Type.Object({ modelId: Type.String(), opTime: Type.String() }));
export const RetractReply = Type.Object({
  table: Type.String(),
  opTime: Type.String(),
  dryRun: Type.Boolean(),
  judgedAgain: Concerned,
  usedBy: Concerned,
});
