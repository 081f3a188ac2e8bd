/** The pages of arrivals in a browser: why, backfill by selection, KPIs, sending again, and a map of 1,000 by 400. */
import { describe, expect, test } from "vitest";
import { useKpis } from "../../src/arrivals/arrivals.fixture.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, hasBrowser, useConsole } from "./browser.ts";
import { addModels } from "./large-data.ts";

const database = useDatabase();
const kpis = useKpis(database, { env: { MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true" } });

describe.runIf(hasBrowser)("in a browser", () => {
  const browser = useConsole(kpis);

  test("why a model has not run is one click from the heat map", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "A" }, { table: "B" }] });
    for (const day of ["20260331", "20260401"]) await kpis.arrive("A", day);
    await kpis.arrive("B", "20260331");
    const { page, clicks } = await browser.open("/arrivals?tab=models&from=20260228&to=20260401");
    const grid = page.getByRole("grid", { name: /Models by opTime/ });
    await grid.getByRole("gridcell").click();
    await page.getByText("It waits for a table: B 20260401.").waitFor();
    // The drawer makes the map narrower: the cell that was opened stays in view.
    const drawer = await page.getByRole("complementary").boundingBox();
    await expect
      .poll(async () => {
        const cell = await grid.getByRole("gridcell").boundingBox();
        return cell && drawer && cell.x + cell.width <= drawer.x;
      })
      .toBe(true);
    expect(await clicks()).toBe(1);
    expect(page.url()).toMatch(/at=20260401/);
    await page.getByText("by key MILLRACE_ADMIN_KEY").first().waitFor();
    await page.getByRole("button", { name: "Table", exact: true }).click();
    const values = page.getByRole("grid", { name: /KD1001/ }).getByText("20260331");
    await values.waitFor();
    // The page of the model has the same values, and says whether arrivals run it.
    await page.getByRole("complementary").getByRole("link", { name: "Model", exact: true }).click();
    await page.getByRole("figure", { name: /KD1001/ }).waitFor();
    await page.getByRole("button", { name: "Unpublish" }).click();
    await page.getByText("not published").waitFor();
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await page.getByRole("button", { name: "Unpublish" }).waitFor();
    // So does the page of the KPI, with the run of each value.
    await page.getByRole("link", { name: "KD1001", exact: true }).click();
    await page.getByRole("heading", { name: "KD1001" }).waitFor();
    await page.getByRole("figure", { name: /KD1001/ }).waitFor();
    const value = page.getByRole("grid", { name: "Values" }).getByRole("row", { name: /20260331/ });
    const cells = await value.getByRole("gridcell").allInnerTexts();
    expect(cells.slice(0, -1)).toEqual(["20260331", "", "1", "1"]);
    await value.click();
    await page.getByRole("complementary", { name: "M for 20260331" }).waitFor();
    // Both are found from everywhere.
    for (const [typed, option, path] of [
      ["M", /^M Model · /, "/arrivals/models/M"],
      ["kd1001", /^KD1001 KPI · /, "/arrivals/kpis/KD1001"],
    ] as const) {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog").getByRole("combobox").fill(typed);
      await page.getByRole("option", { name: option }).click();
      await page.waitForURL(`**${path}`);
    }
  });

  test("a table says when it has arrived, or that it has not, and which models need it", async () => {
    await kpis.publish("M", { grain: "day", dependencies: [{ table: "A" }, { table: "B" }] });
    for (const day of ["20260331", "20260401"]) await kpis.arrive("A", day);
    await kpis.arrive("B", "20260331");
    const { page } = await browser.open("/arrivals?from=20260228&to=20260401");
    const cell = page.getByRole("grid", { name: /Tables by opTime/ }).getByRole("gridcell");
    await expect.poll(() => cell.getAttribute("aria-label")).toBe("A 20260401: arrived");
    await cell.click();
    const there = page.getByRole("complementary", { name: "A for 20260401" });
    await there.getByText("key MILLRACE_ADMIN_KEY").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => cell.getAttribute("aria-label")).toBe("B 20260401: not arrived");
    await page.keyboard.press("Enter");
    const missing = page.getByRole("complementary", { name: "B for 20260401" });
    await missing.getByText("It has not arrived.").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await missing.getByRole("link", { name: "M 20260401" }).click();
    await page.getByText("It waits for a table: B 20260401.").waitFor();
    await page.getByRole("searchbox", { name: "Filter by name" }).fill("nothing");
    await page.getByText("Nothing matches the filters.").waitFor();
  });

  test("three missing days are backfilled by three clicks, after a preview", async () => {
    await kpis.define("M", { grain: "day" });
    const days = ["20260401", "20260402", "20260403"];
    for (const day of days) await kpis.arrive("T", day);
    await kpis.post("/models/M:publish");
    const { page, clicks } = await browser.open("/arrivals?tab=models&from=20260330&to=20260403");
    const cell = page.getByRole("grid", { name: /Models by opTime/ }).getByRole("gridcell");
    const box = await cell.boundingBox();
    if (!box) throw new Error("the cell is not in view");
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.click(x - 2 * box.width, y);
    // The drawer beside the map makes it narrower: the newest cell is where the keyboard's cell was, or left of it.
    await page.getByRole("complementary").waitFor();
    const first = await cell.boundingBox();
    if (!first) throw new Error("the first cell is not in view");
    await page.keyboard.down("Shift");
    await page.mouse.click(first.x + 2.5 * first.width, first.y + first.height / 2);
    await page.keyboard.up("Shift");
    for (const day of days) await page.getByRole("complementary").getByText(day).waitFor();
    await page.getByRole("button", { name: "Backfill 3 opTimes" }).click();
    await page.getByText("3 runs are queued.").waitFor();
    expect(await clicks()).toBe(3);
    for (const day of days)
      await expect.poll(async () => (await kpis.tasks("M", day)).map((run) => run.status)).toEqual(["SUCCESS"]);
  });

  test("one failed delivery is sent again by two clicks, and all since 02:00 by three", async () => {
    await kpis.publish("M");
    await kpis.post("/subscriptions", { kpiId: "KD1001", callbackUrl: "http://127.0.0.1:9/", retryNum: 0 });
    for (const day of ["20260331", "20260401", "20260402", "20260403"]) await kpis.arrive("T", day);
    type Failed = { items: { opTime: string; attempts: number }[] };
    const attemptsOf = async (status: string) =>
      (await kpis.get<Failed>(`/deliveries?status=${status}`)).body.items
        .map(({ opTime, attempts }) => `${opTime}: ${attempts}`)
        .sort();
    const failed = () => attemptsOf("FAILED");
    await expect.poll(failed).toEqual(["20260331: 1", "20260401: 1", "20260402: 1", "20260403: 1"]);
    await database.query("update webhooks.delivery set status = 'DELIVERED' where op_time = '20260403'");
    await database.query(
      "update webhooks.delivery set created_at = created_at - interval '1 day' where op_time = '20260331'",
    );
    const one = await browser.open("/arrivals/deliveries");
    await one.page.getByRole("row", { name: /20260402/ }).click();
    await one.page.getByRole("button", { name: "Send again", exact: true }).click();
    await one.page.getByText("It is sent again.").waitFor();
    expect(await one.clicks()).toBe(2);
    await expect.poll(failed).toEqual(["20260331: 1", "20260401: 1", "20260402: 2"]);
    // Every attempt stays, with what came of it.
    const attempts = one.page.getByRole("listitem").filter({ hasText: "ECONNREFUSED" });
    await expect
      .poll(() => attempts.allInnerTexts())
      .toEqual([expect.stringMatching(/^✕\s+2\./), expect.stringMatching(/^✕\s+1\./)]);
    const all = await browser.open("/arrivals/deliveries");
    await all.page.getByRole("radio", { name: "Since 02:00" }).click();
    await all.page.getByRole("button", { name: "Send all matching again" }).click();
    await all.page.getByRole("button", { name: "Send 2 again" }).click();
    await all.page.getByText("Deliveries that are sent again: 2.").waitFor();
    expect(await all.clicks()).toBe(3);
    await expect.poll(failed).toEqual(["20260331: 1", "20260401: 2", "20260402: 3"]);
    expect(await attemptsOf("DELIVERED")).toEqual(["20260403: 1"]);
    // The receiver is known by its host and the end of its path.
    await all.page
      .getByRole("row", { name: /127\.0\.0\.1:9/ })
      .first()
      .waitFor();
    await all.page.getByRole("link", { name: "Subscriptions" }).click();
    await all.page.getByRole("button", { name: "New subscription" }).click();
    await all.page.getByLabel("KPI").fill("KD1001");
    await all.page.getByLabel("Callback URL").fill("http://127.0.0.1:9/other");
    await all.page.getByRole("button", { name: "Create" }).click();
    await all.page.getByText("The key that signs its webhooks. It is shown only now.").waitFor();
    await all.page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    const added = all.page.getByRole("row", { name: /127\.0\.0\.1:9 ?\/other/ });
    await added.getByRole("button", { name: "Disable" }).click();
    await added.getByRole("button", { name: "Enable" }).waitFor();
    // The deliveries of one subscription say so, and lead back to all.
    await added.getByRole("link", { name: /other/ }).click();
    await all.page.getByText("No delivery matches.").waitFor();
    await all.page.getByRole("link", { name: /^Subscription \d+ ✕$/ }).click();
    await all.page
      .getByRole("row", { name: /20260402/ })
      .first()
      .waitFor();
  });

  test("a map of 1,000 models by 400 days opens and scrolls to its last row", async () => {
    await addModels(database.query, 1_000, 400, 20);
    const { page } = await browser.open("/arrivals?tab=models&from=20250101&to=20260204");
    const grid = page.getByRole("grid", { name: /Models by opTime/ });
    await grid.getByText("m0001").waitFor();
    const cell = grid.getByRole("gridcell");
    await cell.focus();
    // Also between a key and the event of scrolling that follows it.
    expect(await page.evaluate(focusAfterKeys, 5)).toBe("gridcell");
    // Each page of rows is fetched when the end of those before it comes into view.
    await expect
      .poll(
        async () => {
          await page.keyboard.press("PageDown");
          return grid.getByText("m1000").isVisible();
        },
        { timeout: 20_000, interval: 20 },
      )
      .toBe(true);
    await page.keyboard.press("Home");
    await expect.poll(() => cell.getAttribute("aria-label")).toMatch(/20250101: waits for tables/);
  });
});

/** What has the focus when keys come faster than frames: each goes to what has it then. */
async function focusAfterKeys(count: number): Promise<string | null | undefined> {
  for (let key = 0; key < count; key += 1) {
    document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true }));
    await Promise.resolve();
  }
  return document.activeElement?.role;
}
