/** `millrace demo` as users run it: its output, the commands that it suggests, and that it leaves nothing behind. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type OnFinished, type RunningCli, startCli, startScript } from "../cli.ts";
import { until } from "../until.ts";

interface Demo extends RunningCli {
  /** The folder that it writes to. */
  folder: string;
}

async function startDemo(onFinished: OnFinished, ...flags: string[]): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), "mr-demo-"));
  await chmod(folder, 0o755); // As root, Postgres runs as another user, which must be able to enter.
  onFinished(async () => {
    await nothingIsLeft({ folder }); // Also when the end of the test killed it.
    await rm(folder, { recursive: true });
  });
  // The demo ignores the user's database.
  const env = { TMPDIR: folder, DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
  return { folder, ...startCli(["demo", ...flags], env, onFinished) };
}

/** Much more than it takes, for a machine under load. */
const WHOLE_RUN_MS = 180_000;

/** Neither a file nor a process. */
async function nothingIsLeft({ folder }: Pick<Demo, "folder">): Promise<void> {
  await until(() => readdirSync(folder).length === 0, "the demo's folder to be empty");
  await until(() => !processes().includes(folder), "the demo's processes to end");
}

function processes(): string {
  return execFileSync("ps", ["-A", "-ww", "-o", "command="], { encoding: "utf8" });
}

/** Without the numbers that differ each time. */
function withoutVaryingParts(text: string): string {
  return text
    .replaceAll(/^ *\d+\.\d s {2}/gm, "")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1")
    .replaceAll(/in \d+\.\d s/g, "in some seconds")
    .replaceAll(/\b20\d{2}-?\d{2}-?\d{2}\b/g, "a day")
    .replaceAll(/mlr_\S+/g, "a key");
}

/** The lines that the README shows; it omits some. */
function shownInReadme(): string[] {
  const [, section = ""] = readFileSync("README.md", "utf8").split("npm ci && npm run demo\n");
  const [, block = ""] = /```\n(.*?)```/s.exec(section) ?? [];
  return withoutVaryingParts(block)
    .split("\n")
    .filter((line) => line !== "" && !line.includes("..."));
}

/** The link signs in once. */
async function signIn(link: string): Promise<{ page: string | null; statuses: number[] }> {
  const { origin, searchParams, hash } = new URL(link);
  const redeem = () =>
    fetch(`${origin}/api/v1/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code: hash.slice(1) }),
    });
  return { page: searchParams.get("to"), statuses: [(await redeem()).status, (await redeem()).status] };
}

// At once, because a demo mostly waits: the harvest keeps to the rates of the real services. So one whole run shows all of it.
test.concurrent(
  "it prints what the README shows, stays up with links and commands that work, and ends with Ctrl-C",
  async ({ onTestFinished }) => {
    const demo = await startDemo(onTestFinished);

    const suggested = await until(
      () => demo.stdout().split("Three things to try in another terminal:\n")[1],
      "the suggested commands",
      WHOLE_RUN_MS,
    );
    const stdout = demo.stdout();
    expect(stdout.match(/^✓ /gm)).toHaveLength(33);
    expect(stdout).not.toContain("✗");
    expect(stdout).toContain("All 33 checks passed");
    const shown = shownInReadme();
    expect(shown.length).toBeGreaterThan(20);
    expect(withoutVaryingParts(stdout).split("\n")).toEqual(expect.arrayContaining(shown));

    const links = stdout.match(/http:\S+\/login\S+/g) ?? [];
    expect(await Promise.all(links.map(signIn))).toEqual([{ page: "/?range=hour", statuses: [200, 401] }]);
    const [, pages = ""] = /^Pages to look at on .*:\n\n((?: {2}.*\n)+)/m.exec(stdout) ?? [];
    const paths = pages.match(/\/\S*$/gm) ?? [];
    expect(paths.map((path) => path.replace(/(runs|assets)\/.*/, "$1/"))).toEqual([
      "/?range=hour",
      "/harvest/crossref",
      "/chains/runs/",
      "/arrivals",
      "/arrivals/deliveries",
      "/lineage/assets/",
      "/tracking",
    ]);
    // Subscribers are notified of the first runs before the next ones start.
    expect(stdout).toMatch(/growth receives TRAFFIC \d+, generation 1, [^]*a late order arrives/);

    const commands = suggested.split("\n").filter((line) => line.startsWith("  "));
    const tried = await startScript(`set -e\n${commands.join("\n")}`, {}, onTestFinished).ended;
    expect({ exit: tried.exit, stderr: tried.stderr }).toEqual({ exit: 0, stderr: "" });
    expect(tried.stdout).toMatch(/SALES +\d{8} +SUCCESS/);
    await until(() => /growth receives SALES \d+, generation 3 \(rerun\)/.test(demo.stdout()), "the delivery");
    await until(
      () => /orders of \d+: FAILED\n.*retried the failed run: SUCCESS/.test(demo.stdout()),
      "background activity",
    );

    demo.kill("SIGINT");
    expect(await demo.ended).toMatchObject({ exit: 0, stderr: "" });
    expect(readdirSync(demo.folder)).toEqual([]);
  },
  WHOLE_RUN_MS,
);

test.concurrent.for(["creating the database cluster", "orders: fetch failed"])(
  "killed after %j, its processes and files are removed",
  async (line, { onTestFinished }) => {
    const demo = await startDemo(onTestFinished, "--once");
    await until(() => demo.stdout().includes(line), line);
    demo.kill("SIGKILL");
    expect((await demo.ended).exit).toBe("SIGKILL");
    await nothingIsLeft(demo);
  },
);

test.concurrent("Ctrl-C during the scenario exits with 130", async ({ onTestFinished }) => {
  const demo = await startDemo(onTestFinished);
  await until(() => demo.stdout().includes("orders: fetch failed"), "the scenario to begin");
  demo.kill("SIGINT");
  expect((await demo.ended).exit).toBe(130);
  expect(readdirSync(demo.folder)).toEqual([]);
});
