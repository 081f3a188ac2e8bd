/** The settings under `lineage` in `millrace.yaml`. */
import { type Static, Type } from "typebox";
import { EVENT_BYTES_CEILING } from "./ingest/schemas.ts";
import { Neo4jSettings } from "./neo4j/settings.ts";
import { TasksSettings } from "./tasks/settings.ts";
import { GatewaySettings } from "./tenants/gateway-settings.ts";

const MEBIBYTE = 1_048_576;

/** 0, because those who number their tenants begin with 1. */
export const DEFAULT_OWN = { id: 0, code: "millrace", name: "Millrace" } as const;

export const LineageSettings = Type.Object(
  {
    /** What an event, or a batch of them, may measure once it is inflated. A tenant may have its own limit. */
    eventBytesMax: Type.Integer({ minimum: 1_024, maximum: EVENT_BYTES_CEILING, default: 16 * MEBIBYTE }),
    /** Events that wait to be written in one process; more are turned away for the moment. */
    waitingMax: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 10_000 }),
    /** What the waiting events may measure together. */
    waitingBytesMax: Type.Integer({ minimum: MEBIBYTE, maximum: 4_096 * MEBIBYTE, default: 256 * MEBIBYTE }),
    /** Whether a tenant that nobody made is made by its first event. */
    createTenants: Type.Boolean({ default: false }),
    /** How far the clocks of those who send may be behind: events from so long before a cutover still count. */
    clockToleranceSeconds: Type.Integer({ minimum: 0, maximum: 86_400, default: 300 }),
    /**
     * How far the clocks of those who send may be ahead: an event that is dated later is refused. A day by default, because a
     * client that sends its local time without a zone is up to 14 hours ahead, and whatever it is refused is lost.
     */
    futureToleranceSeconds: Type.Integer({ minimum: 0, maximum: 604_800, default: 86_400 }),
    /** How long events are kept. */
    keepDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 90 }),
    /** The tenant that the lineage of Millrace's own runs belongs to. */
    own: Type.Object(
      {
        enabled: Type.Boolean({ default: true }),
        id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: DEFAULT_OWN.id }),
        code: Type.String({ minLength: 1, maxLength: 64, default: DEFAULT_OWN.code }),
        name: Type.String({ minLength: 1, maxLength: 128, default: DEFAULT_OWN.name }),
      },
      { additionalProperties: false, default: {} },
    ),
    gateway: Type.Optional(GatewaySettings),
    neo4j: Type.Optional(Neo4jSettings),
    tasks: TasksSettings,
  },
  { additionalProperties: false, default: {} },
);
export type LineageSettings = Static<typeof LineageSettings>;
