/**
 * `npm run bench -- console`: what the first load of the console costs, and how long its largest pages take to open and block
 * the page while they open and scroll. Measured in Chromium, against the built server.
 */
import type { Browser, Locator, Page } from "playwright-core";
import { statement } from "../../src/kernel/data/statement.ts";
import { DESKTOP, launchChromium, signIn } from "../../test/console/chromium.ts";
import { addLog, addModels, addReaders, addRuns, manyNodes, type Query } from "../../test/console/large-data.ts";
import { formatNumber, median, printTable } from "../measure.ts";
import { type Millrace, startMillrace } from "../millrace.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";

const SCROLLS = 30;
/** A page is interactive when nothing has blocked it for so long. */
const QUIET_MS = 500;

/** What is used of the browser's own types. */
interface BrowserEntry {
  name: string;
  startTime: number;
  duration: number;
  transferSize: number;
}
interface BrowserPage {
  performance: { getEntries(): BrowserEntry[] };
  PerformanceObserver: new (
    on: (list: { getEntries(): BrowserEntry[] }) => void,
  ) => {
    observe(options: object): void;
  };
  longTasks: BrowserEntry[];
}

interface LargePage {
  name: string;
  path: string;
  /** Visible when the page is there. */
  shown(page: Page): Locator;
  /** What the keyboard scrolls, and how; a graph has no end to reach. */
  scroll?: { focus(page: Page): Locator; key: "End" | "PageDown" | "PageUp" };
}
interface Figures {
  openMs: number[];
  openTaskMs: number[];
  scrollTaskMs: number[];
}

const ADD_HUB = statement<{ id: string }>(
  "bench.console.hub",
  `insert into lineage.node (tenant_id, kind, key, path, name)
   values (7, 'TABLE', gen_random_uuid(), array['shop', 'dates'], 'dates') returning id::text`,
);

export async function run(rounds: number): Promise<void> {
  await withPostgres(async (postgres) => {
    const millrace = await startMillrace(postgres);
    const browser = await launchChromium();
    try {
      await firstLoad(browser, millrace, rounds);
      await largePages(browser, millrace, await fill(postgres, millrace), rounds);
    } finally {
      await browser.close();
      await millrace.stop();
    }
  });
}

async function firstLoad(browser: Browser, millrace: Millrace, rounds: number): Promise<void> {
  const kilobytes: number[] = [];
  const interactive: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const page = await open(browser, millrace);
    await page.goto(millrace.url);
    await page.locator("main h1").waitFor();
    const quietAt = await interactiveAt(page);
    const bytes = await page.evaluate(() =>
      (globalThis as unknown as BrowserPage).performance
        .getEntries()
        .filter(({ name, transferSize }) => transferSize > 0 && !name.includes("/api/"))
        .reduce((sum, { transferSize }) => sum + transferSize, 0),
    );
    await page.context().close();
    if (round === 0) continue;
    kilobytes.push(bytes / 1_000);
    interactive.push(quietAt);
  }
  printTable(
    "First load of the console, with an empty cache",
    ["measure", "", "median", "aim"],
    [
      ["compressed, kB", "", formatNumber(median(kilobytes)), "300"],
      ["interactive after, ms", "", formatNumber(median(interactive)), "1,000"],
    ],
  );
}

async function largePages(
  browser: Browser,
  millrace: Millrace,
  pages: readonly LargePage[],
  rounds: number,
): Promise<void> {
  const figures = new Map<string, Figures>(
    pages.map(({ name }) => [name, { openMs: [], openTaskMs: [], scrollTaskMs: [] }]),
  );
  for (let round = 1; round <= rounds; round += 1) {
    for (const large of pages) {
      const page = await open(browser, millrace);
      await page.goto(millrace.url + large.path);
      await large.shown(page).waitFor();
      const openMs = await page.evaluate(() => performance.now());
      await interactiveAt(page);
      const openTaskMs = await longestTask(page);
      const scrollTaskMs = large.scroll && (await longestTaskOfScroll(page, large, large.scroll));
      await page.context().close();
      const of = figures.get(large.name);
      of?.openMs.push(openMs);
      of?.openTaskMs.push(openTaskMs);
      if (scrollTaskMs !== undefined) of?.scrollTaskMs.push(scrollTaskMs);
      const measured = [openMs, openTaskMs, ...(scrollTaskMs === undefined ? [] : [scrollTaskMs])];
      console.error(`round ${round}/${rounds}  ${large.name}: ${measured.map(formatNumber).join(", ")}`);
    }
  }
  printTable(
    "Large pages, medians (aim: no task above 200 ms)",
    ["page", "", "open, ms", "longest task while it opens, ms", "while it scrolls, ms"],
    [...figures].map(([name, of]) => [
      name,
      "",
      ...[of.openMs, of.openTaskMs, of.scrollTaskMs].map((values) =>
        values.length === 0 ? "" : formatNumber(median(values)),
      ),
    ]),
  );
}

async function longestTaskOfScroll(
  page: Page,
  { name, shown }: LargePage,
  { focus, key }: NonNullable<LargePage["scroll"]>,
): Promise<number> {
  await focus(page).focus();
  for (let step = 0; step < SCROLLS; step += 1) {
    await page.keyboard.press(key);
    await page.waitForTimeout(20);
  }
  if (await shown(page).isVisible()) throw new Error(`${name}: the page did not scroll`);
  return longestTask(page);
}

/** A page of its own, signed in, with an empty cache, which records what blocks it. */
async function open(browser: Browser, { url, key }: Millrace): Promise<Page> {
  const context = await browser.newContext({ viewport: DESKTOP, locale: "en-US" });
  await context.addInitScript(() => {
    const browserPage = globalThis as unknown as BrowserPage;
    browserPage.longTasks = [];
    const observer = new browserPage.PerformanceObserver((list) => browserPage.longTasks.push(...list.getEntries()));
    observer.observe({ type: "longtask", buffered: true });
  });
  await signIn(context, url, key);
  return context.newPage();
}

/** The end of the last task that blocked the page, or the moment when its content was there. */
function interactiveAt(page: Page): Promise<number> {
  // No named function inside: tsx would wrap it in a helper that the page does not have.
  return page.evaluate(async (quietMs) => {
    const tasks = (globalThis as unknown as BrowserPage).longTasks;
    let quietSince = performance.now();
    while (performance.now() - quietSince < quietMs) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (const { startTime, duration } of tasks) quietSince = Math.max(quietSince, startTime + duration);
    }
    return quietSince;
  }, QUIET_MS);
}

/** Since it was last asked; 0 if none took 50 ms, which is what browsers report. */
function longestTask(page: Page): Promise<number> {
  return page.evaluate(() => {
    const tasks = (globalThis as unknown as BrowserPage).longTasks;
    return Math.max(0, ...tasks.splice(0).map(({ duration }) => duration));
  });
}

async function fill(postgres: BenchPostgres, { api }: Millrace): Promise<LargePage[]> {
  const query: Query = (text, values) => postgres.db.exclusive((client) => client.query(text, values));
  async function post<Body>(path: string, body?: unknown): Promise<Body> {
    const answer = await api.post<Body>(`/api/v1${path}`, body);
    if (answer.status >= 300) throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
  const large = await post<{ chainId: string }>("/chains", { name: "large", dagJson: { nodes: manyNodes(10_000) } });
  const { runId } = await post<{ runId: string }>(`/chains/${large.chainId}:start`);
  await post(`/runs/${runId}:stop`);
  const often = await post<{ chainId: string }>("/chains", {
    name: "often",
    dagJson: { nodes: [{ id: "a", type: "noop" }] },
  });
  await addRuns(query, often.chainId, 100_000);
  await addModels(query, 1_000, 400);
  const once = await post<{ runId: string }>(`/chains/${often.chainId}:start`);
  await addLog(query, once.runId, "a", 5_000);
  await post("/lineage/tenants", { id: 7, code: "acme", name: "Acme" });
  const [hub] = await postgres.db.rows(ADD_HUB);
  await addReaders(query, 7, hub?.id ?? "", 3_000);
  const text = (shown: string) => (page: Page) => page.getByText(shown, { exact: true }).first();
  const neighbours = (page: Page) => page.getByRole("grid", { name: "Downstream" });
  const firstRow = (page: Page) => page.getByRole("grid").getByRole("row").nth(1);
  return [
    {
      name: "graph of 10,000 nodes",
      path: `/chains/${large.chainId}?tab=graph`,
      shown: (page) => page.locator(".react-flow__node").first(),
    },
    {
      name: "definition of 10,000 nodes",
      path: `/chains/${large.chainId}?tab=definition`,
      // The text and the graph beside it.
      shown: (page) => page.locator(".react-flow__node").first(),
    },
    {
      name: "table of 10,000 nodes",
      path: `/chains/runs/${runId}?tab=table`,
      shown: text("n0"),
      scroll: { focus: firstRow, key: "PageDown" },
    },
    {
      name: "100,000 runs",
      path: `/chains/${often.chainId}`,
      shown: text("run-100000"),
      scroll: { focus: firstRow, key: "End" },
    },
    {
      name: "1,000 models by 400 days",
      path: "/arrivals?tab=models&from=20250101&to=20260204",
      shown: text("m0001"),
      scroll: { focus: (page) => page.getByRole("gridcell").first(), key: "PageDown" },
    },
    {
      name: "log of 5,000 lines",
      path: `/chains/runs/${once.runId}?tab=log&node=a&attempt=1`,
      shown: text("line 5000"),
      scroll: { focus: (page) => page.getByRole("log"), key: "PageUp" },
    },
    {
      name: "3,000 neighbours",
      path: `/lineage/assets/${hub?.id}?tenant=7&tab=graph&list=${hub?.id}:down`,
      // The graph beside the list shows it too, and stays.
      shown: (page) => neighbours(page).getByText("refresh_1", { exact: true }),
      scroll: { focus: (page) => neighbours(page).getByRole("row").nth(1), key: "PageDown" },
    },
  ];
}
