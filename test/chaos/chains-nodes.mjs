/**
 * Node types that write a mark to a file for each step, so that a test sees what ran, how often and where, independently of
 * the database. `work` takes some time; `gated` runs until the test opens its gate.
 */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 5;
const folder = process.env["CHAOS_FOLDER"] ?? "";

/** @typedef {import("../../src/chains/types/node-type.ts").NodeContext} NodeContext */

/** A short line is appended atomically, even by several processes. */
const mark = (/** @type {string} */ what, /** @type {NodeContext} */ { runId, nodeId, attempt }) =>
  appendFileSync(join(folder, "marks"), `${JSON.stringify({ what, runId, nodeId, attempt, pid: process.pid })}\n`);

/** Holds attempt and pid, and the sum of the parents' values, so that a wrong or missing result changes the last value. */
function resultOf(/** @type {NodeContext} */ { attempt, parents }) {
  const values = Object.values(parents).map(({ artifact }) => /** @type {{ value: number }} */ (artifact).value);
  return { artifact: { attempt, pid: process.pid, value: values.reduce((sum, value) => sum + value, 1) } };
}

export default [
  {
    type: "work",
    cfg: { type: "object", properties: { ms: { type: "number" }, failures: { type: "number" } }, required: ["ms"] },
    async execute(/** @type {NodeContext} */ ctx, /** @type {{ ms: number, failures?: number }} */ cfg) {
      mark("began", ctx);
      await sleep(cfg.ms, undefined, { signal: ctx.signal });
      if (ctx.attempt <= (cfg.failures ?? 0)) throw new Error("it fails on purpose");
      mark("did", ctx);
      return resultOf(ctx);
    },
  },
  {
    type: "gated",
    cfg: { type: "object", properties: { ignoresAbort: { type: "boolean" } } },
    async execute(/** @type {NodeContext} */ ctx, /** @type {{ ignoresAbort?: boolean }} */ { ignoresAbort = false }) {
      const gate = join(folder, `gate ${ctx.runId} ${ctx.nodeId} ${ctx.attempt}`);
      mark("began", ctx);
      await new Promise((resolve, reject) => {
        const polling = setInterval(() => {
          if (!ignoresAbort && ctx.signal.aborted) reject(ctx.signal.reason);
          else if (existsSync(gate)) resolve(undefined);
          else return;
          clearInterval(polling);
        }, POLL_MS);
      });
      mark("did", ctx);
      return resultOf(ctx);
    },
  },
];
