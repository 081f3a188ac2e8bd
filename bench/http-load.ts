/** Requests from a process of their own, so that making them takes nothing from the server that is measured. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface HttpLoad {
  url: string;
  key: string;
  /** Of every request, as JSON text; `{n}` in it is the request's number. */
  body: string;
  amount: number;
}

/** Requests/s as seen by the load process. */
export async function httpLoad(load: HttpLoad): Promise<number> {
  const script = fileURLToPath(new URL("./http-load-process.ts", import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, script, JSON.stringify(load)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`the load process ended with ${code}`);
  return Number(output);
}
