/** The pages, in a real browser, as a person sees them. */
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasChromium, launchChromium } from "../console/chromium.ts";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";

describe.runIf(hasChromium)("the pages", () => {
  const database = useDatabase();
  const millrace = useMillrace(database);
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
  });

  async function open(path: string): Promise<{ page: Page; problems: string[] }> {
    // So high that the whole reference is in view: of a long one, only what is in view is rendered.
    const page = await browser.newPage({ viewport: { width: 1_280, height: 20_000 } });
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

  test("the reference lists every call, tries them with the key that is typed there, and needs nothing from outside", async () => {
    const { page, problems } = await open("/docs");
    const { paths } = (await (await fetch(`${millrace.url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const calls = Object.values(paths).flatMap((path) => Object.keys(path));
    await expect.poll(() => page.locator(".opblock").count()).toBe(calls.length);

    const execute = async (call: Locator) => {
      await call.locator("button").first().click();
      await call.locator("button.execute").click();
      return call.locator(".live-responses-table tbody .response-col_status").textContent();
    };
    expect(await execute(page.locator(".opblock", { hasText: "/healthz" }))).toContain("200");
    await page.locator("button.authorize").first().click();
    await page.locator(".auth-container input").fill(ADMIN_KEY);
    await page.locator(".auth-btn-wrapper button.authorize").click();
    await page.locator(".auth-btn-wrapper button.btn-done").click();
    expect(await execute(page.locator(".opblock-get", { hasText: "/api/v1/keys" }))).toContain("200");
    expect(problems).toEqual([]);
  });

  test("the reference cannot be shown inside another page", async () => {
    const page = await browser.newPage();
    await page.setContent(`<iframe src="${millrace.url}/docs"></iframe>`, { waitUntil: "networkidle" });
    const shown = await Promise.all(page.frames().map((frame) => frame.locator(".swagger-ui").count()));
    expect(shown).toEqual(shown.map(() => 0));
  });
});
