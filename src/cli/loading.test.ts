/** A command imports only what it needs: scripts run clients in loops, and each package costs tens of milliseconds. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

/** All static imports of a file, recursively: our files by path, packages by name. Type imports do not count. */
function loadedBy(entry: string): Set<string> {
  const loaded = new Set<string>();
  const queue = [entry];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (loaded.has(path)) continue;
    loaded.add(path);
    for (const [, names = "", target = ""] of readFileSync(path, "utf8").matchAll(
      /^(?:import|export) ([^;"]*?) from "([^"]+)"/gm,
    )) {
      if (names.startsWith("type ")) continue;
      if (target.startsWith(".")) queue.push(join(dirname(path), target));
      else if (!target.startsWith("node:")) loaded.add(`package ${target}`);
    }
  }
  return loaded;
}

const packagesIn = (loaded: Set<string>) => [...loaded].filter((name) => name.startsWith("package "));

test.each([
  "src/cli.ts",
  "src/cli/pipeline/index.ts",
  "src/cli/chain/index.ts",
  "src/cli/kpi/index.ts",
  "src/cli/harvest/index.ts",
  "src/cli/lineage/index.ts",
  "src/cli/kpi/arrive.ts",
  "src/cli/console.ts",
  "src/cli/keys.ts",
  "src/cli/secrets.ts",
  "src/cli/doctor.ts",
])("%s loads no package", (path) => {
  const loaded = loadedBy(path);
  expect(packagesIn(loaded)).toEqual([]);
  expect(loaded).not.toContain("src/app.ts");
});

test("serve and migrate load no client", () => {
  for (const path of ["src/cli/serve.ts", "src/cli/migrate.ts"])
    expect(loadedBy(path)).not.toContain("src/cli/common/client.ts");
});

test("the search finds existing imports", () => {
  expect(packagesIn(loadedBy("src/app.ts"))).toContain("package fastify");
  expect(loadedBy("src/cli/pipeline/index.ts")).toContain("src/cli/common/client.ts");
});
