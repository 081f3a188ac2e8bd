/** A node that runs another chain and ends as that run does. Its next attempt goes on with the same run. */
import { Type } from "typebox";
import { nodeType } from "./node-type.ts";

export const chain = nodeType({
  type: "chain",
  blind: true,
  storesCfg: true,
  summary: "Runs another chain and waits for it.",
  cfg: Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 128, description: "The name of the chain." }),
      params: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      opTime: Type.Optional(Type.String({ description: "Without it, the opTime of this run." })),
    },
    { additionalProperties: false },
  ),
  execute: async ({ opTime }, cfg) => ({
    subRun: { of: { chain: cfg.name }, params: cfg.params ?? {}, opTime: cfg.opTime ?? opTime },
  }),
});
