/** Every page and tab of the console with data: it shows them without a serious fault of accessibility, light and dark, and fits a phone. */
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { useScripted } from "../../src/harvest/run/scripted.fixture.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, DESKTOP, hasBrowser, PHONE, RULES_OF_LOOKS, useConsole } from "./browser.ts";
import { EVERY_PAGE_ENV, type EveryPage, fillEveryPage } from "./every-page.ts";
import { PAGES, type PageName, type Places } from "./pages.ts";

const database = useDatabase();
const harvests = useScripted(database, EVERY_PAGE_ENV);

/** Something that a page shows once its data have come. */
const SHOWN: Readonly<Record<PageName, string | RegExp | ((made: EveryPage) => string)>> = {
  "the overview": ({ chainName }) => chainName,
  "the overview of an hour": ({ source }) => source,
  "the sources": ({ source }) => source,
  "a new source": "Apply",
  "the activity of a source": "Where the time goes",
  "the plans of a source": /of 3 slices are not complete/,
  "the cursors of a source": "History of items",
  "a gap of a source": "Accept the gap",
  "the gates of a source": "the declared limit is in force",
  "the definition of a source": "itemsPath",
  "a new plan": /It would make 3 slices/,
  "a plan": "2 of 3 slices",
  "a run of a slice": "It has committed no page.",
  "the stages of tracking": "shard-worker",
  "the files of tracking": ({ filename }) => filename,
  "what is stuck in tracking": ({ filename }) => filename,
  "a shard that is stuck": "Retry",
  "a file": ({ filename }) => filename,
  "the chains": ({ chainName }) => chainName,
  "the runs of all chains": ({ chainName }) => chainName,
  "a new chain": "No problems.",
  "the runs of a chain": ({ opTime }) => opTime,
  "the grid of a chain": ({ failedNode }) => failedNode,
  "the graph of a chain": ({ failedNode }) => failedNode,
  "the definition of a chain": ({ failedNode }) => failedNode,
  "the versions of a chain": /price_in_cents/,
  "the schedules of a chain": "nightly",
  "the start of a chain": "Start",
  "a run": ({ failedNode }) => failedNode,
  "a run with its failed node": /price_in_cents/,
  "the Gantt chart of a run": ({ failedNode }) => failedNode,
  "the grid of a run": ({ failedNode }) => failedNode,
  "the nodes of a run": ({ failedNode }) => failedNode,
  "the log of a run": "line 40",
  "the comparison of two runs": ({ failedNode }) => failedNode,
  "the tables by opTime": ({ table }) => table,
  "a table that has arrived": "key MILLRACE_ADMIN_KEY",
  "the models by opTime": ({ modelId }) => modelId,
  "why a model waits": ({ opTime }) => `It waits for a table: COSTS ${opTime}.`,
  "why a model has run": ({ table, opTime }) => `arrival ${table} ${opTime}`,
  "a model": "Unpublish",
  "a KPI": ({ opTime }) => opTime,
  "the deliveries": ({ modelId }) => modelId,
  "a failed delivery": "Send again",
  "the subscriptions": "/away/webhooks",
  "the assets of lineage": "revenue_by_shop_and_region",
  "a search in lineage": "revenue_by_shop_and_region",
  "an asset": "total",
  "the graph of an asset": "refresh_revenue_by_shop_and_region",
  "the graph of a column": "price",
  "the impact of an asset": "revenue_by_shop_and_region",
  "the impact of a column": "aggregation",
  "the paths between two assets": /1 of 1 path/,
  "the events of an asset": "spark",
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
  "an address without a page": "There is no such page.",
};

/** The names of pages by the room that is the first part of their address. */
const ROOMS: Record<string, PageName[]> = {};
for (const name of Object.keys(PAGES) as PageName[]) {
  const [, room = ""] = PAGES[name]({} as Places).split(/[/?]/);
  ROOMS[room || "overview"] = [...(ROOMS[room || "overview"] ?? []), name];
}

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

  // The first page of a room is loaded by its address, the others as by a link.
  test.each(Object.entries(ROOMS))("the pages of %s", async (_, names) => {
    const faults: Record<string, readonly string[]> = {};
    let page: Page | undefined;
    for (const name of names) {
      const address = PAGES[name](made);
      if (page) await follow(page, address);
      else ({ page } = await browser.open(address, { viewport: DESKTOP }));
      const shown = SHOWN[name];
      const wanted = typeof shown === "function" ? shown(made) : shown;
      await page
        .locator("main")
        .getByText(wanted)
        .or(page.getByRole("button", { name: wanted }))
        .filter({ visible: true })
        .first()
        .waitFor();
      await page.emulateMedia({ colorScheme: "light" });
      const ofPage = await accessibilityFaults(page);
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
  });

  test("a failed run is marked in the time line of its plan, and opens", async () => {
    const { page } = await browser.open(PAGES["a plan"](made));
    const runs = page.getByRole("figure", { name: /^Runs by time/ }).locator("[data-run]");
    await expect.poll(async () => (await runs.allInnerTexts()).join("")).toBe("✕");
    await runs.filter({ hasText: "✕" }).click();
    await page.getByRole("complementary").getByText("It has committed no page.").waitFor();
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
