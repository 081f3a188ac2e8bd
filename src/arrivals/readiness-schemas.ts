/** Request and reply bodies of readiness in cells, of series, and of why a table is there or not. */
import { Type } from "typebox";
import { Body, Nullable, ReplyTime } from "../kernel/http/schemas.ts";
import { GRAINS } from "../kernel/time/op-time.ts";
import { CELL_CODES, NOTHING } from "./models/cells.ts";
import { TASK_STATUSES } from "./runs/states.ts";
import { AnnouncedBy, Dimension, GrainName, KpiId, OpTime, oneOf, Table, UsualAt } from "./schemas.ts";

export const TableWhyQuery = Body({ table: Table, opTime: OpTime });
export const TableWhyReply = Type.Object({
  table: Type.String(),
  opTime: Type.String(),
  arrival: Nullable(
    Type.Object({
      arrivalTime: ReplyTime,
      firstTime: ReplyTime,
      arrivals: Type.Integer(),
      sequence: Type.String(),
      announcedBy: AnnouncedBy,
      retractedAt: Nullable(ReplyTime),
      retractedBy: Nullable(Type.String()),
    }),
  ),
  usualAt: UsualAt,
  models: Type.Array(
    Type.Object({
      modelId: Type.String(),
      opTime: Type.String({ description: "The opTime of the model that needs the table." }),
      optional: Type.Boolean(),
      deadline: Nullable(ReplyTime),
      state: Type.String(),
      last: Nullable(oneOf(TASK_STATUSES)),
    }),
  ),
  more: Type.Integer({ description: "Models that depend on it and are not listed." }),
});

const codes = (by: "table" | "model") =>
  Object.entries(CELL_CODES[by])
    .map(([code, meaning]) => `\`${code}\` ${meaning}`)
    .join(", ");
export const CellsQuery = Body({
  by: oneOf(["table", "model"]),
  grain: Type.Optional(
    oneOf([...GRAINS, "name"], "Of the opTimes; `name` is for those without a grain. Unset: that of most models."),
  ),
  from: Type.Optional(OpTime),
  to: Type.Optional(OpTime),
  last: Type.Integer({
    minimum: 1,
    maximum: 2_400,
    default: 45,
    description:
      "How many opTimes: from `from` on, or up to `to`, or without both up to the newest arrival or the period that ended last. With both, it has no effect.",
  }),
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "Part of the name of a table or model." })),
  after: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "The `next` of the previous page." })),
  limit: Type.Integer({
    minimum: 1,
    maximum: 500,
    default: 100,
    description: "Rows, of at most 100,000 cells together.",
  }),
});
export const CellsReply = Type.Object({
  grain: Nullable(GrainName),
  opTimes: Type.Array(Type.String()),
  later: Type.Boolean({ description: "There are opTimes after these." }),
  rows: Type.Array(
    Type.Object({
      name: Type.String(),
      title: Nullable(Type.String({ description: "The name of a model, whose id is `name`." })),
      cells: Type.String({
        description: `One character for each opTime; \`${NOTHING}\` is nothing yet. Of a table: ${codes("table")}. Of a model: ${codes("model")}.`,
      }),
    }),
  ),
  next: Nullable(Type.String()),
});

export const SeriesQuery = Body({
  kpiId: Type.Optional(KpiId),
  modelId: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "All indicators that it feeds." })),
  from: OpTime,
  to: OpTime,
});
export const SeriesReply = Type.Object({
  kpis: Type.Array(
    Type.Object({
      kpiId: Type.String(),
      name: Type.String(),
      modelId: Nullable(Type.String()),
      lines: Type.Array(
        Type.Object({
          dimensions: Type.Record(Type.String(), Dimension),
          opTimes: Type.Array(Type.String()),
          values: Type.Array(Nullable(Type.Number())),
        }),
        { description: "At most 8 sets of dimensions: those with the largest values at the end of the range." },
      ),
      moreLines: Type.Integer(),
    }),
    { description: "At most 4." },
  ),
  moreKpis: Type.Integer(),
});
