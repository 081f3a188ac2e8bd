/** Every page and tab of the console with data: it shows them without a serious fault of accessibility, light and dark, and fits a phone. */
import type { Locator, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { useScripted } from "../../src/harvest/run/scripted.fixture.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, DESKTOP, hasBrowser, PHONE, RULES_OF_LOOKS, useConsole } from "./browser.ts";
import { EVERY_PAGE_ENV, type EveryPage, fillEveryPage } from "./every-page.ts";
import { PAGES, type PageName, type Places } from "./pages.ts";

const database = useDatabase();
const harvests = useScripted(database, EVERY_PAGE_ENV);

/** Of a list. */
const rowOf = (main: Locator, text: string | RegExp) => main.locator("[role=row][data-index]", { hasText: text });
/** Of a graph. */
const nodeOf = (main: Locator, text: string) => main.locator(".react-flow__node", { hasText: text });

type Shown = string | RegExp | ((made: EveryPage, main: Locator) => string | RegExp | Locator);

/** Something that a page shows once its data have come, and that the page before it does not show. */
const SHOWN: Readonly<Record<PageName, Shown>> = {
  "the overview": ({ chainName }) => chainName,
  "the overview of an hour": (_, main) => main.locator("select:has(option[value=hour]:checked)"),
  "the sources": ({ source }) => source,
  "a new source": "Apply",
  "the activity of a source": "Where the time goes",
  "the plans of a source": (_, main) => rowOf(main, /of 3 slices are not complete/),
  "the cursors of a source": "History of items",
  "a gap of a source": "Accept the gap",
  "the gates of a source": "the declared limit applies",
  "the quarantine of a source": "no ID",
  "the definition of a source": "itemsPath",
  "a new plan": /Creates 3 slices/,
  "a plan": "2 of 3 slices",
  "a run of a slice": "No pages committed.",
  "the stages of tracking": "shard-worker",
  "the files of tracking": ({ filename }, main) => rowOf(main, filename),
  "what is stuck in tracking": ({ filename }, main) => rowOf(main, `${filename} · 1`),
  "a shard that is stuck": (_, main) => main.getByRole("complementary").getByRole("button", { name: "Retry" }),
  "a file": ({ filename }, main) => main.getByRole("heading", { level: 1, name: filename }),
  "the chains": ({ chainName }) => chainName,
  "the runs of all chains": ({ opTime }, main) => rowOf(main, opTime),
  "a new chain": "No problems.",
  "the runs of a chain": ({ opTime }) => opTime,
  "the grid of a chain": ({ failedNode }, main) => main.getByRole("rowheader", { name: failedNode }),
  "the graph of a chain": ({ failedNode }, main) => nodeOf(main, failedNode),
  "the definition of a chain": ({ failedNode }, main) => main.locator(".cm-content", { hasText: failedNode }),
  "the versions of a chain": (_, main) => main.getByRole("region").getByText(/price_in_cents/),
  "the schedules of a chain": "nightly",
  "the start of a chain": (_, main) => main.getByRole("complementary").getByRole("button", { name: "Start" }),
  "a run": ({ failedNode }, main) => nodeOf(main, failedNode),
  "a run with its failed node": /price_in_cents/,
  "the Gantt chart of a run": ({ failedNode }, main) => rowOf(main, failedNode),
  "the grid of a run": ({ failedNode }, main) => main.getByRole("rowheader", { name: failedNode }),
  "the nodes of a run": ({ failedNode }, main) => rowOf(main, failedNode),
  "the log of a run": (_, main) => main.locator("[role=log]:not(aside *)").getByText("line 40"),
  "the comparison of two runs": ({ failedNode }, main) => rowOf(main, failedNode),
  "the tables by opTime": ({ table }) => table,
  "a table that has arrived": "key MILLRACE_ADMIN_KEY",
  "the models by opTime": ({ modelId }, main) => main.getByRole("rowheader", { name: modelId }),
  "why a model waits": ({ opTime }) => `Waiting for a table: COSTS ${opTime}.`,
  "why a model has run": ({ table, opTime }) => `arrival ${table} ${opTime}`,
  "a model": "Unpublish",
  "a KPI": ({ kpiId }, main) => main.getByRole("heading", { level: 1, name: kpiId }),
  "the deliveries": (_, main) => rowOf(main, "/away/webhooks"),
  "a failed delivery": (_, main) => main.getByRole("complementary").getByRole("button", { name: "Redeliver" }),
  "the subscriptions": (_, main) =>
    rowOf(main.filter({ has: main.page().locator("[aria-current=page][href*=subscriptions]") }), "/away/webhooks"),
  "the assets of lineage": "revenue_by_shop_and_region",
  "a search in lineage": (_, main) => main.locator("input[type=search][value=revenue]"),
  "an asset": (_, main) => main.getByRole("heading", { level: 1, name: "revenue_by_shop_and_region" }),
  "the graph of an asset": (_, main) => nodeOf(main, "refresh_revenue_by_shop_and_region"),
  "the graph of a column": "price",
  "the impact of an asset": (_, main) => rowOf(main, "revenue_by_shop_and_region"),
  "the impact of a column": "aggregation",
  "the paths between two assets": /1 of 1 path/,
  "the events of an asset": (_, main) => main.getByRole("complementary").getByText("spark"),
  "the tenants of lineage": "millrace",
  "a tenant of lineage": "Events are applied as they arrive.",
  "the dead letters": "It names 10,000 columns.",
  "the tasks of lineage": "the model answered 500",
  "the batches of lineage": "1 of 2",
  "the keys": ({ keyName }) => keyName,
  "the tenants": "t7",
  "a tenant": "Embedding, dead",
  "the audit log": "session.start",
  "the doctor": /The watermark does not pass a missing window/,
  "the settings": "MILLRACE_PORT",
  "an address without a page": "Page not found.",
};

/** The names of pages by the module that is the first part of their address. */
const MODULES: Record<string, PageName[]> = {};
for (const name of Object.keys(PAGES) as PageName[]) {
  const [, module = ""] = PAGES[name]({} as Places).split(/[/?]/);
  MODULES[module || "overview"] = [...(MODULES[module || "overview"] ?? []), name];
}
/** Of one page, with two checks of its accessibility and two languages, on a busy machine. */
const PAGE_MS = 10_000;

describe.runIf(hasBrowser)("in a browser", () => {
  const browser = useConsole({
    get url() {
      return harvests.millrace.url;
    },
  });
  let made: EveryPage;
  beforeAll(async () => {
    made = await fillEveryPage(database, harvests);
  });

  /** What shows that a page is there. */
  function signOf(name: PageName, page: Page): Locator {
    const main = page.locator("main");
    const shown = SHOWN[name];
    const wanted = typeof shown === "function" ? shown(made, main) : shown;
    const sign =
      typeof wanted === "string" || wanted instanceof RegExp
        ? main.getByText(wanted).or(page.getByRole("button", { name: wanted }))
        : wanted;
    return sign.filter({ visible: true });
  }

  // The first page of a module is loaded by its address, the others as by a link.
  for (const [module, names] of Object.entries(MODULES))
    test(`the pages of ${module}`, { timeout: (names.length + 3) * PAGE_MS }, () => lookAt(names));

  async function lookAt(names: readonly PageName[]): Promise<void> {
    const faults: Record<string, readonly string[]> = {};
    let page: Page | undefined;
    for (const name of names) {
      const address = PAGES[name](made);
      const ofPage: string[] = [];
      if (page) {
        // The page before, which stays until the new one is there, would be taken for it.
        if ((await signOf(name, page).count()) > 0) ofPage.push("it cannot be told from the page before");
        await follow(page, address);
      } else ({ page } = await browser.open(address, { viewport: DESKTOP }));
      await signOf(name, page).first().waitFor();
      await page.emulateMedia({ colorScheme: "light" });
      ofPage.push(...(await accessibilityFaults(page)));
      await setLanguage(page, "zh");
      // The findings of the doctor are the API's own sentences.
      if (name !== "the doctor") ofPage.push(...(await codesShown(page, Object.values(made).map(String))));
      await page.setViewportSize(PHONE);
      // The page is drawn again in its new size. Lists and graphs scroll in themselves.
      await expect.poll(() => page?.evaluate(tooLarge), { message: name }).toEqual([]);
      await page.emulateMedia({ colorScheme: "dark" });
      ofPage.push(...(await accessibilityFaults(page, RULES_OF_LOOKS)).map((fault) => `dark, on a phone: ${fault}`));
      if (ofPage.length > 0) faults[name] = ofPage;
      await page.setViewportSize(DESKTOP);
      await setLanguage(page, "en");
    }
    expect(faults).toEqual({});
  }

  test("a failed run is marked in the time line of its plan, and opens", async () => {
    const { page } = await browser.open(PAGES["a plan"](made));
    const runs = page.getByRole("figure", { name: /^Runs over time/ }).locator("[data-run]");
    await expect.poll(async () => (await runs.allInnerTexts()).join("")).toBe("✕");
    await runs.filter({ hasText: "✕" }).click();
    await page.getByRole("complementary").getByText("No pages committed.").waitFor();
    expect(page.url()).toMatch(new RegExp(`run=${made.sliceRunId}`));
  });
});

/** What is written like a code of the API, and is none that the page has a word for. */
const NO_CODE = new Set(
  [
    "SQL YAML JSON CSV KPI URL UTC HTTP API TLS GET",
    // Names that the data of this test has.
    "COSTS items extract noop sql publish nightly duckdb orders shop lake spark total price decimal daily millrace m t x key first second",
    "database revenue_by_shop_and_region refresh_revenue_by_shop_and_region",
  ].flatMap((line) => line.split(" ")),
);
/** Of errors and advice, which the API writes in English. */
const SENTENCE = /[a-z]+ [a-z]+ [a-z]+/;
const IN_CAPITALS = /(?<![\w.=-])[A-Z][A-Z_]{2,}(?![\w.-])/g;
const FIRST_WORD = /^[a-z][a-z_]*(?= |$)/g;

/** As a link in the page does. A page that is loaded anew reads the console again, and the rules of accessibility. */
async function follow(page: Page, address: string): Promise<void> {
  await page.evaluate((to) => history.pushState(null, "", to), address);
}

async function setLanguage(page: Page, language: "en" | "zh"): Promise<void> {
  await page.evaluate((to) => {
    localStorage.setItem("millrace.language", to);
    window.dispatchEvent(new StorageEvent("storage", { key: "millrace.language" }));
  }, language);
}

/** Codes where the page in Chinese should have a word. */
async function codesShown(page: Page, names: readonly string[]): Promise<string[]> {
  const texts = (await page.evaluate(textsShown)).filter((text) => !SENTENCE.test(text));
  const words = texts.flatMap((text) => [...(text.match(IN_CAPITALS) ?? []), ...(text.match(FIRST_WORD) ?? [])]);
  return [...new Set(words)].filter(
    (word) => !NO_CODE.has(word) && !word.startsWith("MILLRACE_") && !names.includes(word),
  );
}

/** Without code. */
function textsShown(): string[] {
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts: string[] = [];
  while (all.nextNode()) {
    const parent = all.currentNode.parentElement;
    if (parent?.closest("code, pre, .cm-editor, [role=log]") !== null) continue;
    // What is around code is one sentence.
    const isAround = parent.querySelector(":scope > code") !== null;
    const parts = isAround ? [...parent.childNodes] : [all.currentNode];
    texts.push(
      parts
        .map(({ nodeName, textContent }) => (nodeName === "CODE" ? "x" : textContent))
        .join("")
        .trim(),
    );
  }
  return texts;
}

/** What would make a person scroll sideways, or the whole document beside the page in it. */
function tooLarge(): string[] {
  const wide = [...document.querySelectorAll("html, main, aside, dialog")]
    .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
    .map(({ tagName, scrollWidth, clientWidth }) => `${tagName}: ${scrollWidth} px in ${clientWidth} px`);
  const { scrollHeight, clientHeight } = document.documentElement;
  return scrollHeight > clientHeight ? [...wide, `the document: ${scrollHeight} px in ${clientHeight} px`] : wide;
}
