/** How the tests run: each file in the cheapest way that is safe for it. `test/projects.ts` tells which file goes where. */
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { type Project, testFiles } from "./test/projects.ts";

const files = testFiles();
/** Starts the Postgres of the run and builds the product. Pure tests need neither, and do not wait for them. */
const globalSetup = ["test/global-setup.ts"];

/** Workers are more than the cores of a small machine: most tests wait for Postgres, and processes for each other. */
const together = { maxWorkers: 3, sequence: { groupOrder: 0 } };
const afterwards = { maxWorkers: 4, sequence: { groupOrder: 1 } };

export default defineConfig({
  test: {
    // Real servers and processes on a busy machine: a test that needs longer than this hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Not threads: their stack is four times as large as that of the product, and some tests meet with its end.
    pool: "forks",
    projects: [
      project("pure", { ...together, isolate: false }),
      project("database", { ...together, isolate: false, globalSetup }),
      project("isolated", { ...together, globalSetup }),
      project("processes", { ...afterwards, isolate: false, globalSetup }),
    ],
  },
});

function project(name: Project, test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return { extends: true, test: { name, include: files[name], ...test } };
}
