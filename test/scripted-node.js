/**
 * A node type for tests that run the whole of Millrace: what such a node does is a function of the test (see chains.ts).
 * It is loaded like a file of any user, so it meets the test only in a place that the whole process shares.
 */

/** @type {{ [name: symbol]: Map<string, (ctx: unknown, input: unknown) => unknown> }} */
const shared = globalThis;

export default {
  type: "scripted",
  summary: "Does what the test has written down for it.",
  cfg: {
    type: "object",
    required: ["script"],
    properties: { script: { type: "string" }, input: {} },
  },
  /**
   * @param {unknown} ctx
   * @param {{ script: string, input?: unknown }} cfg
   */
  execute: (ctx, { script, input }) => shared[Symbol.for("millrace.test.scripts")]?.get(script)?.(ctx, input),
};
