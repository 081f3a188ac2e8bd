/** The API of records, under `/api/v1/harvest`. */
import { Type } from "typebox";
import type { Db } from "../kernel/data/db.ts";
import { invalid } from "../kernel/errors.ts";
import { Body, errors, Nullable, ReplyTime } from "../kernel/http/schemas.ts";
import type { Http } from "../kernel/http/server.ts";
import { quarantinedOf, quarantineGroups } from "./quarantine.ts";
import { recordByKey, recordChanges, recordsText } from "./records.ts";

const read = { scope: "harvest:read" } as const;
const tags = ["harvest"];

const Code = Type.String({ minLength: 1, maxLength: 64 });

const RecordsQuery = Body({
  source: Code,
  endpoint: Type.Optional(Code),
  key: Type.Optional(Type.String({ minLength: 1, maxLength: 1_024, description: "Answers this record alone." })),
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_096,
      description: "The `next` of an earlier reply; without it, from the first change.",
    }),
  ),
  size: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
});

const RecordsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      key: Type.String(),
      version: Type.Integer({ description: "Counts the changes of its content." }),
      deleted: Type.Boolean({ description: "The source has deleted it." }),
      updatedAt: Nullable(Type.String({ format: "date-time", description: "As the source says." })),
      batch: Type.Object({ slice: Type.Integer(), generation: Type.Integer(), number: Type.Integer() }),
      data: Type.Unknown({ description: "The record as the source sent it; XML as JSON." }),
    }),
  ),
  next: Type.String({ description: "The `after` of the following changes; stays valid when there are none yet." }),
});

const QuarantineQuery = Body({
  source: Code,
  endpoint: Type.Optional(Code),
  code: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "Of this error alone." })),
  expression: Type.Optional(
    Type.String({ maxLength: 4_096, description: "Of this path alone; empty: of errors without a path." }),
  ),
  open: Type.Boolean({
    default: false,
    description: "Without those whose records have come since, and of each id the newest.",
  }),
  before: Type.Optional(Type.String({ pattern: "^[0-9]{1,18}$", description: "The `next` of an earlier reply." })),
  size: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
});

const QuarantineReply = Type.Object({
  items: Type.Array(
    Type.Object({
      id: Type.String(),
      key: Nullable(Type.String()),
      code: Type.String({ description: "MISSING_ID, BAD_TIME, MISSING_FIELD, ILLEGAL_VALUE or TOO_LARGE." }),
      reason: Type.String(),
      expression: Nullable(Type.String({ description: "The path that failed." })),
      fragment: Type.String({ description: "The beginning of the record." }),
      batch: Type.Object({ slice: Type.Integer(), generation: Type.Integer(), number: Type.Integer() }),
      createdAt: ReplyTime,
      resolved: Type.Boolean({ description: "A record of its id has come since." }),
    }),
  ),
  next: Nullable(
    Type.String({
      description:
        "The `before` of older ones; null if there are none. With filters a page may be empty although there are.",
    }),
  ),
});

const GroupsQuery = Body({ source: Code });

const GroupsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      endpoint: Type.String(),
      code: Type.String(),
      expression: Nullable(Type.String({ description: "The path that failed." })),
      records: Type.Integer({ description: "Each id once. A record without an id counts each time." }),
      reason: Type.String({ description: "Of the newest." }),
      createdAt: ReplyTime,
    }),
  ),
  countedMax: Type.Integer({ description: "Rows of each endpoint that are counted, the newest." }),
  cut: Type.Boolean({ description: "An endpoint has more rows than are counted, or there are more groups." }),
});

export interface RecordRoutesDeps {
  db: Db;
  /** The id of an endpoint, or of the source's only one. Throws 404. */
  endpointId(source: string, endpoint: string | undefined): Promise<number>;
  /** Throws 404 if there is no such source. */
  known(source: string): Promise<unknown>;
}

export function recordRoutes(http: Http, { db, endpointId, known }: RecordRoutesDeps): void {
  http.get(
    "/records",
    {
      config: read,
      schema: {
        tags,
        summary: "Read records in the order of their changes, or one by its key",
        description:
          "Who follows `next` misses no change. A change appears when all transactions that began before it have ended.",
        querystring: RecordsQuery,
        response: { 200: RecordsReply, ...errors(400, 404) },
      },
    },
    async ({ query: { source, endpoint, key, after, size } }, reply) => {
      if (key !== undefined && after !== undefined) throw invalid("Give either `key` or `after`, not both");
      const id = await endpointId(source, endpoint);
      const page =
        key === undefined ? await recordChanges(db, id, { after, limit: size }) : await recordByKey(db, id, key);
      // Serialized here: the data of a record is sent as it is stored.
      return reply
        .type("application/json; charset=utf-8")
        .serializer((text: string) => text)
        .send(recordsText(page) as never);
    },
  );

  http.get(
    "/quarantine",
    {
      config: read,
      schema: {
        tags,
        summary: "List records that could not be stored, with the reasons",
        querystring: QuarantineQuery,
        response: { 200: QuarantineReply, ...errors(400, 404) },
      },
    },
    async ({ query: { source, endpoint, size, open: isOpen, before, code, expression } }) =>
      quarantinedOf(db, await endpointId(source, endpoint), { before, code, expression, isOpen }, size),
  );

  http.get(
    "/quarantine/groups",
    {
      config: read,
      schema: {
        tags,
        summary: "Count quarantined records that have not come since, by endpoint, error and path",
        querystring: GroupsQuery,
        response: { 200: GroupsReply, ...errors(400, 404) },
      },
    },
    async ({ query: { source } }) => {
      await known(source);
      return quarantineGroups(db, source);
    },
  );
}
