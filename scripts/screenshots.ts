/**
 * `npm run screenshots [-- PAGE...]`: every page of the console with the data of the demo, light, dark and on a phone, in
 * `screenshots/`. Those that the README shows are written to `docs/images/` too.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { DESKTOP, launchChromium, PHONE, signIn } from "../test/console/chromium.ts";

const CLI = fileURLToPath(new URL("../dist/bin/millrace.js", import.meta.url));
const FOLDER = "screenshots";
const README_FOLDER = "docs/images";
const QUIET_MS = 700;

const VARIANTS = [
  { name: "light", viewport: DESKTOP, colorScheme: "light" },
  { name: "dark", viewport: DESKTOP, colorScheme: "dark" },
  { name: "phone", viewport: PHONE, colorScheme: "light" },
] as const;

interface Demo {
  url: string;
  key: string;
  links: { url: string }[];
}
interface Shot {
  name: string;
  path: string;
  /** The README shows it: this variant of it. */
  readme?: (typeof VARIANTS)[number]["name"];
}

async function main(wanted: readonly string[]): Promise<void> {
  console.error("The demo is played first; this takes half a minute.");
  const child = spawn(process.execPath, [CLI, "demo", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const demo = await started(child);
    const shots = (await shotsOf(demo)).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
    if (shots.length === 0) throw new Error(`There is no page named ${wanted.join(", ")}.`);
    const browser = await launchChromium();
    try {
      for (const variant of VARIANTS) await takeAll(browser, demo, variant, shots);
    } finally {
      await browser.close();
    }
  } finally {
    child.kill("SIGINT");
    if (child.exitCode === null) await once(child, "exit");
  }
}

/** The report of the demo is the only thing that it prints. */
async function started(child: ChildProcess): Promise<Demo> {
  let text = "";
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    text += line;
    try {
      return JSON.parse(text) as Demo;
    } catch {
      // Not whole yet.
    }
  }
  throw new Error(`The demo ended with ${child.exitCode}.`);
}

async function shotsOf({ url, key, links }: Demo): Promise<Shot[]> {
  async function get<T>(path: string): Promise<T> {
    const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
    if (!answer.ok) throw new Error(`GET ${path} answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }
  async function first<T>(path: string): Promise<T> {
    const { items } = await get<{ items: T[] }>(path);
    if (items[0] === undefined) throw new Error(`GET ${path} answered no item.`);
    return items[0];
  }
  const failed = await first<{ runId: string; chainId: string }>("/api/v1/runs?status=FAILED&size=1");
  const plan = await first<{ planId: string }>("/api/v1/harvest/plans?source=crossref");
  const chains = await get<{ items: { chainId: string; name: string }[] }>("/api/v1/chains");
  const orders = chains.items.find(({ name }) => name === "orders")?.chainId ?? "";
  const run = await first<{ runId: string }>(`/api/v1/runs?chainId=${orders}&size=1`);
  const lineage = links.find(({ url: link }) => link.includes("lineage"))?.url ?? "";
  const asset = new URL(lineage).searchParams.get("to") ?? "";
  const [assetPath = ""] = asset.split("&tab=");
  return [
    { name: "overview", path: "/?range=hour", readme: "light" },
    { name: "harvest", path: "/harvest" },
    { name: "source", path: "/harvest/crossref" },
    { name: "source-definition", path: "/harvest/crossref?tab=definition" },
    { name: "source-plans", path: "/harvest/crossref?tab=plans" },
    { name: "source-cursors", path: "/harvest/crossref?tab=cursors" },
    { name: "source-new-plan", path: "/harvest/crossref?tab=plan" },
    { name: "source-gates", path: "/harvest/crossref?tab=gates" },
    { name: "plan", path: `/harvest/plans/${plan.planId}` },
    { name: "tracking", path: "/tracking" },
    { name: "tracking-files", path: "/tracking?tab=files" },
    { name: "tracking-stuck", path: "/tracking?tab=stuck" },
    { name: "chains", path: "/chains" },
    { name: "chain", path: `/chains/${orders}` },
    { name: "chain-grid", path: `/chains/${orders}?tab=grid` },
    { name: "chain-versions", path: `/chains/${orders}?tab=versions` },
    { name: "chain-definition", path: `/chains/${orders}?tab=definition` },
    { name: "run", path: `/chains/runs/${run.runId}` },
    { name: "run-gantt", path: `/chains/runs/${run.runId}?tab=gantt` },
    { name: "run-log", path: `/chains/runs/${run.runId}?tab=log` },
    { name: "run-compare", path: `/chains/runs/${run.runId}?tab=compare` },
    { name: "run-failed", path: `/chains/runs/${failed.runId}`, readme: "light" },
    { name: "runs", path: "/chains/runs" },
    { name: "arrivals", path: "/arrivals" },
    { name: "models", path: "/arrivals?tab=models", readme: "dark" },
    { name: "deliveries", path: "/arrivals/deliveries" },
    { name: "lineage", path: "/lineage" },
    { name: "asset", path: assetPath },
    { name: "asset-graph", path: asset },
    { name: "lineage-tenants", path: "/lineage/tenants" },
    { name: "dead-letters", path: "/lineage/dead-letters" },
    { name: "lineage-tasks", path: "/lineage/tasks" },
    { name: "admin", path: "/admin" },
    { name: "audit", path: "/admin?tab=audit" },
    { name: "doctor", path: "/admin?tab=doctor" },
    { name: "tenants", path: "/admin?tab=tenants" },
    { name: "settings", path: "/admin?tab=settings" },
  ];
}

async function takeAll(
  browser: Browser,
  { url, key }: Demo,
  { name: variant, ...options }: (typeof VARIANTS)[number],
  shots: readonly Shot[],
): Promise<void> {
  const context = await browser.newContext({ ...options, locale: "en-US", timezoneId: "UTC" });
  await signIn(context, url, key);
  const page = await context.newPage();
  for (const shot of shots) {
    await page.goto(url + shot.path);
    await page.locator("main").first().waitFor();
    await page.waitForTimeout(QUIET_MS); // Long enough for a page to ask for its data.
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "hidden" });
    await page.getByText("Arranging the graph").waitFor({ state: "hidden" });
    const folders = shot.readme === variant ? [FOLDER, README_FOLDER] : [FOLDER];
    for (const folder of folders) {
      await mkdir(folder, { recursive: true });
      const path = join(folder, folder === FOLDER ? `${shot.name}.${variant}.png` : `${shot.name}.png`);
      await page.screenshot({ path });
      console.error(path);
    }
  }
  await context.close();
}

await main(process.argv.slice(2));
