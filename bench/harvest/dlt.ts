/** dlt, the peer, in the Python that MILLRACE_BENCH_DLT_PYTHON names. Only `pipeline.run` is timed, not the start of Python. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { urlOf } from "../connection-url.ts";
import type { Contender } from "../measure.ts";
import type { BenchPostgres } from "../postgres.ts";
import { type BenchSource, RECORDS } from "./source.ts";

export const DLT_VERSION = "1.31";
const SCRIPT = fileURLToPath(new URL("./dlt_harvest.py", import.meta.url));
/** Two processes normalise and two threads load; files are cut so that both have some. */
const TUNED = { NORMALIZE__WORKERS: "2", LOAD__WORKERS: "2", DATA_WRITER__FILE_MAX_ITEMS: "10000" };

/** None where there is no Python with dlt. */
export function dltContenders({ connection }: BenchPostgres, { baseUrl }: BenchSource, pageSize: number): Contender[] {
  const python = process.env["MILLRACE_BENCH_DLT_PYTHON"];
  if (python === undefined) {
    console.error(
      `dlt is left out. To compare with it: python3 -m venv DIR && DIR/bin/pip install 'dlt[postgres]==${DLT_VERSION}.*', then MILLRACE_BENCH_DLT_PYTHON=DIR/bin/python`,
    );
    return [];
  }
  const contender = (name: string, tuned: boolean): Contender => ({
    name,
    async round() {
      const given = { baseUrl, pageSize, tuned, postgres: urlOf(connection), dataset: "bench_dlt" };
      const { seconds, rows } = await runPython(python, given, tuned ? TUNED : {});
      if (rows !== RECORDS) throw new Error(`${name} has ${rows} records of ${RECORDS}`);
      return rows / seconds;
    },
  });
  return [contender(`dlt ${DLT_VERSION}, default`, false), contender(`dlt ${DLT_VERSION}, tuned`, true)];
}

async function runPython(
  python: string,
  given: object,
  env: Record<string, string>,
): Promise<{ seconds: number; rows: number }> {
  const child = spawn(python, [SCRIPT, JSON.stringify(given)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], RUNTIME__DLTHUB_TELEMETRY: "false", ...env },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`dlt ended with ${code}`);
  return JSON.parse(output.trim().split("\n").at(-1) ?? "") as { seconds: number; rows: number };
}
