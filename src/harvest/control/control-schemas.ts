/** What the API that controls harvests takes and answers. */
import { type Static, Type } from "typebox";
import { Body, Nullable, ReplyTime } from "../../kernel/http/schemas.ts";
import { NAME_PATTERN, ParamValues } from "../definition/definition.ts";
import { OPERATIONS } from "../spec/snapshot.ts";
import { SLICE_NEXT } from "../states.ts";
import { TIMELINE_KINDS } from "../store/cursors/rewinds.ts";
import { WHY_CODES } from "./why.ts";

const Name = Type.String({ pattern: NAME_PATTERN });
const scope = {
  endpoint: Type.Optional(Type.String({ pattern: NAME_PATTERN, description: "Unset: all endpoints." })),
  operation: Type.Optional(Type.Enum(OPERATIONS, { description: "Unset: all operations." })),
};
const Reason = Type.String({ maxLength: 2_000, description: "For those who find it paused." });

export const PauseBody = Nullable(Body({ ...scope, reason: Type.Optional(Reason) }));
export const ResumeBody = Nullable(Body(scope));
export const PausesQuery = Body({ source: Type.Optional(Name) });
const Pause = Type.Object({
  source: Type.String(),
  endpoint: Nullable(Type.String({ description: "Null: all." })),
  operation: Nullable(Type.String({ description: "Null: all." })),
  at: ReplyTime,
  by: Type.String(),
  reason: Nullable(Type.String()),
  automatic: Type.Boolean({ description: "Made by Millrace, since access to the endpoint is refused." }),
});
export const PausesReply = Type.Object({ items: Type.Array(Pause) });
export const ResumeReply = Type.Object({
  resumed: Nullable(
    Type.Unsafe<Static<typeof Pause>>({ ...Pause, description: "Null: what was named was not paused." }),
  ),
  items: Type.Array(Pause, { description: "What is still paused of the source." }),
});

export const WhyReply = Type.Object({
  sliceId: Type.Integer(),
  status: Type.Enum(Object.keys(SLICE_NEXT) as (keyof typeof SLICE_NEXT)[]),
  causes: Type.Array(
    Type.Object({
      code: Type.Enum(WHY_CODES),
      sentence: Type.String(),
      since: Nullable(ReplyTime),
      until: Nullable(Type.Unsafe<Date>({ ...ReplyTime, description: "When it ends, where that is known." })),
    }),
    { description: "The deciding one first." },
  ),
});

export const CursorParams = Type.Object({
  source: Type.String({ minLength: 1, maxLength: 100 }),
  namespace: Type.String({ minLength: 1, maxLength: 100 }),
});
const CursorOperation = Type.Enum(OPERATIONS, { default: "HARVEST" });
export const RewindBody = Body({
  to: Type.String({
    minLength: 1,
    maxLength: 40,
    description: "RFC 3339, or a date: the start of that day of the source.",
  }),
  operation: CursorOperation,
  reason: Type.String({ pattern: "\\S", maxLength: 2_000, description: "say why it is harvested once more" }),
});
export const RewindReply = Type.Object({
  source: Type.String(),
  namespace: Type.String(),
  operation: Type.Enum(OPERATIONS),
  generation: Type.Integer({ description: "Of the cursor; grows with each rewind." }),
  from: ReplyTime,
  to: ReplyTime,
  slices: Type.Integer({ description: "Complete slices that will be harvested once more." }),
});
export const TimelineQuery = Body({
  operation: CursorOperation,
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
});
export const TimelineReply = Type.Object({
  items: Type.Array(
    Type.Object({
      at: ReplyTime,
      kind: Type.Enum(TIMELINE_KINDS),
      from: Nullable(Type.String({ description: "Of the cursor before; of a gap, its start." })),
      to: Type.String(),
      planId: Nullable(Type.String()),
      sliceId: Nullable(Type.Integer()),
      by: Nullable(Type.String()),
      reason: Nullable(Type.String()),
    }),
  ),
});

export const CheckBody = Nullable(
  Body({
    endpoint: Type.Optional(
      Type.String({ pattern: NAME_PATTERN, description: "Unset: the source's default endpoint." }),
    ),
    params: Type.Optional(ParamValues),
    id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_024,
        description: "For an endpoint that answers the records of ids (`ExistingSet`). Unset: one that is known.",
      }),
    ),
  }),
);
export const CheckReply = Type.Object({
  source: Type.String(),
  endpoint: Type.String(),
  verdict: Type.Enum(["ok", "warn", "fail"] as const, { description: "The worst of its lines." }),
  lines: Type.Array(
    Type.Object({
      name: Type.Enum(["address", "connection", "credential", "page", "detail", "clock", "rate"] as const),
      verdict: Type.Enum(["ok", "warn", "fail"] as const),
      found: Type.String(),
      advice: Nullable(Type.String({ description: "What to do about it." })),
    }),
  ),
});
