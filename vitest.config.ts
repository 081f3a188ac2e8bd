/** How the tests run: each file in the cheapest way that is safe for it. `test/projects.ts` tells which file goes where. */
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { type Project, testFiles } from "./test/projects.ts";

const files = testFiles();
/** Each test waits for what it needs only: pure ones for nothing, and those of one process not for a build. */
const postgres = ["test/postgres-setup.ts"];
const postgresAndBuild = ["test/build-setup.ts", ...postgres];

/**
 * Workers are more than the cores of a small machine: most tests wait for Postgres, and processes for each other. With four, two cores
 * are idle for a sixth of the time. All projects are one group, so that none waits for the longest test of the one before; vitest runs
 * them in the order of their names, pure ones last.
 */
const together = { maxWorkers: 6, sequence: { groupOrder: 0 } };

export default defineConfig({
  test: {
    // Real servers and processes on a busy machine: a test that needs longer than this hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    experimental: { fsModuleCache: true },
    // Not threads: their stack is four times as large as that of the product, and some tests meet with its end.
    pool: "forks",
    projects: [
      project("pure", { ...together, isolate: false }),
      project("database", { ...together, isolate: false, globalSetup: postgres }),
      project("isolated", { ...together, globalSetup: postgresAndBuild }),
      project("processes", { ...together, isolate: false, globalSetup: postgresAndBuild }),
    ],
  },
});

function project(name: Project, test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return { extends: true, test: { name, include: files[name], ...test } };
}
