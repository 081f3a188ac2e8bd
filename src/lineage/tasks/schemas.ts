/** The bodies of the task routes, with the field names of the seed's tables in camel case. */
import { Type } from "typebox";
import { Body, Nullable, Page, PageQuery, ReplyTime } from "../../kernel/http/schemas.ts";
import { EmbeddingModel, SummaryModel, TenantModel } from "./model.ts";
import { RESETTABLE, TASK_STATUSES, TASK_TYPES } from "./states.ts";

/** In a path any text is taken: what is no id belongs to nothing, and is answered like an unknown one. */
const Id = Type.String({ minLength: 1, maxLength: 256 });
export const TenantParams = Body({ tenantId: Id });
export const TaskParams = Body({ tenantId: Id, taskId: Id });

const example = {
  embedding: { provider: "builtin", model: "hash-v1", dimension: 384 },
  summary: { provider: "builtin", model: "rules-v1" },
};
export const ModelBody = Object.assign(
  Body({
    embedding: Type.Optional(
      Type.Object(
        {
          ...EmbeddingModel.properties,
          dimension: Type.Optional(
            Type.Integer({ minimum: 8, maximum: 8_192, description: "Of the built-in model 384 by default." }),
          ),
        },
        { additionalProperties: false },
      ),
    ),
    summary: Type.Optional(SummaryModel),
  }),
  { minProperties: 1, examples: [example] },
);
export const ModelReply = Type.Object({ model: Nullable(TenantModel) });

const task = {
  id: Type.String(),
  type: Type.Enum(TASK_TYPES),
  resourceType: Type.String(),
  resourceId: Type.String({ description: "The id of the asset." }),
  contentHash: Type.String(),
  modelFingerprint: Type.String(),
  status: Type.Enum(TASK_STATUSES),
  priority: Type.Integer(),
  retryCount: Type.Integer(),
  maxRetry: Type.Integer(),
  nextRunAt: ReplyTime,
  lastError: Nullable(Type.String()),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
};
export const TaskReply = Type.Object(task);
const Attempt = Type.Object({
  attemptNo: Type.Integer(),
  workerId: Type.String(),
  startedAt: ReplyTime,
  finishedAt: Nullable(ReplyTime),
  status: Type.String(),
  batchNo: Nullable(Type.String()),
  inputSize: Nullable(Type.Integer()),
  latencyMs: Nullable(Type.Integer()),
  errorType: Nullable(Type.String()),
  errorMessage: Nullable(Type.String()),
});
export const TaskDetail = Type.Object({
  ...task,
  attempts: Type.Array(Attempt, { description: "The last 100, oldest first." }),
});
export const TasksQuery = Body({
  ...PageQuery,
  status: Type.Optional(Type.Enum(TASK_STATUSES)),
  type: Type.Optional(Type.Enum(TASK_TYPES)),
});
export const TasksReply = Page(TaskReply);

export const ResetBody = Body({ status: Type.Enum(RESETTABLE) });
export const ResetReply = Type.Object({ reset: Type.Integer() });

export const BatchesQuery = Body({ ...PageQuery, type: Type.Optional(Type.Enum(TASK_TYPES)) });
export const BatchesReply = Page(
  Type.Object({
    batchNo: Type.String(),
    type: Type.Enum(TASK_TYPES),
    modelFingerprint: Type.String(),
    workerId: Type.String(),
    plannedSize: Type.Integer(),
    successCount: Type.Integer(),
    failedCount: Type.Integer(),
    startedAt: ReplyTime,
    finishedAt: Nullable(ReplyTime),
    status: Type.String(),
  }),
);
