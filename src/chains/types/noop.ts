/** A node that does nothing: a place where branches meet, or where one will be filled in later. */
import { Type } from "typebox";
import { nodeType } from "./node-type.ts";

export const noop = nodeType({
  type: "noop",
  blind: true,
  summary: "Does nothing and succeeds.",
  cfg: Type.Object({}, { additionalProperties: false }),
  execute: async () => ({}),
});
