import { mkdtempSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { ADMIN_KEY, startMillrace } from "../../test/millrace.ts";
import { ARRIVING_FILES } from "./definitions.ts";
import { OWN_TENANT } from "./lineage.ts";
import { type DemoOptions, runDemo } from "./run-demo.ts";

const database = useDatabase();
const dataDir = mkdtempSync(join(tmpdir(), "millrace-play-"));
afterAll(() => rm(dataDir, { recursive: true }));

/** Runs the demo on a Millrace of this process. */
async function run(options: Partial<DemoOptions> = {}) {
  const printed: string[] = [];
  /** What stood below the printed lines, each time that it was redrawn. */
  const drawn: string[][] = [];
  let closed = 0;
  const tablesDir = join(dataDir, "lake", "tables");
  await mkdir(tablesDir, { recursive: true });
  const code = await runDemo({
    async open({ privateHosts }) {
      const millrace = await startMillrace(database, {
        env: {
          MILLRACE_ROLES: "api,scheduler,worker",
          MILLRACE_SECRET_KEY: "0".repeat(64),
          MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true",
          MILLRACE_DATA_DIR: dataDir,
          MILLRACE_HARVEST_ALLOW_PRIVATE: privateHosts.join(","),
        },
        arrivals: { files: ARRIVING_FILES },
        lineage: { own: { enabled: true, ...OWN_TENANT } },
      });
      async function close() {
        await millrace.app.stop();
        closed += 1;
      }
      return { url: millrace.url, key: ADMIN_KEY, tablesDir, close };
    },
    once: true,
    json: false,
    output: {
      print: (text) => void printed.push(text),
      draw: (lines) => void drawn.push(lines.map(stripVTControlCharacters)),
      columns: () => 80,
    },
    stopping: new AbortController().signal,
    ...options,
  });
  return { code, closed, drawn, printed: printed.join("\n") };
}

test("Ctrl-C before the first call exits with 130, and closes the server", async () => {
  expect(await run({ stopping: AbortSignal.abort() })).toEqual({ code: 130, closed: 1, drawn: [], printed: "" });
});

test("the error of a server that cannot start is thrown", async () => {
  const open = () => Promise.reject(new Error("no space"));
  await expect(run({ open })).rejects.toThrow("no space");
});

test("once, it exits with 0 when every check holds, and a terminal shows the harvest as it goes on", async () => {
  const { code, closed, drawn, printed } = await run();
  expect(printed).toContain("All 33 checks hold");
  expect({ code, closed }).toEqual({ code: 0, closed: 1 });
  // A line for each source that is open, until all have landed.
  const days = drawn.flatMap((lines) => lines.flatMap((line) => /^crossref .*(\d) of 7 days/.exec(line)?.[1] ?? []));
  expect(days).toEqual(days.toSorted());
  expect(new Set(days).size).toBeGreaterThan(2);
  expect(Math.max(...drawn.map((lines) => lines.length))).toBe(3);
  expect(drawn.at(-1)).toEqual([]);
});

test("a scenario that is cut short by a refused call is one failed check, with the server's error", async () => {
  const { code, closed, printed } = await run({ json: true });
  const { passed, checks } = JSON.parse(printed) as { passed: boolean; checks: unknown[] };
  expect(checks).toMatchObject([{ what: "the scenario", passed: false, found: expect.stringContaining("`orders`") }]);
  expect({ code, closed, passed }).toEqual({ code: 1, closed: 1, passed: false });
});
