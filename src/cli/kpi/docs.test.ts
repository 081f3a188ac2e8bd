/** Runs the KPI files and commands of the documentation. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { startScript } from "../../../test/cli.ts";
import { useDatabase } from "../../../test/database.ts";
import { ADMIN_KEY, type TestMillrace, useMillrace } from "../../../test/millrace.ts";

const env = { MILLRACE_ROLES: "api,scheduler,worker", MILLRACE_SECRET_KEY: "5e".repeat(32) };

/** The first YAML block and the first block of commands after this text. */
function blocksOf(document: string, heading: string): { yaml: string; commands: string } {
  const [, section = ""] = readFileSync(document, "utf8").split(heading);
  const block = (language: string) => new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(section)?.[1] ?? "";
  return { yaml: block("yaml"), commands: block("sh").replaceAll("npx millrace", "millrace") };
}

async function run(server: TestMillrace, commands: string, yaml: string) {
  const folder = await mkdtemp(join(tmpdir(), "millrace-docs-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "kpi.yaml"), yaml);
  const given = { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY, KPI_HOOK_TOKEN: "t", FOLDER: folder };
  const { exit, stdout, stderr } = await startScript(`set -e; cd "$FOLDER"; ${commands}`, given).ended;
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  return stdout;
}

describe.each([
  [
    "docs/arrivals.md",
    "## A first model",
    /^KD1001 +20251219 +region=EU +420 .*\n.*\nKD1003 +20251219 +region=EU +35 /m,
  ],
  ["README.md", "**It computes KPIs", /^KD1001 +20251219 +600 +MODEL-01 /m],
])("%s", (document, heading, values) => {
  const server = useMillrace(useDatabase(), { env });

  test("shows a model that waits, explains for what, and runs", async () => {
    const { yaml, commands } = blocksOf(document, heading);
    expect(commands.split("\n").filter((line) => line.startsWith("millrace ")).length).toBeGreaterThan(4);
    const stdout = await run(server, commands, yaml);
    expect(stdout).toContain("MODEL-01 for 20251219: Waiting for a table: DW_REFUND 20251219.");
    expect(stdout).toMatch(values);
  });
});

describe("examples/kpi/daily-orders.yaml", () => {
  const server = useMillrace(useDatabase(), { env });

  test("can be applied twice, and runs when its tables have arrived", async () => {
    const commands = `millrace kpi apply kpi.yaml
      millrace kpi apply kpi.yaml
      millrace arrive DW_FACT_REFUND_D 20251219
      millrace arrive DW_FACT_ORDER_D 20251219
      millrace kpi data KD1003`;
    const stdout = await run(server, commands, readFileSync("examples/kpi/daily-orders.yaml", "utf8"));
    expect(stdout).toContain("\n7 unchanged.\n");
    expect(stdout).toMatch(/^ORDERS-DAY +20251219 +SUCCESS +4 +4$/m);
    expect(stdout).toMatch(/region=EU +30 .*\n.*region=US +40 /);
  });
});
