/** The pages of tracking in a browser: the grid, a file, and the retry of 10,000 stuck shards. */
import type { Route } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";
import { reached, trackingTable } from "../tracking.ts";
import { hasBrowser, useConsole } from "./browser.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const STUCK = 10_000;
const post = (path: string, body: object) => millrace.api.post(`/api/v1/pipeline${path}`, body);
const numbers = (n: number) => Array.from({ length: n }, (_, shard) => shard);

describe.runIf(hasBrowser)("in a browser", () => {
  const browser = useConsole(millrace);
  beforeEach(() => table.clear());

  test("10,000 stuck shards are retried by three clicks, after a count, without a request for each", async () => {
    for (const filename of ["orders-1.csv", "orders-2.csv"])
      await table.put(reached("shard-worker", "failed"), { filename, shards: numbers(STUCK / 2) });
    await table.put(reached("shard-worker", "new"), { filename: "fine.csv" });
    const { page, clicks } = await browser.open("/tracking");
    const requests: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") requests.push(request.url());
    });
    await page.getByRole("link", { name: "Stuck" }).click();
    await page.getByRole("grid", { name: "Stuck" }).getByText("orders-1.csv").first().waitFor();
    await page.getByRole("button", { name: "Retry all matching" }).click();
    await page.getByRole("dialog").getByText("10,000 failed").waitFor();
    await page.getByRole("button", { name: "Retry 10,000" }).click();
    await page.getByText("10,000 shards queued for retry.").waitFor();
    await page.getByText("Nothing is stuck.").waitFor();
    expect(await clicks()).toBe(3);
    expect(requests.map((url) => new URL(url).pathname + new URL(url).search)).toEqual([
      "/api/v1/pipeline/stuck:retry?dryRun=true",
      "/api/v1/pipeline/stuck:retry",
    ]);
    const { body } = await millrace.api.get<{ stages: { ready: number; failed: number }[] }>("/api/v1/pipeline/queues");
    expect(body.stages[2]).toMatchObject({ ready: STUCK + 1, failed: 0 });
  });

  test("the grid shows live where every shard is, and a cell opens what the server knows of it", async () => {
    await table.put(reached("mysql-sender", "done"), { filename: "old.csv", shards: numbers(12) });
    await table.put(reached("shard-worker", "new"), { filename: "new.csv", shards: numbers(4) });
    const { page, clicks } = await browser.open("/tracking");
    const grid = page.getByRole("grid", { name: /Files by shard/ });
    const cell = grid.getByRole("gridcell");
    await expect.poll(() => cell.getAttribute("aria-label")).toBe("new.csv 0: waiting for shard-worker");
    await page.getByText("Live", { exact: true }).waitFor();
    const { body } = await millrace.api.get<{ stages: object[] }>("/api/v1/pipeline/queues");
    expect(body.stages).toMatchObject([{ done: 16 }, { done: 16 }, { ready: 4, done: 12 }, { ready: 0, done: 12 }]);
    const figures = page.locator("section", { has: page.getByRole("heading", { name: "3 shard-worker" }) });
    const shown = async () => (await figures.getByRole("definition").allInnerTexts()).join(" ");
    await expect.poll(shown).toBe("4 0 0");
    await post("/stages/shard-worker/fail", { filename: "new.csv", shard: 0, error: "the disk is full" });
    await expect.poll(() => cell.getAttribute("aria-label")).toBe("new.csv 0: failed in shard-worker");
    await expect.poll(shown).toBe("3 0 ✕ 1");
    await cell.click();
    const drawer = page.getByRole("complementary");
    await drawer.getByText("the disk is full").waitFor();
    expect(page.url()).toMatch(/file=new\.csv&shard=0/);
    expect(await clicks()).toBe(1);
    await drawer.getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => cell.getAttribute("aria-label")).toBe("new.csv 0: waiting for shard-worker");
    await drawer.getByText("the disk is full").waitFor({ state: "detached" });
  });

  test("a file is found by Ctrl K, with all its shards in all stages", async () => {
    await table.put(reached("shard-splitter", "new"), { filename: "invoices & more.csv", shards: numbers(600) });
    await post("/queues/shard-splitter/claim", { worker: "splitter-7", limit: 1, lease_seconds: 300 });
    const { page } = await browser.open("/");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("invoi");
    await page.getByRole("option", { name: "invoices & more.csv" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "invoices & more.csv" }).waitFor();
    const first = page.getByRole("row", { name: /splitter-7/ });
    await first.waitFor();
    expect(await first.textContent()).toMatch(/^0.*done.*started.*not reached.*not reached.*splitter-7.*left/);
    await first.focus();
    // Each page is fetched when the end of those before it comes into view.
    await expect
      .poll(
        async () => {
          await page.keyboard.press("End");
          return page.getByRole("row", { name: /^599/ }).isVisible();
        },
        { timeout: 10_000 },
      )
      .toBe(true);
  });

  test("what is stuck is named with its reason, and the retry of all of it warns of what may be processed twice", async () => {
    await table.put(reached("mysql-sender", "started"), { filename: "slow.csv" });
    await table.put(reached("shard-worker", "failed"), { filename: "bad.csv", shards: numbers(3) });
    const { page } = await browser.open("/tracking?tab=stuck", { script: fasterTimers });
    await page.getByText("bad.csv").first().waitFor();
    // No change is reported when a shard becomes overdue: the page reads again from time to time.
    await database.query("update tracking.pipeline_tracking set updated_at = now() - interval '2 hours'");
    await page.getByText("Started more than an hour ago without a lease.").waitFor();
    await expect.poll(() => page.getByRole("link", { name: /Stuck/ }).textContent()).toMatch(/4/);
    await page.getByRole("button", { name: "Retry all matching" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("those shards may then be processed twice").waitFor();
    // While it is under way the browser asks before the page is closed. A retry that is ended says what is left.
    const asksBeforeClosing = () =>
      page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
    expect(await asksBeforeClosing()).toBe(false);
    const calls: Route[] = [];
    await page.route("**/stuck:retry", (route) => void calls.push(route));
    await dialog.getByRole("button", { name: "Retry 4" }).click();
    await dialog.getByText("Keep this page open").waitFor();
    expect(await asksBeforeClosing()).toBe(true);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await calls[0]?.fulfill({ json: { retried: 3, more: true } });
    await page.getByText("Shards queued for retry: 3. Still stuck: 1.").waitFor();
    expect(await asksBeforeClosing()).toBe(false);
    // Filters that leave nothing are taken away at a click.
    await page.getByRole("searchbox").fill("none");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("bad.csv").first().waitFor();
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("searchbox").fill("none");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("bad.csv").first().waitFor();
  });
});

/** What the page does every 30 s, it does every second. */
function fasterTimers(): void {
  const { setInterval: original } = window;
  window.setInterval = ((run: () => void, ms: number) =>
    original(run, ms === 30_000 ? 1_000 : ms)) as typeof setInterval;
}
