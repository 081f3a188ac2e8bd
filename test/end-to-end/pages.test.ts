/** The pages, in a real browser, as a person sees them. */
import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";

const CHROMIUM = "/usr/bin/chromium";
const installed = existsSync(CHROMIUM);
if (!installed) console.warn(`The pages are not looked at: there is no browser at ${CHROMIUM}.`);

describe.runIf(installed)("the pages", () => {
  const database = useDatabase();
  const millrace = useMillrace(database);
  let browser: Browser;

  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-component-update",
      ],
    });
  });
  afterAll(async () => {
    await browser.close();
  });

  async function open(path: string): Promise<{ page: Page; problems: string[] }> {
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    // What the content security policy blocks is told there.
    page.on("console", (message) => void (message.type() === "error" && problems.push(message.text())));
    page.on("requestfailed", (request) => problems.push(`${request.url()} failed`));
    page.on("response", (response) => {
      if (response.status() >= 400) problems.push(`${response.url()} answered ${response.status()}`);
    });
    await page.goto(millrace.url + path, { waitUntil: "networkidle" });
    return { page, problems };
  }

  test("the front page says what runs and leads to the reference", async () => {
    const { page, problems } = await open("/");
    expect(await page.textContent("h1")).toBe("Millrace is running");
    expect(await page.textContent("dl")).toContain("PostgreSQL at DATABASE_URL");
    await page.click('a[href="/docs"]');
    await page.waitForSelector(".swagger-ui .info");
    expect(problems).toEqual([]);
  });

  test("the reference lists every call, can try one, and needs nothing from outside", async () => {
    const { page, problems } = await open("/docs");
    await page.waitForSelector("#operations-pipeline-post_api_v1_pipeline_files_register, .opblock");
    expect(await page.locator(".opblock").count()).toBeGreaterThan(15);
    await page.locator(".opblock", { hasText: "/healthz" }).locator("button").first().click();
    await page.locator("button.execute").click();
    await page.waitForSelector(".live-responses-table tbody .response-col_status");
    expect(await page.textContent(".live-responses-table tbody .response-col_status")).toContain("200");
    expect(problems).toEqual([]);
  });

  test("the reference calls with the key that is typed there", async () => {
    const { page, problems } = await open("/docs");
    await page.locator("button.authorize").first().click();
    await page.locator(".auth-container input").fill(ADMIN_KEY);
    await page.locator(".auth-btn-wrapper button.authorize").click();
    await page.locator(".auth-btn-wrapper button.btn-done").click();
    await page.locator(".opblock-get", { hasText: "/api/v1/keys" }).locator("button").first().click();
    await page.locator("button.execute").click();
    await page.waitForSelector(".live-responses-table tbody .response-col_status");
    expect(await page.textContent(".live-responses-table tbody .response-col_status")).toContain("200");
    expect(problems).toEqual([]);
  });

  test("the reference cannot be shown inside another page", async () => {
    const page = await browser.newPage();
    await page.setContent(`<iframe src="${millrace.url}/docs"></iframe>`, { waitUntil: "networkidle" });
    const shown = await Promise.all(page.frames().map((frame) => frame.locator(".swagger-ui").count()));
    expect(shown).toEqual(shown.map(() => 0));
  });
});
