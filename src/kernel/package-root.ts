/** The folder of this package, with `sql/`, `sources/` and the built page: this code runs from src/, from dist/ and from a bundle. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE_ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

function rootAbove(folder: string): string {
  if (existsSync(join(folder, "package.json"))) return folder;
  const parent = dirname(folder);
  if (parent === folder) throw new Error("the package.json of Millrace is missing");
  return rootAbove(parent);
}
