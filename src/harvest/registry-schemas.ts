/** Request and reply bodies of the registry. */
import { Type } from "typebox";
import { Body, DryRunQuery, Nullable, Page, PageQuery, ReplyTime } from "../kernel/http/schemas.ts";
import type { Definition } from "./definition/definition.ts";
import { OPERATIONS } from "./spec/snapshot.ts";

/** A path accepts any text: one that is not a valid name is answered like an unknown one. */
const Name = Type.String({ minLength: 1, maxLength: 256 });
export const SourceParams = Body({ source: Name });
export const EndpointParams = Body({ source: Name, endpoint: Name });

/** The use case checks it, because it finds all mistakes and not only the first. */
export const DefinitionBody = Type.Object(
  {},
  {
    additionalProperties: true,
    description: "A definition, as `GET /api/v1/harvest/definition.schema.json` describes it.",
    examples: [
      {
        source: "shop",
        name: "Orders of the shop",
        baseUrl: "https://api.example.org",
        endpoints: {
          orders: {
            path: "/orders",
            http: {
              query: {
                since: "${window.from}",
                until: "${window.to}",
                offset: "${page.offset}",
                limit: "${page.size}",
              },
            },
            pagination: { type: "OFFSET", pageSize: 100 },
            window: {
              watermarkKey: "updated",
              granularity: "PT1S",
              align: "min",
              minWindow: "PT1M",
              maxWindow: "P1D",
              supportsUpdatedSince: true,
            },
            response: { itemsPath: "$.orders", idPath: "$.id", updatedAtPath: "$.updated", totalPath: "$.total" },
            rateLimit: { refillRatePerSec: 5 },
          },
        },
      },
    ],
  },
);

const baseUrl = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 2_048,
    description:
      "Points the source at a mirror, a proxy or a simulator, instead of the `baseUrl` of its definition, until it is applied again.",
  }),
);
export const ApplyQuery = Body({
  ...DryRunQuery.properties,
  baseUrl,
  revision: Type.Optional(
    Type.Integer({
      minimum: 0,
      description:
        "The revision that the definition was made from, 0 for a new source. If there is another by now, nothing is written.",
    }),
  ),
});
export const TargetQuery = Body({ baseUrl });

const needs = Type.Array(Type.String(), { description: "Parameters that only a trigger can give." });
const Problem = Type.Object({
  table: Type.String({ description: "The table of the registry that has the value." }),
  field: Type.String({ description: "The field, as in the definition or in the policy of an endpoint." }),
  reason: Type.String(),
  path: Type.Array(Type.String(), { description: "The steps to the value in the definition." }),
});
const change = {
  source: Type.String(),
  outcome: Type.Enum(["created", "changed", "unchanged"] as const),
  changes: Type.Array(
    Type.Object({
      field: Type.String({ examples: ["endpoints.orders.pagination.pageSize"] }),
      from: Type.Optional(Type.Unknown({ description: "Absent for a new field." })),
      to: Type.Optional(Type.Unknown({ description: "Absent for a removed field." })),
    }),
    { description: "Empty for a new source." },
  ),
};
export const DiffReply = Type.Object(change);
export const AppliedReply = Type.Object({
  ...change,
  revision: Type.Integer({ description: "Grows with each change." }),
  baseUrl: Type.String({ description: "The one in use." }),
  baseUrlOverride: Nullable(Type.String()),
  warnings: Type.Array(Problem),
});
export const ValidatedReply = Type.Object({
  valid: Type.Boolean(),
  problems: Type.Array(Problem),
  warnings: Type.Array(Problem),
  endpoints: Type.Array(
    Type.Object({
      endpoint: Type.String(),
      specFingerprint: Nullable(Type.String({ description: "Null where it depends on what a trigger gives." })),
      needs,
    }),
    { description: "The endpoints that can be harvested." },
  ),
});

const source = {
  source: Type.String(),
  name: Type.String(),
  description: Type.String(),
  baseUrl: Type.String({ description: "The one in use." }),
  baseUrlOverride: Nullable(Type.String()),
  revision: Type.Integer(),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
  updatedBy: Type.String({ description: "The name of the key that changed it last." }),
};
export const SourcesQuery = Body({
  ...PageQuery,
  q: Type.Optional(Type.String({ maxLength: 255, description: "Part of the source or its name." })),
});
export const SourcesReply = Page(
  Type.Object({ ...source, endpoints: Type.Integer(), schedules: Type.Integer({ description: "How many." }) }),
);
export const SourceReply = Type.Object({
  ...source,
  endpointIds: Type.Record(Type.String(), Type.Integer(), { description: "The ids of endpoints, by name." }),
  definition: Type.Unsafe<Definition>(
    Type.Object({}, { additionalProperties: true, description: "As it was applied, with defaults." }),
  ),
});

export const SpecQuery = Body({ operation: Type.Enum(OPERATIONS, { default: "HARVEST" }) });
const AnyObject = Type.Unsafe<object>(Type.Object({}, { additionalProperties: true }));
export const SpecReply = Type.Object({
  source: Type.String(),
  endpoint: Type.String(),
  operation: Type.String(),
  specFingerprint: Type.String(),
  exprProtoHash: Type.String(),
  needs,
  snapshot: Type.Unsafe<object>({ ...AnyObject, description: "What a plan of this endpoint is made with." }),
  origins: Type.Record(Type.String(), Type.String(), {
    description: "The layer of each value: platform, provenance, endpoint, cfg or trigger.",
    examples: [{ "pagination.pageSize": "cfg", "retry.maxAttempts": "platform" }],
  }),
  warnings: Type.Array(Type.Object({ table: Type.String(), field: Type.String(), reason: Type.String() })),
});

export const CredentialsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      name: Type.String(),
      kind: Type.Enum(["env", "secret"] as const),
      reference: Type.String({ description: "The environment variable or the named secret." }),
      version: Type.Integer({ description: "Grows when the value changes; 0 until it was used." }),
      changedAt: Nullable(ReplyTime),
      present: Type.Boolean({ description: "Whether the process that answers has a value." }),
    }),
  ),
});

export const DictionaryReply = Type.Object({
  items: Type.Array(
    Type.Object({
      type: Type.String(),
      description: Type.String(),
      items: Type.Array(
        Type.Object({ code: Type.String(), description: Type.String(), aliases: Type.Array(Type.String()) }),
      ),
    }),
  ),
});
export const SchemaReply = AnyObject;
