/**
 * DBOS Transact, the peer: a run is a workflow, a node is a durable step of it. Tuned as far as it lets itself be: logging,
 * tracing and notifications off, which no step needs.
 */
import { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";
import type { Connection } from "../../src/kernel/data/db.ts";
import { type Engine, keepInFlight } from "./engine.ts";

const POOL_SIZE = 10; // Its default; 6, 14, 20 and 50 were not faster.
const quiet = { info() {}, debug() {}, warn: console.error, error: console.error };

export async function dbos(connection: Connection): Promise<Engine> {
  const pool = new pg.Pool({ ...connection, max: POOL_SIZE });
  let onNode = (_runId: string) => {};
  const node = async () => onNode(DBOS.workflowID ?? "");
  // Steps are numbered as they are started, and a recovery must meet the same numbers: whole layers, one after the other, are
  // the most that may run side by side. Starting a node as soon as its own parents are done would not be deterministic.
  const workflow = DBOS.registerWorkflow(
    async (widths: number[]) => {
      for (const width of widths) {
        await Promise.all(Array.from({ length: width }, () => DBOS.runStep(node, { name: "node" })));
      }
    },
    { name: "layers" },
  );
  DBOS.setConfig({ name: "bench", systemDatabasePool: pool, logger: quiet, useListenNotify: false });
  await DBOS.launch();
  return {
    name: "DBOS 5.3",
    async run(load, observe) {
      onNode = observe;
      const widths = load.shape.layers.map((layer) => layer.length);
      await keepInFlight(load, () => workflow(widths));
    },
    async end() {
      await DBOS.shutdown();
      await pool.end();
    },
  };
}
