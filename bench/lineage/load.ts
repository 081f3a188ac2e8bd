/** Events from a process of their own, so that making them takes nothing from the server that is measured. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { SparkLoad } from "./spark-events.ts";

export interface LineageLoad {
  url: string;
  key: string;
  events: number;
  /** Events to a request. */
  batch: number;
  connections: number;
  spark: SparkLoad;
}

export interface LoadResult {
  /** Events/s. */
  perSecond: number;
  /** Of each request, in ms. */
  latencies: number[];
}

export async function lineageLoad(load: LineageLoad): Promise<LoadResult> {
  const script = fileURLToPath(new URL("./load-process.ts", import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, script, JSON.stringify(load)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`the load process ended with ${code}`);
  return JSON.parse(output) as LoadResult;
}
