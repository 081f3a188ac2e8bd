/** Request and reply bodies of the tenant routes. */
import { Type } from "typebox";
import { Body, Nullable, Page, PageQuery, ReplyTime, Time } from "../../kernel/http/schemas.ts";
import { EVENT_BYTES_CEILING } from "../ingest/schemas.ts";
import { TENANT_STATES } from "./states.ts";

export const REPLAY_DEFAULT = 100;
const REPLAY_MAX = 1_000;
const VISIBLE = { pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$", description: "Text without control characters." };
const EventId = Type.String({ pattern: "^\\d{1,18}$", description: "The id of an event." });

const code = Type.String({ minLength: 1, maxLength: 64, ...VISIBLE });
const name = Type.String({ minLength: 1, maxLength: 128, ...VISIBLE });
const rateLimitPerMinute = Type.Integer({
  minimum: 1,
  maximum: 1_000_000_000,
  description: "Events a minute that each process takes of it.",
});
const bodyLimitBytes = Type.Integer({
  minimum: 1_024,
  maximum: EVENT_BYTES_CEILING,
  description:
    "What an event of it may measure. More than the server's own limit is for keys that are bound to the tenant.",
});

export const TenantParams = Body({ tenantId: Type.String() });
export const DeadLetterParams = Body({ tenantId: Type.String(), eventId: EventId });

export const NewTenant = Body({
  id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  code,
  name,
  state: Type.Optional(Type.Enum(["NEW", "READY"] as const)),
  rateLimitPerMinute: Type.Optional(rateLimitPerMinute),
  bodyLimitBytes: Type.Optional(bodyLimitBytes),
});

export const TenantPatch = Body({
  code: Type.Optional(code),
  name: Type.Optional(name),
  rateLimitPerMinute: Type.Optional(Nullable(rateLimitPerMinute)),
  bodyLimitBytes: Type.Optional(Nullable(bodyLimitBytes)),
});

export const TenantsQuery = Body({
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: "A part of the code or the name." })),
  state: Type.Optional(Type.Enum(TENANT_STATES)),
  ...PageQuery,
});

export const SyncStart = Nullable(Body({ cutoverTime: Type.Optional(Time) }));

export const ReplayAll = Nullable(
  Body({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: REPLAY_MAX, description: `${REPLAY_DEFAULT} by default.` }),
    ),
    after: Type.Optional(EventId),
  }),
);

const tenant = {
  id: Type.Integer(),
  code: Type.String(),
  name: Type.String(),
  state: Type.Enum(TENANT_STATES),
  cutoverTime: Nullable(ReplyTime),
  rateLimitPerMinute: Nullable(Type.Integer()),
  bodyLimitBytes: Nullable(Type.Integer()),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
};
export const TenantReply = Type.Object(tenant);
export const TenantsReply = Page(TenantReply);
export const ReadyReply = Type.Object({
  ...tenant,
  applied: Type.Integer(),
  skipped: Type.Integer({ description: "Events from before the cutover, which are kept and not applied." }),
  dead: Type.Integer(),
});

export const ReplayAllReply = Type.Object({
  applied: Type.Integer(),
  dead: Type.Integer({ description: "Those that could not be applied this time either." }),
  remaining: Type.Integer({ description: "All dead letters that the tenant still has." }),
  next: Nullable(Type.String({ description: "To be sent as `after`, for those behind." })),
});
