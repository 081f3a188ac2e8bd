/** Requests and replies of ingest for the OpenAPI description. The handlers get the text itself. */
import { type Static, Type } from "typebox";

export const BATCH_EVENTS_MAX = 1_000;
/** Beyond this an event is more than a process should have to hold many of. */
export const EVENT_BYTES_CEILING = 64 * 1_048_576;

const Named = Type.Object({ namespace: Type.String(), name: Type.String() }, { additionalProperties: true });
const Event = Type.Object(
  {
    eventTime: Type.String({ format: "date-time" }),
    eventType: Type.Optional(Type.String({ description: "START, RUNNING, COMPLETE, ABORT, FAIL or OTHER." })),
    run: Type.Optional(Type.Object({ runId: Type.String() }, { additionalProperties: true })),
    job: Type.Optional(Named),
    dataset: Type.Optional(Named),
    inputs: Type.Optional(Type.Array(Named)),
    outputs: Type.Optional(Type.Array(Named)),
  },
  { additionalProperties: true, description: "An OpenLineage event, as https://openlineage.io/spec describes it." },
);

/**
 * Stock clients add whatever parameters their `urlParams` name, and drop an event for good at a 400, so unknown ones are
 * ignored. Not `dryRun`: its sender expects that nothing happens.
 */
export const ClientQuery = Type.Object(
  { dryRun: Type.Optional(Type.Enum(["false"] as const, { description: "There is no preview." })) },
  { additionalProperties: true },
);

/** A request without a body has none, whatever the schema says: nothing is checked against it. */
type Text = string | undefined;
export const EventText = Type.Unsafe<Text>(Event);
const Events = Type.Array(Event, { maxItems: BATCH_EVENTS_MAX });
export const EventsText = Type.Unsafe<Text>(Events);
export const EventOrEventsText = Type.Unsafe<Text>(Type.Union([Event, Events]));

export const TakenReply = Type.Object({
  id: Type.String(),
  duplicate: Type.Boolean({ description: "The very same event was taken before; it was not applied again." }),
  state: Type.Enum(["APPLIED", "BUFFERED", "SKIPPED", "DEAD"] as const),
});

export const BatchReply = Type.Object({
  status: Type.Enum(["success", "partial_success"] as const),
  summary: Type.Object({
    received: Type.Integer(),
    successful: Type.Integer(),
    failed: Type.Integer(),
    retriable: Type.Integer(),
    non_retriable: Type.Integer(),
  }),
  failed_events: Type.Array(
    Type.Object({
      index: Type.Integer({ description: "Its place in the array, from 0 on." }),
      reason: Type.String(),
      retriable: Type.Boolean({ description: "Whether the same event may be taken if it is sent again." }),
    }),
  ),
});
export type BatchReply = Static<typeof BatchReply>;
