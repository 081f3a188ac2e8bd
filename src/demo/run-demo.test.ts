import { mkdtempSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { ADMIN_KEY, startMillrace, type TestMillrace } from "../../test/millrace.ts";
import { ARRIVING_FILES, ordersChain } from "./definitions.ts";
import { OWN_TENANT } from "./lineage.ts";
import { type DemoOptions, runDemo } from "./run-demo.ts";

const database = useDatabase();
const dataDir = mkdtempSync(join(tmpdir(), "millrace-play-"));
afterAll(() => rm(dataDir, { recursive: true }));

interface RunOptions extends Partial<DemoOptions> {
  /** Before the scenario begins. */
  onOpen?(api: TestMillrace["api"]): Promise<unknown>;
}

/** Runs the demo on a Millrace of this process. The whole scenario runs in test/end-to-end/demo.test.ts. */
async function run({ onOpen = async () => {}, ...options }: RunOptions = {}) {
  const printed: string[] = [];
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
      await onOpen(millrace.api);
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
      draw: undefined,
      columns: () => 80,
    },
    stopping: new AbortController().signal,
    ...options,
  });
  return { code, closed, printed: printed.join("\n") };
}

test("Ctrl-C before the first call exits with 130, and closes the server", async () => {
  expect(await run({ stopping: AbortSignal.abort() })).toEqual({ code: 130, closed: 1, printed: "" });
});

test("the error of a server that cannot start is thrown", async () => {
  const open = () => Promise.reject(new Error("no space"));
  await expect(run({ open })).rejects.toThrow("no space");
});

test("a scenario that is cut short by a refused call is one failed check, with the server's error", async () => {
  const { code, closed, printed } = await run({
    json: true,
    onOpen: (api) => api.post("/api/v1/chains", ordersChain("http://127.0.0.1:1")),
  });
  const { passed, checks } = JSON.parse(printed) as { passed: boolean; checks: unknown[] };
  expect(checks).toMatchObject([{ what: "the scenario", passed: false, found: expect.stringContaining("`orders`") }]);
  expect({ code, closed, passed }).toEqual({ code: 1, closed: 1, passed: false });
});
