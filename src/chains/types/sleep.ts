/** A node that waits. Meanwhile it holds one of the worker's slots, but no connection and no thread. */
import { setTimeout as sleepFor } from "node:timers/promises";
import { Type } from "typebox";
import { nodeType } from "./node-type.ts";

const MS_MAX = 7 * 24 * 3_600_000;

export const sleep = nodeType({
  type: "sleep",
  readsParents: false,
  summary: "Waits for a number of milliseconds.",
  cfg: Type.Object({ ms: Type.Integer({ minimum: 0, maximum: MS_MAX }) }, { additionalProperties: false }),
  async execute({ signal }, { ms }) {
    await sleepFor(ms, undefined, { signal });
    return {};
  },
});
