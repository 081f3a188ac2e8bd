/** What can be configured about slices beside windows of time: pages, ids, and the dimensions that divide what is over a cap. */
import { type Static, Type } from "typebox";

const closed = { additionalProperties: false } as const;

export const SLICE_STRATEGIES = ["TIME", "PAGE", "ID"] as const;
export const DIMENSION_TYPES = ["DATE", "NUMBER", "VALUES", "PREFIX"] as const;

/** What records can be divided by, beside time: each record belongs to one range of it. */
export const Dimension = Type.Object(
  {
    /** As in `parts.NAME`. */
    name: Type.String({ pattern: "^[a-z][A-Za-z0-9_]{0,31}$" }),
    type: Type.Enum(DIMENSION_TYPES),
    /** A template over `range`: what a request of one range has as `parts.NAME`. */
    fragment: Type.String({ minLength: 1, maxLength: 8_192 }),
    /** The first and the last day or number, both included. */
    from: Type.Optional(Type.Union([Type.Integer(), Type.String({ maxLength: 10 })])),
    until: Type.Optional(Type.Union([Type.Integer(), Type.String({ maxLength: 10 })])),
    /** How a day is written. */
    format: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    /** VALUES: all values. PREFIX: what a prefix can go on with. */
    values: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { minItems: 1, maxItems: 10_000, uniqueItems: true }),
    ),
    /** PREFIX: how often a prefix is lengthened. */
    depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 32 })),
    /** The same as `fragment` for records that have none of the values. */
    rest: Type.Optional(Type.String({ minLength: 1, maxLength: 8_192 })),
  },
  closed,
);
export type Dimension = Static<typeof Dimension>;

export const SlicingPolicy = Type.Object(
  {
    /** Windows of time, ranges of pages, or ranges of ids. Unset: windows, or one slice for an endpoint that knows no time. */
    by: Type.Enum(SLICE_STRATEGIES),
    /** PAGE: the pages of one slice. */
    pages: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    /** ID: all ids. */
    ids: Dimension,
    /** ID: how many days, numbers or values one slice has. */
    size: Type.Integer({ minimum: 1, maximum: 1_000_000_000 }),
    /** What a slice is divided by, in this order, that cannot be cut in time and is over a cap of its source. */
    ladder: Type.Array(Dimension, { minItems: 1, maxItems: 8 }),
  },
  closed,
);
