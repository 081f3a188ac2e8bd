/** The version of this build, read from the package so that it is said in one place. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "./kernel/package-root.ts";

const text = readFileSync(join(PACKAGE_ROOT, "package.json"), "utf8");
export const VERSION = (JSON.parse(text) as { version: string }).version;
