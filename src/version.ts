/** The version of this build, read from the package so that it is said in one place. */
import { readFileSync } from "node:fs";

const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
export const VERSION = (JSON.parse(text) as { version: string }).version;
