/** Node types for chains: `arrive` announces a table, `model` runs a model and waits for it. */
import { Type } from "typebox";
import { FinalFailure, type NodeType, nodeType } from "../chains/index.ts";
import { ApiError } from "../kernel/errors.ts";
import { isRecord } from "../kernel/json/is-record.ts";
import { OP_TIME_PATTERN } from "../kernel/time/op-time.ts";
import type { Arrivals } from "./arrivals.ts";

const OpTime = Type.Optional(Type.String({ pattern: OP_TIME_PATTERN, description: "Unset: the opTime of the run." }));
const ArriveCfg = Type.Object(
  { table: Type.String({ minLength: 1, maxLength: 255 }), opTime: OpTime },
  { additionalProperties: false },
);
const ModelCfg = Type.Object(
  {
    modelId: Type.String({ minLength: 1, maxLength: 255 }),
    opTime: OpTime,
    force: Type.Boolean({ default: false, description: "Run it even if tables are missing." }),
  },
  { additionalProperties: false },
);

export function arriveType({ announce }: Pick<Arrivals, "announce">): NodeType<typeof ArriveCfg> {
  return nodeType({
    type: "arrive",
    readsParents: false,
    storesCfg: true,
    summary: "Announces that a table has arrived for an opTime.",
    cfg: ArriveCfg,
    async execute({ key, ...ctx }, { table, ...cfg }) {
      const opTime = opTimeOf(cfg.opTime, ctx.opTime);
      const { considered, isNew: isNews } = await announce({ table, opTime, idempotencyKey: key });
      const triggered = considered.filter(({ verdict }) => verdict.kind === "ready").map(({ model_id }) => model_id);
      return { artifact: { table, opTime, isNews, triggeredModels: triggered } };
    },
  });
}

export function modelType({
  requests,
  runWaiters,
}: Pick<Arrivals, "requests" | "runWaiters">): NodeType<typeof ModelCfg> {
  return nodeType({
    type: "model",
    readsParents: false,
    storesCfg: true,
    summary: "Runs a model for an opTime and waits for its end.",
    cfg: ModelCfg,
    async execute({ signal, checkpoint, saveCheckpoint, ...ctx }, { modelId, force, ...cfg }) {
      const opTime = opTimeOf(cfg.opTime, ctx.opTime);
      const key = { model_id: modelId, op_time: opTime };
      let generation = generationIn(checkpoint, ctx.key);
      if (generation === undefined) {
        generation = await begin();
        // A process that takes over waits for this run and starts no other. After a failure the node has another key.
        await saveCheckpoint({ key: ctx.key, generation });
      }
      const task = await runWaiters.ended({ ...key, generation }, signal);
      signal.throwIfAborted();
      if (task?.status !== "SUCCESS")
        throw new Error(`Model \`${modelId}\` failed for ${opTime}: ${task?.message ?? "its run no longer exists"}`);
      const { id, compute_count, storage_count } = task;
      return { artifact: { taskId: id, computeCount: compute_count, storageCount: storage_count } };

      async function begin(): Promise<number> {
        for (;;) {
          try {
            return (await requests.run(modelId, { opTime, force }, null)).generation;
          } catch (error) {
            if (!(error instanceof ApiError)) throw error;
            if (error.code !== "MODEL_RUNNING") throw new FinalFailure(error.message);
            // That run may have started before the earlier nodes of this chain ended, so the model runs once more after it.
            await runWaiters.ended({ ...key, generation: Number(error.details["generation"]) }, signal);
            signal.throwIfAborted();
          }
        }
      }
    },
  });
}

function opTimeOf(own: string | undefined, ofRun: string | null): string {
  const opTime = own ?? ofRun;
  if (opTime === null) throw new FinalFailure("It needs an opTime: start the run with one, or set it in the cfg.");
  return opTime;
}

function generationIn(checkpoint: unknown, key: string): number | undefined {
  const generation = isRecord(checkpoint) && checkpoint["key"] === key ? checkpoint["generation"] : undefined;
  return typeof generation === "number" ? generation : undefined;
}
