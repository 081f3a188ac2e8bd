/** The README's first steps, done as it says: whoever follows it sees what it promises. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startScript } from "../cli.ts";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";

const millrace = useMillrace(useDatabase());

/** The lines of the first shell block behind these words. */
function shellBlock(heading: string): string[] {
  const [, section = ""] = readFileSync("README.md", "utf8").split(heading);
  return /```sh\n(.*?)```/s.exec(section)?.[1]?.trim().split("\n") ?? [];
}

test("a registered file, once ingested, waits with all its shards in the next stage's queue", async () => {
  const commands = shellBlock("**It tracks files").filter((line) => line.startsWith("npx millrace pipeline "));
  expect(commands).toHaveLength(3);
  const script = ["set -e", ...commands.map((line) => line.replace("npx ", ""))].join("\n");
  const { exit, stdout, stderr } = await startScript(script, { MILLRACE_URL: millrace.url, MILLRACE_KEY: ADMIN_KEY })
    .ended;
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  expect(stdout).toContain("Registered 20250101000000, 4 shards.");
  const queue = [...stdout.matchAll(/^20250101000000 +(\d+)/gm)].map(([, shard]) => shard);
  expect(new Set(queue)).toEqual(new Set(["0", "1", "2", "3"]));
});
