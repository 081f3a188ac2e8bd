/** What `npm pack` puts into the package. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const COMPRESSIBLE = /\.(?:js|css|svg|json)$/;

test("the package has the console, with a compressed copy of each of its files", () => {
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  // The build is there already, and takes 20 s.
  const output = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd, encoding: "utf8" });
  const [{ files }] = JSON.parse(output) as [{ files: { path: string }[] }];
  const packed = new Set(files.map(({ path }) => path));
  const assets = [...packed].filter((path) => path.startsWith("dist/console/assets/") && COMPRESSIBLE.test(path));
  expect(packed).toContain("dist/console/index.html");
  expect(assets.some((path) => path.endsWith(".js"))).toBe(true);
  expect(assets.some((path) => path.endsWith(".css"))).toBe(true);
  expect(assets.flatMap((path) => [`${path}.br`, `${path}.gz`]).filter((path) => !packed.has(path))).toEqual([]);
});
