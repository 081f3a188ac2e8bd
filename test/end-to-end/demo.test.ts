/** `millrace demo` as its users run it: what it shows, that it can be played with, and that it leaves nothing behind. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type RunningCli, startCli, startScript } from "../cli.ts";
import { until } from "../until.ts";

interface Demo extends RunningCli {
  /** All that it writes lies in here. */
  folder: string;
}

async function startDemo(...flags: string[]): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), "mr-demo-"));
  await chmod(folder, 0o755); // Under root Postgres runs as another user, who must get through.
  onTestFinished(async () => {
    await nothingIsLeft({ folder }); // Also of one that the end of the test has killed.
    await rm(folder, { recursive: true });
  });
  // A database of the user's is none of the demo's business.
  const env = { TMPDIR: folder, DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
  return { folder, ...startCli(["demo", ...flags], env) };
}

/** Neither a file nor a process. */
async function nothingIsLeft({ folder }: Pick<Demo, "folder">): Promise<void> {
  await until(() => readdirSync(folder).length === 0, "the demo's folder to be empty");
  await until(() => !processes().includes(folder), "the demo's processes to end");
}

function processes(): string {
  return execFileSync("ps", ["-A", "-ww", "-o", "command="], { encoding: "utf8" });
}

/** Without the numbers that differ each time. */
function steady(text: string): string {
  return text
    .replaceAll(/^ *\d+\.\d s {2}/gm, "")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1")
    .replaceAll(/after \d+\.\d s/g, "after some seconds")
    .replaceAll(/mlr_\S+/g, "a key");
}

/** The lines that the README shows, which leaves some out. */
function shownInReadme(): string[] {
  const [, section = ""] = readFileSync("README.md", "utf8").split("npm ci && npm run demo\n");
  const [, block = ""] = /```\n(.*?)```/s.exec(section) ?? [];
  return steady(block)
    .split("\n")
    .filter((line) => line !== "" && !line.includes("..."));
}

test("with --once it tells the story, shows what the README says, and exits with 0", async () => {
  const { exit, stdout, stderr } = await (await startDemo("--once")).ended;
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  expect(stdout.match(/^✓ /gm)).toHaveLength(16);
  expect(stdout).not.toContain("✗");
  expect(stdout).toContain("All 16 checks hold");
  const shown = shownInReadme();
  expect(shown.length).toBeGreaterThan(15);
  expect(steady(stdout).split("\n")).toEqual(expect.arrayContaining(shown));
});

test("it stays up for the three things to try, and ends with Ctrl-C", async () => {
  const demo = await startDemo();
  await until(() => demo.stdout().includes("Millrace listens at"), "Millrace to be up");
  const invitation = await until(
    () => demo.stdout().split("Three things to try in another terminal:\n")[1],
    "the invitation",
  );
  const commands = invitation.trim().split("\n");
  expect(commands).toHaveLength(4);
  const tried = await startScript(`set -e\n${commands.join("\n")}`).ended;
  expect({ exit: tried.exit, stderr: tried.stderr }).toEqual({ exit: 0, stderr: "" });
  expect(tried.stdout).toMatch(/SALES +20251219 +SUCCESS/);
  const third = "growth hears of SALES, generation 3, a rerun";
  await until(() => demo.stdout().includes(third), "the delivery");

  demo.kill("SIGINT");
  expect(await demo.ended).toMatchObject({ exit: 0, stderr: "" });
  expect(readdirSync(demo.folder)).toEqual([]);
});

test.each(["creating the database cluster", "orders: fetch failed"])(
  "killed after %j, it is swept away",
  async (line) => {
    const demo = await startDemo("--once");
    await until(() => demo.stdout().includes(line), line);
    demo.kill("SIGKILL");
    expect((await demo.ended).exit).toBe("SIGKILL");
    await nothingIsLeft(demo);
  },
);

test("Ctrl-C in the middle of the story ends it with 130", async () => {
  const demo = await startDemo();
  await until(() => demo.stdout().includes("orders: fetch failed"), "the story to begin");
  demo.kill("SIGINT");
  expect((await demo.ended).exit).toBe(130);
  expect(readdirSync(demo.folder)).toEqual([]);
});
