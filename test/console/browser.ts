/** The console in a real browser: pages that are signed in, whose clicks are counted and whose problems fail the test. */
import axe from "axe-core";
import type { Browser, BrowserContext, ConsoleMessage, Locator, Page, Response } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { ADMIN_KEY } from "../millrace.ts";
import { DESKTOP, hasChromium, launchChromium, signIn } from "./chromium.ts";

export { DESKTOP, PHONE } from "./chromium.ts";

/** Tests of the console run where a browser is installed. */
export const hasBrowser = hasChromium;

const SERIOUS = new Set(["serious", "critical"]);

export interface OpenOptions {
  viewport?: { width: number; height: number };
  colorScheme?: "light" | "dark";
  /** Another key than that of the administrator; null: nobody is signed in. */
  key?: string | null;
  /** Runs in each page before its own scripts. */
  script?: () => void;
  /** In the same browser as this page, as another tab of it. */
  beside?: ConsolePage;
}

export interface ConsolePage {
  page: Page;
  /** The clicks of the person so far. */
  clicks(): Promise<number>;
  /** Errors of scripts, requests and the content security policy. The test fails if there are any at its end. */
  problems: string[];
}

export interface ConsoleBrowser {
  open(path: string, options?: OpenOptions): Promise<ConsolePage>;
}

/**
 * A browser for the tests of a file. The first page of each test is the same one, emptied: a page of a new context costs 1.8 s of
 * CPU time until it shows something, and this one 0.6 s. Other pages of a test have contexts of their own.
 */
export function useConsole(server: { url: string }): ConsoleBrowser {
  let browser: Browser;
  let kept: Page | undefined;
  let contexts: BrowserContext[] = [];
  let pages: (ConsolePage & { forget(): void })[] = [];
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterEach(async ({ task }) => {
    const problems = pages.flatMap((one) => one.problems);
    for (const { forget } of pages) forget();
    if (task.result?.state === "fail" || problems.length > 0) kept = undefined;
    const closed = contexts.filter((context) => context !== kept?.context());
    await Promise.all(closed.map((context) => context.close()));
    if (kept && pages.some(({ page }) => page === kept)) await empty(kept, server.url);
    contexts = kept ? [kept.context()] : [];
    pages = [];
    expect(problems).toEqual([]);
  });
  afterAll(() => browser.close());

  async function pageFor({ viewport = DESKTOP, colorScheme = "light", key = ADMIN_KEY, script, beside }: OpenOptions) {
    if (beside) return beside.page.context().newPage();
    const isPlain = key === ADMIN_KEY && script === undefined;
    if (isPlain && kept && pages.every(({ page }) => page !== kept)) {
      await kept.setViewportSize(viewport);
      await kept.emulateMedia({ colorScheme });
      return kept;
    }
    const context = await browser.newContext({ viewport, colorScheme, locale: "en-US" });
    contexts.push(context);
    await context.addInitScript(countClicks);
    if (script) await context.addInitScript(script);
    if (key !== null) await signIn(context, server.url, key);
    const page = await context.newPage();
    if (isPlain) kept ??= page;
    return page;
  }

  return {
    async open(path, options = {}) {
      const page = await pageFor(options);
      const count = () => page.evaluate(() => Number(sessionStorage.getItem("clicks")));
      let before = 0;
      const opened = { page, clicks: async () => (await count()) - before, ...problemsOf(page) };
      pages.push(opened);
      await page.goto(server.url + path);
      await page.locator("main").first().waitFor();
      before = await count();
      return opened;
    },
  };
}

/** Leaves nothing of a test behind but the session and the cached files. */
async function empty(page: Page, url: string): Promise<void> {
  const context = page.context();
  for (const other of context.pages()) if (other !== page) await other.close();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.evaluate(() => sessionStorage.clear());
  await page.goto("about:blank");
  // An editor writes its draft when it is left.
  const devTools = await context.newCDPSession(page);
  await devTools.send("Storage.clearDataForOrigin", { origin: new URL(url).origin, storageTypes: "local_storage" });
  await devTools.detach();
  await context.clearPermissions();
}

/** On the document: a click that misses its target, because the page moves, is stopped by Playwright at the window and repeated. */
function countClicks(): void {
  document.addEventListener(
    "click",
    ({ isTrusted }) => {
      if (isTrusted) sessionStorage.setItem("clicks", String(Number(sessionStorage.getItem("clicks")) + 1));
    },
    true,
  );
}

function problemsOf(page: Page): { problems: string[]; forget(): void } {
  const problems: string[] = [];
  const onError = ({ message }: Error) => void problems.push(message);
  // What the content security policy blocks is told there, and each 401, which a page without a session meets on purpose.
  const onMessage = (message: ConsoleMessage) => {
    if (message.type() !== "error" || message.text().includes("401")) return;
    problems.push(`${message.text()} (${message.location().url})`);
  };
  const onResponse = (response: Response) => {
    if (response.status() >= 500) problems.push(`${response.url()} answered ${response.status()}`);
  };
  page.on("pageerror", onError).on("console", onMessage).on("response", onResponse);
  return {
    problems,
    forget: () => void page.off("pageerror", onError).off("console", onMessage).off("response", onResponse),
  };
}

/** The browser reports refusals and a server that is away by itself. */
export function forgive({ problems }: ConsolePage, ...expected: readonly string[]): void {
  const unexpected = problems.filter((text) => !expected.some((one) => text.includes(one)));
  problems.splice(0, problems.length, ...unexpected);
}

/** Whether a person sees it without scrolling. */
export async function isInView(locator: Locator): Promise<boolean> {
  const [box, size] = [await locator.boundingBox(), locator.page().viewportSize()];
  return box !== null && size !== null && box.y >= 0 && box.y + box.height <= size.height;
}

/** Rules whose result depends on colours, and on the size of the window. */
export const RULES_OF_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable"];

/** The serious faults of accessibility, as sentences. */
export async function accessibilityFaults(page: Page, rules?: string[]): Promise<string[]> {
  // Reading the rules takes longer than applying them, so a document gets them once.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const violations = await page.evaluate(async (runOnly) => {
    const { axe: inPage } = window as unknown as { axe: typeof axe };
    const found = await inPage.run(document, { resultTypes: ["violations"], ...(runOnly && { runOnly }) });
    return found.violations.map(({ id, help, impact, nodes }) => ({
      impact: impact ?? "",
      sentence: `${id}: ${help} (${nodes
        .map(({ target }) => target.join(" "))
        .join(", ")
        .slice(0, 300)})`,
    }));
  }, rules);
  return violations.filter(({ impact }) => SERIOUS.has(impact)).map(({ sentence }) => sentence);
}

/** The same in the light theme, and what differs in the dark one. */
export async function faultsInBothThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: "light" });
  const light = await accessibilityFaults(page);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await accessibilityFaults(page, RULES_OF_LOOKS);
  return [...light.map((fault) => `light: ${fault}`), ...dark.map((fault) => `dark: ${fault}`)];
}
