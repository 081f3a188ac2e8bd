/** The recorded answers of real services. They are no part of the project: MILLRACE_HARVEST_DATA names the folder, if it is here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Recording {
  file: string;
  api: string;
  method: string;
  url: string;
  status: number;
  headers: Record<string, string>;
  request_body?: string;
  note: string;
  /** Pages that belong together, in the order of `seq`. */
  walk?: string;
  seq?: number;
  /** Fields that the origin did not keep: `status`, `url`. */
  assumed?: readonly string[];
}

/** Without a folder there are none, and a line on the console says why. */
export function recordingsOf(...apis: readonly string[]): Recording[] {
  const folder = process.env["MILLRACE_HARVEST_DATA"];
  if (folder === undefined) {
    console.warn(`MILLRACE_HARVEST_DATA is not set: recorded answers of ${apis.join(", ")} are not read`);
    return [];
  }
  const index = JSON.parse(readFileSync(join(folder, "index.json"), "utf8")) as Recording[];
  return index.filter(({ api }) => apis.includes(api));
}

export function recordedBody({ file }: Recording): Buffer {
  return readFileSync(join(process.env["MILLRACE_HARVEST_DATA"] ?? "", file));
}
