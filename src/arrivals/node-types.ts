/** Node types for chains: `arrive` announces a table, `model` runs a model and waits for it. */
import { Type } from "typebox";
import { FinalFailure, type NodeType, nodeType } from "../chains/index.ts";
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
    async execute({ key, runId, nodeId, ...ctx }, { table, ...cfg }) {
      const opTime = opTimeOf(cfg.opTime, ctx.opTime);
      const { considered, isNew: isNews } = await announce({
        table,
        opTime,
        idempotencyKey: key,
        by: `run ${runId} node ${nodeId}`,
      });
      const triggered = considered.filter(({ verdict }) => verdict.kind === "ready").map(({ model_id }) => model_id);
      return { artifact: { table, opTime, isNews, triggeredModels: triggered } };
    },
  });
}

export function modelType({
  nodeWaits,
  modelNames,
}: Pick<Arrivals, "nodeWaits" | "modelNames">): NodeType<typeof ModelCfg> {
  return nodeType({
    type: "model",
    readsParents: false,
    storesCfg: true,
    summary: "Runs a model for an opTime and waits for its end, without holding a slot.",
    cfg: ModelCfg,
    references: [{ field: "modelId", what: "model", ...modelNames }],
    async execute({ key, runId, nodeId, ...ctx }, { modelId, force, ...cfg }) {
      const instance = { model_id: modelId, op_time: opTimeOf(cfg.opTime, ctx.opTime) };
      // After a failure the node has another key, and the model runs again.
      const waitId = await nodeWaits.begin(key, { ...instance, run_id: runId, node_id: nodeId, force });
      return { wait: { id: waitId, onParked: () => nodeWaits.settleSoon({ waitId }) } };
    },
  });
}

function opTimeOf(own: string | undefined, ofRun: string | null): string {
  const opTime = own ?? ofRun;
  if (opTime === null) throw new FinalFailure("It needs an opTime: start the run with one, or set it in the cfg.");
  return opTime;
}
