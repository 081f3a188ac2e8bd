/** The node type `harvest` for chains: harvests a window of a source, and waits until it has landed. */
import { Type } from "typebox";
import { type NodeType, nodeType } from "../../chains/index.ts";
import { NAME_PATTERN, ParamValues } from "../definition/definition.ts";
import { Edge, LastWindow } from "../plan/schemas.ts";
import { OPERATIONS } from "../spec/snapshot.ts";
import type { NodeWaits } from "./node-waits.ts";

const Cfg = Type.Object(
  {
    source: Type.String({ pattern: NAME_PATTERN }),
    endpoint: Type.Optional(
      Type.String({ pattern: NAME_PATTERN, description: "Unset: the source's default endpoint." }),
    ),
    window: Type.Optional(
      Type.Union(
        [
          Type.String({ minLength: 1, maxLength: 255, description: "An opTime: an hour, a day or a month." }),
          Type.Object({ from: Edge, to: Edge }, { additionalProperties: false }),
          LastWindow,
        ],
        {
          description:
            "`to` is exclusive. Unset: the opTime of the run; for a run without one, what is new since the watermark. UPDATE takes none.",
        },
      ),
    ),
    operation: Type.Enum(OPERATIONS, { default: "HARVEST" }),
    params: Type.Optional(ParamValues),
    priority: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000, description: "Smaller goes first." })),
  },
  { additionalProperties: false },
);

/** The sources that nodes can name. */
export interface SourceNames {
  existing(names: readonly string[]): Promise<readonly string[]>;
  all(): Promise<readonly string[]>;
}

export function harvestType(deps: {
  nodeWaits: Pick<NodeWaits, "begin" | "parked">;
  sourceNames: SourceNames;
}): NodeType<typeof Cfg> {
  const { nodeWaits, sourceNames } = deps;
  return nodeType({
    type: "harvest",
    readsParents: false,
    storesCfg: true,
    summary: "Harvests a window of a source and waits until it has landed, without holding a slot.",
    cfg: Cfg,
    references: [{ field: "source", what: "source", ...sourceNames }],
    async execute({ key, runId, nodeId, opTime, log }, { window, ...cfg }) {
      const begun = await nodeWaits.begin({ key, runId, nodeId }, { ...cfg, window, opTime });
      if ("nothing" in begun) {
        log(`There is nothing to harvest. ${begun.nothing}`);
        return { artifact: { planId: null, nothing: begun.nothing } };
      }
      log(`It waits for the plan ${begun.planId}.`);
      return { wait: { id: begun.waitId, onParked: nodeWaits.parked } };
    },
  });
}
