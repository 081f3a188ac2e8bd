/** Request and reply bodies of arrivals, models and indicators, with the field names of the KPI library. */
import { type Static, Type } from "typebox";
import { Body, Nullable, Page, PageQuery, ReplyTime } from "../kernel/http/schemas.ts";
import { GRAINS, OP_TIME_PATTERN } from "../kernel/time/op-time.ts";
import { RetryFields } from "../kernel/work/retry-fields.ts";
import { RERUN_POLICIES, TASK_STATUSES } from "./runs/states.ts";
import { VALUE_ORDERS } from "./store/kpis.ts";

export const oneOf = <Value extends string>(values: readonly Value[], description?: string) =>
  Type.Unsafe<Value>({ type: "string", enum: [...values], ...(description ? { description } : {}) });

const NO_CONTROLS = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";
export const Table = Type.String({ minLength: 1, maxLength: 255, pattern: NO_CONTROLS, examples: ["DW_FACT_ORDER_D"] });
export const OpTime = Type.String({
  pattern: OP_TIME_PATTERN,
  examples: ["20251219"],
  description: "An opTime has 1 to 255 of `A-Z a-z 0-9 _ . : -`.",
});
const ModelId = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[A-Za-z0-9_.-]+$",
  examples: ["MODEL-01"],
  description: "A model's id has 1 to 255 of `A-Z a-z 0-9 _ . -`.",
});
export const KpiId = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^[A-Za-z0-9_.-]+$",
  examples: ["KD1001"],
  description: "An indicator's id has 1 to 64 of `A-Z a-z 0-9 _ . -`.",
});
const Name = Type.String({ minLength: 1, maxLength: 255, pattern: NO_CONTROLS });
export const GrainName = oneOf(GRAINS, "The period that an opTime stands for: `yyyyMMddHH`, `yyyyMMdd`, `yyyyMM`.");
/** A path accepts any text: one that is not a valid id is answered like an unknown id. */
const AnyId = Type.String({ minLength: 1, maxLength: 512 });
const SQL_LENGTH_MAX = 1_000_000;

export const ArrivalBody = Body({
  srcTableName: Table,
  opTime: Type.String({ minLength: 1, maxLength: 255, examples: ["20251219"] }),
});
export const TriggeredReply = Type.Object({
  modelId: Type.String(),
  opTime: Type.String(),
  status: oneOf(["SUCCESS", "FAILED", "RUNNING", "SKIPPED"]),
  computeCount: Type.Optional(Type.Integer()),
  storageCount: Type.Optional(Type.Integer()),
  message: Type.Optional(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String(), { description: "Checks that failed and only warn." })),
  generation: Type.Optional(Type.Integer()),
  followUp: Type.Optional(Type.Boolean({ description: "It runs again as soon as the present run has ended." })),
});
export type Triggered = Static<typeof TriggeredReply>;
export const ArrivalReply = Type.Object({
  status: oneOf(["SUCCESS", "IGNORED"]),
  message: Type.Optional(Type.String()),
  hint: Type.Optional(
    Type.String({ description: "The table or opTime that was probably meant, if no model uses the announced one." }),
  ),
  triggeredModels: Type.Array(TriggeredReply),
  waitingModels: Type.Array(Type.String()),
  skippedModels: Type.Array(Type.String()),
});
export type ArrivalReply = Static<typeof ArrivalReply>;
/** Other headers are accepted and ignored. */
export const ArrivalHeaders = Type.Object({
  "idempotency-key": Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e]+$" })),
});

const Dependency = Body({
  table: Table,
  optional: Type.Optional(Type.Boolean({ description: "The model does not wait for it, or only until its deadline." })),
  quietSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400,
      description: "The model runs once the table has not arrived again for this long.",
    }),
  ),
  deadline: Type.Optional(
    Type.String({
      maxLength: 32,
      examples: ["PT6H"],
      description: "The table is late when this much time has passed since the end of the period.",
    }),
  ),
  grain: Type.Optional(GrainName),
  offset: Type.Optional(Type.Integer({ description: "In periods of the model: -1 is the one before." })),
});
const Count = Type.Integer({ minimum: 0, maximum: 2_147_483_647 });
const Expect = Body(
  {
    rows: Type.Optional(Body({ min: Type.Optional(Count), max: Type.Optional(Count) }, "How many rows it returns.")),
    kpis: Type.Optional(oneOf(["all"], "Every KPI that the model declares has a value, also with `allowEmpty`.")),
    that: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), {
        maxItems: 100,
        description:
          "Conditions in CEL over `count` (rows returned), `kpis` (by id: `count`, `sum`, `min`, `max` of its values) and " +
          "`rows` (`kpi_id`, `value`, `dimensions`).",
        examples: [['kpis["KD1001"].min >= 0.0']],
      }),
    ),
    onFail: Type.Optional(
      oneOf(["fail", "warn"], "`fail` stores nothing and tells no subscriber; `warn` only shows what failed."),
    ),
  },
  "Checks of the result, before anything is stored.",
);
const modelFields = Body({
  name: Name,
  description: Type.Optional(Nullable(Type.String({ maxLength: 10_000 }))),
  engine: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  sql: Type.Optional(Type.String({ minLength: 1, maxLength: SQL_LENGTH_MAX })),
  chain: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  dependencies: Type.Array(Dependency, { minItems: 1, maxItems: 1_000 }),
  kpis: Type.Array(KpiId, { maxItems: 10_000, uniqueItems: true }),
  grain: Type.Optional(Nullable(GrainName)),
  timeZone: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  produces: Type.Optional(Nullable(Table)),
  rerun: Type.Optional(oneOf(RERUN_POLICIES)),
  timeoutSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
  retry: Type.Optional(Nullable(RetryFields)),
  expect: Type.Optional(Nullable(Expect)),
  allowEmpty: Type.Optional(
    Type.Boolean({ description: "No rows, and KPIs without a value, are fine. Otherwise such a run is FAILED." }),
  ),
});
/** Without an example the reference page generates one with both `sql` and `chain`, which is refused. */
export const ModelBody = Object.assign(modelFields, {
  examples: [
    {
      name: "Orders of the day",
      sql: "select 'KD1001' as kpi_id, count(*) as value from DW_FACT_ORDER_D where op_time = $op_time",
      dependencies: [{ table: "DW_FACT_ORDER_D" }],
      kpis: ["KD1001"],
    },
  ],
});
export const ModelPutParams = Body({ modelId: ModelId });
export const ModelParams = Body({ modelId: AnyId });
export const ModelsQuery = Body({
  ...PageQuery,
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  state: Type.Optional(Type.Integer({ minimum: 0, maximum: 1 })),
});
const ReplyDependency = Type.Object({
  table: Type.String(),
  optional: Type.Boolean(),
  quietSeconds: Type.Integer(),
  deadline: Nullable(Type.String()),
  grain: Nullable(GrainName),
  offset: Type.Integer(),
});
export const ModelReply = Type.Object({
  modelId: Type.String(),
  name: Type.String(),
  description: Nullable(Type.String()),
  state: Type.Integer({ description: "1 is published." }),
  engine: Nullable(Type.String()),
  sql: Nullable(Type.String()),
  chain: Nullable(Type.String()),
  dependencies: Type.Array(ReplyDependency),
  kpis: Type.Array(Type.String()),
  grain: Nullable(GrainName),
  timeZone: Type.String(),
  produces: Nullable(Type.String()),
  rerun: oneOf(RERUN_POLICIES),
  timeoutSeconds: Type.Integer(),
  retry: Nullable(RetryFields),
  expect: Nullable(
    Type.Object({
      rows: Type.Optional(Type.Object({ min: Type.Optional(Type.Integer()), max: Type.Optional(Type.Integer()) })),
      kpis: Type.Optional(oneOf(["all"])),
      that: Type.Optional(Type.Array(Type.String())),
      onFail: Type.Optional(oneOf(["fail", "warn"])),
    }),
  ),
  allowEmpty: Type.Boolean(),
  version: Type.Integer(),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
});
export const ModelsReply = Page(ModelReply);

export const RunBody = Body({
  opTime: OpTime,
  force: Type.Boolean({ default: false, description: "Run it even if tables are missing." }),
});
export const BackfillBody = Body({
  from: Type.Optional(OpTime),
  to: Type.Optional(OpTime),
  opTimes: Type.Optional(
    Type.Array(OpTime, {
      minItems: 1,
      maxItems: 1_000,
      uniqueItems: true,
      description: "Exactly these, instead of a range.",
    }),
  ),
  dryRun: Type.Boolean({ default: false }),
});
export const BackfillReply = Type.Object({
  dryRun: Type.Boolean(),
  runs: Type.Integer({ description: "The number of opTimes that run, or would run." }),
  items: Type.Array(Type.Object({ opTime: Type.String(), runs: Type.Boolean(), missing: Type.Array(Type.String()) })),
});

const indicatorFields = Body({
  type: oneOf(["EXTENDED", "COMPUTED"]),
  name: Name,
  expression: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096, examples: ["KD1001 / KD1002 * 100"] })),
  dependsOn: Type.Optional(Type.Array(KpiId, { maxItems: 1_000, uniqueItems: true })),
});
export const IndicatorBody = Object.assign(indicatorFields, {
  examples: [{ type: "COMPUTED", name: "Orders, doubled", expression: "KD1001 * 2" }],
});
export const KpiPutParams = Body({ kpiId: KpiId });
export const KpiParams = Body({ kpiId: AnyId });
export const KpisQuery = Body({
  ...PageQuery,
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  type: Type.Optional(oneOf(["EXTENDED", "COMPUTED"])),
});
export const KpiReply = Type.Object({
  kpiId: Type.String(),
  type: oneOf(["EXTENDED", "COMPUTED"]),
  name: Type.String(),
  expression: Nullable(Type.String()),
  dependsOn: Type.Array(Type.String()),
  modelId: Nullable(Type.String()),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
});
export const KpisReply = Page(KpiReply);

export const Dimension = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);
export const DataQuery = Body({
  ...PageQuery,
  kpiId: Type.Optional(KpiId),
  opTime: Type.Optional(OpTime),
  from: Type.Optional(OpTime),
  to: Type.Optional(OpTime),
  dimensions: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description: "A JSON object; only values with these dimensions.",
      examples: ['{"region":"EU"}'],
    }),
  ),
  order: Type.Optional(
    oneOf(
      VALUE_ORDERS,
      "Of indicator and opTime: `asc` unless it is given. `desc` has the newest opTime of an indicator first.",
    ),
  ),
});
export const DataReply = Page(
  Type.Object({
    kpiId: Type.String(),
    opTime: Type.String(),
    value: Nullable(
      Type.Number({
        description:
          "Rounded to a double. Null beyond 2^53 if a double does not hold it exactly, and where it would be rounded to 0.",
        examples: [0.3333333333333333],
      }),
    ),
    valueText: Type.String({
      description: "The exact decimal, without an exponent.",
      examples: ["0.33333333333333333333"],
    }),
    dimensions: Type.Record(Type.String(), Dimension),
    modelId: Nullable(Type.String()),
    generation: Type.Integer(),
    updatedAt: ReplyTime,
  }),
);

export const TasksQuery = Body({
  ...PageQuery,
  modelId: Type.Optional(AnyId),
  opTime: Type.Optional(OpTime),
  status: Type.Optional(oneOf(TASK_STATUSES)),
});
const Cause = Type.Object({ table: Type.String(), opTime: Type.String() });
const TaskReply = Type.Object({
  id: Type.String(),
  modelId: Type.String(),
  opTime: Type.String(),
  status: oneOf(TASK_STATUSES),
  startTime: ReplyTime,
  endTime: Nullable(ReplyTime),
  message: Nullable(Type.String()),
  computeCount: Nullable(Type.Integer()),
  storageCount: Nullable(Type.Integer()),
  warnings: Type.Array(Type.String(), { description: "Checks that failed and only warn." }),
  generation: Type.Integer(),
  attempt: Type.Integer({ description: "1 for the first of its generation; see `retry` of models." }),
  trigger: Type.String(),
  causedBy: Nullable(Cause),
  consumed: Type.Record(Type.String(), Type.String(), {
    description: "The arrivals that it used: the sequence of each, by table and opTime.",
  }),
  worker: Type.String(),
  chainRunId: Nullable(Type.String()),
  retryAt: Nullable(
    Type.Unsafe<Date>({
      type: "string",
      format: "date-time",
      description: "When it is tried again, if it has failed and its next attempt has not begun.",
    }),
  ),
});
export const TasksReply = Page(TaskReply);

export const AnnouncedBy = Nullable(
  Type.String({
    description: "Who announced it last: `key <name>`, `run <id> node <id>`, `model <id>`, `file <name>` or `harvest`.",
    examples: ["key loader"],
  }),
);
export const ArrivalsQuery = Body({ ...PageQuery, table: Type.Optional(Table), opTime: Type.Optional(OpTime) });
export const ArrivalsReply = Page(
  Type.Object({
    table: Type.String(),
    opTime: Type.String(),
    arrivalTime: ReplyTime,
    firstTime: ReplyTime,
    arrivals: Type.Integer(),
    sequence: Type.String(),
    announcedBy: AnnouncedBy,
    retractedAt: Nullable(ReplyTime),
    retractedBy: Nullable(Type.String()),
  }),
);

export const UsualAt = Nullable(
  Type.Unsafe<Date>({
    type: "string",
    format: "date-time",
    description:
      "When it usually arrives: the median of the 14 opTimes before it, counted from the end of the period, without those that came together or more than 7 periods later. Null if none is left.",
  }),
);
export const WhyQuery = Body({ opTime: OpTime });
export const WhyReply = Type.Object({
  modelId: Type.String(),
  opTime: Type.String(),
  state: Type.String(),
  verdict: Type.String({ description: "Why it has run or has not, in a sentence." }),
  tables: Type.Array(
    Type.Object({
      table: Type.String(),
      opTime: Type.String(),
      optional: Type.Boolean(),
      missing: Type.Boolean(),
      deadline: Nullable(ReplyTime),
      arrivedAt: Nullable(ReplyTime),
      sequence: Nullable(Type.String()),
      announcedBy: AnnouncedBy,
      retractedAt: Nullable(ReplyTime),
      retractedBy: Nullable(Type.String()),
      usualAt: UsualAt,
      consumedBy: Nullable(Type.Object({ taskId: Type.String(), generation: Type.Integer() })),
    }),
  ),
  retry: Nullable(
    Type.Object(
      { attempt: Type.Integer(), maxAttempts: Type.Integer(), at: ReplyTime },
      { description: "The next attempt of a run that has failed." },
    ),
  ),
  runs: Type.Array(TaskReply),
  wouldRun: Type.Array(Type.String()),
  computed: Type.Array(Type.Object({ kpiId: Type.String(), missing: Type.Array(Type.String()) })),
});

export const RangeQuery = Body({ from: OpTime, to: OpTime });
export const ReadinessReply = Type.Object({
  opTimes: Type.Array(Type.String()),
  tables: Type.Array(
    Type.Object({
      table: Type.String(),
      cells: Type.Record(Type.String(), Type.Object({ arrivedAt: ReplyTime, arrivals: Type.Integer() })),
    }),
  ),
  models: Type.Array(
    Type.Object({
      modelId: Type.String(),
      cells: Type.Record(
        Type.String(),
        Type.Object({ state: Type.String(), generation: Type.Integer(), last: Nullable(oneOf(TASK_STATUSES)) }),
      ),
    }),
  ),
  partial: Type.Boolean(),
});
