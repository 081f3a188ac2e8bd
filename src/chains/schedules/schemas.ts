/** The bodies of schedules and pools. */
import { Type } from "typebox";
import { Body, Nullable, ReplyTime } from "../../kernel/http/schemas.ts";
import { GRAINS } from "../../kernel/time/op-time.ts";
import { AnyId, AnyJson, Name, startFields } from "../schemas.ts";

const OFFSET_MAX = 10_000;

export const ScheduleParams = Body({ chainId: AnyId, scheduleId: AnyId });
const timeZone = { minLength: 1, maxLength: 64, examples: ["Asia/Shanghai"] };
const MISSED = ["skip", "last", "all"] as const;
const missed = { description: "Which of the times missed while no server ran still start a run." };
const scheduleFields = {
  name: Name,
  cron: Type.String({ minLength: 1, maxLength: 128, examples: ["0 3 * * *"] }),
  opTime: Type.Optional(
    Nullable(
      Body({
        grain: Type.Enum(GRAINS),
        offset: Type.Integer({ minimum: -OFFSET_MAX, maximum: OFFSET_MAX, default: 0 }),
      }),
    ),
  ),
  ...startFields,
  paused: Type.Optional(Type.Boolean()),
};
export const ScheduleBody = Body({
  ...scheduleFields,
  timeZone: Type.String({ ...timeZone, default: "UTC" }),
  missed: Type.Enum(MISSED, { ...missed, default: "last" }),
});
export const ScheduleChangeBody = Body({
  ...scheduleFields,
  timeZone: Type.Optional(Type.String(timeZone)),
  missed: Type.Optional(Type.Enum(MISSED, missed)),
});
export const ScheduleReply = Type.Object({
  scheduleId: Type.String(),
  chainId: Type.String(),
  name: Type.String(),
  cron: Type.String(),
  timeZone: Type.String(),
  missed: Type.String(),
  opTime: Nullable(Type.Object({ grain: Type.String(), offset: Type.Integer() })),
  params: AnyJson,
  priority: Type.Integer(),
  paused: Type.Boolean(),
  nextAt: Nullable(ReplyTime),
  lastAt: Nullable(ReplyTime),
  lastRunId: Nullable(Type.String()),
  problem: Nullable(Type.String({ description: "Why it could not start the run of `nextAt`." })),
  retryAt: Nullable(ReplyTime),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
});
export const SchedulesReply = Type.Object({ items: Type.Array(ScheduleReply) });

export const PoolParams = Body({ name: Type.String({ pattern: "^[A-Za-z0-9_.-]{1,64}$" }) });
export const PoolBody = Body({ size: Type.Integer({ minimum: 0, maximum: 1_000_000 }) });
const Pool = { name: Type.String(), size: Type.Integer() };
export const PoolReply = Type.Object(Pool);
export const PoolsReply = Type.Object({
  items: Type.Array(Type.Object({ ...Pool, running: Type.Integer(), ready: Type.Integer() })),
});
