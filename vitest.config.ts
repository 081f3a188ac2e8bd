/** How the tests run: each file in the cheapest way that is safe for it. `test/projects.ts` tells which file goes where. */
import { defineConfig } from "vitest/config";
import { testFiles } from "./test/projects.ts";

const { isolated, processes, database, pure } = testFiles();
/** Starts the Postgres of the run and builds the product; what needs neither does not wait for it. */
const globalSetup = ["test/global-setup.ts"];

export default defineConfig({
  test: {
    // Real servers and processes on a busy machine: a test that needs longer than this hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: pure,
          pool: "forks",
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "isolated",
          include: isolated,
          globalSetup,
          pool: "forks",
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "database",
          include: database,
          globalSetup,
          pool: "forks",
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "processes",
          include: processes,
          globalSetup,
          pool: "forks",
          isolate: false,
          // They mostly wait for each other.
          maxWorkers: 4,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
