/** What replies say of how records are sliced: by time, pages or ids, and into parts. */
import { Type } from "typebox";
import { Nullable } from "../../kernel/http/schemas.ts";
import { SLICE_STRATEGIES } from "../definition/slicing-policy.ts";
import { ESTIMATE_BASES } from "../slice/estimate.ts";

const PartSchema = Type.Object({}, { additionalProperties: true });

/** Of a dry run. */
export const draftSlicing = {
  parts: Type.Optional(Type.Array(PartSchema, { description: "Of the first 1,000 slices by id, in a dry run." })),
  slicedBy: Type.Optional(
    Nullable(Type.Enum(SLICE_STRATEGIES, { description: "In a dry run; null for one slice of everything." })),
  ),
  limits: Type.Optional(
    Type.Object(
      {
        cap: Nullable(Type.Integer({ description: "What the source answers for one query." })),
        slice: Nullable(Type.Integer({ description: "What one slice should have (`sliceRecords`)." })),
      },
      { description: "In a dry run: slices with more records are divided." },
    ),
  ),
  ladder: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        type: Type.String(),
        kind: Type.Enum(["halves", "list"] as const),
        parts: Type.Array(Type.String(), { description: "The first 20." }),
        count: Type.Integer(),
      }),
      { description: "In a dry run: the dimensions that divide a slice over the cap, in this order." },
    ),
  ),
};

export const EstimateSchema = Nullable(
  Type.Object(
    {
      records: Type.Integer(),
      basis: Type.Enum(ESTIMATE_BASES, {
        description:
          "TOTAL: the source announced it. HINT: it hints at it (`window.hint`). SAMPLE: by the times of a first page. HISTORY: by earlier slices.",
      }),
    },
    {
      description: "What was expected before all records had come. It decides how large slices are, and nothing else.",
    },
  ),
);

/** Of a window in a dry run. */
export const windowSizes = {
  estimate: EstimateSchema,
  division: Nullable(
    Type.Object(
      {
        by: Type.String({
          description: "TIME, PAGE, a dimension of the ladder, or NONE: nothing divides it, and it will be INCOMPLETE.",
        }),
        parts: Type.Integer({ description: "How many at least; of an earlier harvest, how many there were." }),
        first: Type.Array(Type.Object({ name: Type.String(), records: Nullable(Type.Integer()) })),
        isKnown: Type.Boolean({ description: "The parts and their sizes are those of an earlier harvest." }),
      },
      { description: "How it is divided if it has as many records as expected; null if it is not." },
    ),
  ),
};

/** Of a slice. */
export const slicePart = {
  part: Nullable(
    Type.Object(
      {},
      { additionalProperties: true, description: "A part: its range of each dimension, or its pages, by name." },
    ),
  ),
  isParted: Type.Boolean({ description: "It is divided into parts, and ends with the last of them." }),
};
