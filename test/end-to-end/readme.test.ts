/** Runs the first steps of the README and checks that they do what it says. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startScript } from "../cli.ts";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";
import { until } from "../until.ts";

const database = useDatabase();
const millrace = useMillrace(database, { env: { MILLRACE_ROLES: "api,scheduler,worker" } });

/** The first block of a language behind these words. */
function block(language: string, heading: string): string {
  const [, section = ""] = readFileSync("README.md", "utf8").split(heading);
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(section)?.[1]?.trim() ?? "";
}

/** The commands in the first shell block behind these words, with ours as the test has it. */
function commandsOf(heading: string): string[] {
  const lines = block("sh", heading).split("\n");
  return lines
    .filter((line) => line.includes("npx millrace "))
    .map((line) => line.replaceAll("npx millrace ", "millrace "));
}

function run(commands: readonly string[]) {
  const script = ["set -e", ...commands].join("\n");
  return startScript(script, { MILLRACE_URL: millrace.url, MILLRACE_KEY: ADMIN_KEY }).ended;
}

test("a registered file, once ingested, waits with all its shards in the next stage's queue", async () => {
  const commands = commandsOf("**It tracks files");
  expect(commands).toHaveLength(3);
  const { exit, stdout, stderr } = await run(commands);
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  expect(stdout).toContain("Registered 20250101000000, 4 shards.");
  const queue = [...stdout.matchAll(/^20250101000000 +(\d+)/gm)].map(([, shard]) => shard);
  expect(new Set(queue)).toEqual(new Set(["0", "1", "2", "3"]));
});

test("the chain is applied, started and watched to its end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-readme-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "orders.yaml"), block("yaml", "**It runs chains of work.**"));
  const commands = commandsOf("**It runs chains of work.**");
  expect(commands).toHaveLength(2);
  const { exit, stdout, stderr } = await run([`cd ${folder}`, ...commands]);
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  for (const node of ["extract", "check", "pause", "publish"]) expect(stdout).toContain(node);
  expect(stdout).toContain("SUCCESS");
});

test("a model runs when its tables have arrived, its lineage is there, and so is that of another tenant", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-readme-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "kpi.yaml"), block("yaml", "**It computes KPIs when tables arrive.**"));
  const models = commandsOf("**It computes KPIs when tables arrive.**");
  expect(models).toHaveLength(5);
  const computed = await run([`cd ${folder}`, ...models]);
  expect({ exit: computed.exit, stderr: computed.stderr }).toEqual({ exit: 0, stderr: "" });
  expect(computed.stdout).toContain("Waiting for a table: DW_REFUND 20251219.");
  expect(computed.stdout).toMatch(/KD1001 +20251219 .*600/);
  await until(async () => {
    const { rows } = await database.db.exclusive((client) =>
      client.query("select from lineage.node where name = 'KD1001'"),
    );
    return rows.length > 0;
  }, "the model's own lineage, which follows its run");

  const lineage = commandsOf("**It keeps the lineage of everything.**");
  expect(lineage).toHaveLength(6);
  const { exit, stdout, stderr } = await run(lineage);
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  for (const shown of ["DW_ORDER", "DW_REFUND", "Accepted: 2 of 2 events.", "shop.public.orders_clean"]) {
    expect(stdout).toContain(shown);
  }
});
