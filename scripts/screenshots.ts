/**
 * `npm run screenshots [-- PAGE...]`: every page of the console with the data of the demo, light, dark and on a phone, in
 * `screenshots/`, such as `a run` in `run.dark.png`. Those that the README shows are written to `docs/images/` too.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { DESKTOP, launchChromium, PHONE, signIn } from "../test/console/chromium.ts";
import { PAGES, type PageName, type Places } from "../test/console/pages.ts";

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
  pages: { path: string }[];
}
interface Shot {
  name: string;
  path: string;
  isSignedOut: boolean;
  readme: ReadmeImage | undefined;
}
interface ReadmeImage {
  variant: (typeof VARIANTS)[number]["name"];
  file: string;
}

/** What the README shows. */
const README: Readonly<Partial<Record<PageName, ReadmeImage>>> = {
  "the overview of an hour": { variant: "light", file: "overview.png" },
  "a run with its failed node": { variant: "light", file: "run-failed.png" },
  "why a model waits": { variant: "dark", file: "models.png" },
};

async function main(wanted: readonly string[]): Promise<void> {
  console.error("The demo is played first; this takes half a minute.");
  const child = spawn(process.execPath, [CLI, "demo", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const demo = await started(child);
    const shots = (await shotsOf(demo)).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
    if (shots.length === 0) throw new Error(`There is no page named ${wanted.join(", ")}.`);
    const browser = await launchChromium();
    try {
      await mkdir(FOLDER, { recursive: true });
      // At first, because the demo goes on, and what waits or has failed is mended after a while.
      for (const variant of VARIANTS) {
        const shown = shots.filter(({ readme }) => readme?.variant === variant.name);
        await takeAll(browser, demo, variant, shown, ({ readme }) => join(README_FOLDER, readme?.file ?? ""));
      }
      for (const variant of VARIANTS) {
        await takeAll(browser, demo, variant, shots, ({ name }) => join(FOLDER, `${name}.${variant.name}.png`));
      }
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

async function shotsOf(demo: Demo): Promise<Shot[]> {
  const places = await placesOf(demo);
  const pages = (Object.keys(PAGES) as PageName[]).map((page): Shot => {
    const name = page.replace(/^(?:the|an?) /, "").replaceAll(" ", "-");
    return { name, path: PAGES[page](places), isSignedOut: false, readme: README[page] };
  });
  // The first of the list: a session is not ended again.
  return [{ name: "sign-in", path: "/", isSignedOut: true, readme: undefined }, ...pages];
}

/** What the demo has on its pages. What it does not have, such as a stuck shard, stays undefined, and its pages say so. */
async function placesOf({ url, key, pages }: Demo): Promise<Places> {
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
  const source = "crossref";
  const failed = await first<{ runId: string }>("/api/v1/runs?status=FAILED&size=1");
  const { planId } = await first<{ planId: string }>(`/api/v1/harvest/plans?source=${source}`);
  const run = await first<{ runId: number; sliceId: number }>(`/api/v1/harvest/plans/${planId}/runs`);
  const chains = await get<{ items: { chainId: string; name: string }[] }>("/api/v1/chains");
  const chainId = chains.items.find(({ name }) => name === "orders")?.chainId ?? "";
  const good = await first<{ runId: string }>(`/api/v1/runs?chainId=${chainId}&status=SUCCESS&size=1`);
  const failedNodes = await get<{ nodeId: string; status: string }[]>(`/api/v1/runs/${failed.runId}/nodes`);
  const ran = await get<{ items: { opTime: string }[] }>("/api/v1/kpi/task-logs?modelId=WORKS&size=50");
  const opTimes = ran.items.map((one) => one.opTime).toSorted();
  const [firstOpTime = "", opTime = ""] = [opTimes[0], opTimes.at(-1)];
  const { filename } = await first<{ filename: string }>("/api/v1/pipeline/files?size=1");
  const delivery = await first<{ id: string }>("/api/v1/kpi/deliveries?limit=1");
  const report = pages.find(({ path }) => path.startsWith("/lineage"))?.path ?? "";
  const { pathname, searchParams } = new URL(report, url);
  const [assetId, tenant] = [pathname.split("/").at(-1) ?? "", searchParams.get("tenant") ?? ""];
  const above = async (kind: string, node: string) => {
    const graph = kind === "COLUMN" ? "columns/graph" : "graph";
    const path = `/api/v1/lineage/${graph}?tenant=${tenant}&node=${node}&direction=up&depth=20`;
    const { nodes } = await get<{ nodes: { id: string; kind: string; distance: number }[] }>(path);
    return nodes.filter((one) => one.kind === kind).toSorted((one, other) => other.distance - one.distance)[0]?.id;
  };
  const { columns } = await get<{ columns: { id: string }[] }>(`/api/v1/lineage/assets/${assetId}?tenant=${tenant}`);
  const event = await first<{ id: string }>(`/api/v1/lineage/events?tenant=${tenant}&asset=${assetId}&limit=1`);
  const [column] = columns;
  return {
    source,
    planId,
    sliceId: run.sliceId,
    sliceRunId: run.runId,
    planFrom: dayOf(firstOpTime),
    planTo: dayOf(opTime),
    filename,
    chainId,
    runId: failed.runId,
    failedNode: failedNodes.find(({ status }) => status === "FAILED")?.nodeId ?? "",
    goodRunId: good.runId,
    opTime,
    firstOpTime,
    table: "ORDERS",
    modelId: "WORKS",
    waitingModelId: "APPROVED",
    kpiId: "KD1003",
    deliveryId: delivery.id,
    tenant,
    assetId,
    columnId: column?.id,
    from: await above("TABLE", assetId),
    fromColumn: column && (await above("COLUMN", column.id)),
    eventId: event.id,
    deadLetterId: undefined,
    taskId: undefined,
  };
}

/** `20261101` is the day `2026-11-01`. */
function dayOf(opTime: string): string {
  return opTime.replace(/^(....)(..)(..)$/, "$1-$2-$3");
}

async function takeAll(
  browser: Browser,
  { url, key }: Demo,
  { viewport, colorScheme }: (typeof VARIANTS)[number],
  shots: readonly Shot[],
  pathOf: (shot: Shot) => string,
): Promise<void> {
  const context = await browser.newContext({ viewport, colorScheme, locale: "en-US", timezoneId: "UTC" });
  const page = await context.newPage();
  let isSignedIn = false;
  for (const shot of shots) {
    if (!shot.isSignedOut && !isSignedIn) {
      await signIn(context, url, key);
      isSignedIn = true;
    }
    await page.goto(url + shot.path);
    await page.locator("main").first().waitFor();
    await page.waitForTimeout(QUIET_MS); // Long enough for a page to ask for its data.
    await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "hidden" });
    await page.getByText("Arranging the graph").waitFor({ state: "hidden" });
    const path = pathOf(shot);
    await page.screenshot({ path });
    console.error(path);
  }
  await context.close();
}

await main(process.argv.slice(2));
