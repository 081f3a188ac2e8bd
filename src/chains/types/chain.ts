/** A node that runs another chain and ends with the status of that run. Its next attempt continues the same run. */
import { Type } from "typebox";
import { nodeType } from "./node-type.ts";

export const chain = nodeType({
  type: "chain",
  readsParents: false,
  storesCfg: true,
  summary: "Runs another chain and waits for it.",
  cfg: Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 128, description: "The name of the chain." }),
      params: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      opTime: Type.Optional(Type.String({ description: "Default: the opTime of this run." })),
    },
    { additionalProperties: false },
  ),
  execute: async ({ opTime }, cfg) => ({
    subRun: { of: { chain: cfg.name }, params: cfg.params ?? {}, opTime: cfg.opTime ?? opTime },
  }),
});
