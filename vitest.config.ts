/** How the tests run: each file in the cheapest way that is safe for it. `test/projects.ts` says of which kind a file is. */
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { testFiles } from "./test/projects.ts";
import Sequencer from "./test/sequencer.ts";

const { isolated, ...shared } = testFiles();

export default defineConfig({
  test: {
    // Real servers and processes on a busy machine: a test that needs longer than this hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    experimental: { fsModuleCache: true },
    // Not threads: their stack is four times as large as that of the product, and some tests meet with its end.
    pool: "forks",
    sequence: { sequencer: Sequencer },
    projects: [
      // One worker loads a module once for all of its files, whatever their kind.
      project("shared", Object.values(shared).flat(), { isolate: false }),
      project("isolated", isolated, {}),
    ],
  },
});

function project(
  name: string,
  include: string[],
  test: TestProjectInlineConfiguration["test"],
): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name,
      include,
      // More workers than the cores of a small machine: most tests wait for Postgres, and processes for each other. With four, two cores
      // are idle for a sixth of the time.
      maxWorkers: 5,
      sequence: { groupOrder: 0 },
      globalSetup: ["test/build-setup.ts", "test/postgres-setup.ts"],
      ...test,
    },
  };
}
