/** A node that does nothing: it joins branches, or stands for a node that is written later. */
import { Type } from "typebox";
import { nodeType } from "./node-type.ts";

export const noop = nodeType({
  type: "noop",
  readsParents: false,
  summary: "Does nothing and succeeds.",
  cfg: Type.Object({}, { additionalProperties: false }),
  execute: async () => ({}),
});
