/**
 * Node types that leave a mark in a file for each thing they do, so that a test sees what ran, how often and where,
 * whatever the database says. `work` takes some time; `gated` goes on until the test opens its gate.
 */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 5;
const folder = process.env["CHAOS_FOLDER"] ?? "";

/** @typedef {import("../../src/chains/types/node-type.ts").NodeContext} NodeContext */

/** One short line appended at once is never torn, however many processes append. */
const mark = (/** @type {string} */ what, /** @type {NodeContext} */ { runId, nodeId, attempt }) =>
  appendFileSync(join(folder, "marks"), `${JSON.stringify({ what, runId, nodeId, attempt, pid: process.pid })}\n`);

/** Tells whose result it is, and adds up what the parents brought, so that a wrong or missing one shows at the end. */
function resultOf(/** @type {NodeContext} */ { attempt, parents }) {
  const brought = Object.values(parents).map(({ artifact }) => /** @type {{ value: number }} */ (artifact).value);
  return { artifact: { attempt, pid: process.pid, value: brought.reduce((sum, value) => sum + value, 1) } };
}

export default [
  {
    type: "work",
    cfg: { type: "object", properties: { ms: { type: "number" }, failures: { type: "number" } }, required: ["ms"] },
    async execute(/** @type {NodeContext} */ ctx, /** @type {{ ms: number, failures?: number }} */ cfg) {
      mark("began", ctx);
      await sleep(cfg.ms, undefined, { signal: ctx.signal });
      if (ctx.attempt <= (cfg.failures ?? 0)) throw new Error("it was told to fail");
      mark("did", ctx);
      return resultOf(ctx);
    },
  },
  {
    type: "gated",
    cfg: { type: "object", properties: { deaf: { type: "boolean" } } },
    async execute(/** @type {NodeContext} */ ctx, /** @type {{ deaf?: boolean }} */ { deaf = false }) {
      const gate = join(folder, `gate ${ctx.runId} ${ctx.nodeId} ${ctx.attempt}`);
      mark("began", ctx);
      await new Promise((resolve, reject) => {
        const looking = setInterval(() => {
          if (!deaf && ctx.signal.aborted) reject(ctx.signal.reason);
          else if (existsSync(gate)) resolve(undefined);
          else return;
          clearInterval(looking);
        }, LOOK_EVERY_MS);
      });
      mark("did", ctx);
      return resultOf(ctx);
    },
  },
];
