/** The pages of arrivals in a browser: why, backfill by selection, KPIs, redelivery, and a map of 1,000 by 400 and by 2,400. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { useKpis } from "../../src/arrivals/arrivals.fixture.ts";
import { startReceiver } from "../../src/webhooks/receiver.fixture.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, forgive, hasBrowser, PHONE, useConsole } from "./browser.ts";
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
    await page.getByText("Waiting for a table: B 20260401.").waitFor();
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
    // Without a map above, the axis begins with the first value, and the newest value is shown.
    const plot = page.getByRole("slider", { name: /KD1001/ });
    await expect.poll(() => plot.getAttribute("aria-valuetext")).toBe("20260331: KD1001 1");
    expect(await plot.getAttribute("aria-valuenow")).toBe("0");
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
    // They and the tables are found from everywhere.
    for (const [typed, option, path] of [
      ["b", /^B Table$/, "/arrivals?q=B"],
      ["M", /^M Model · /, "/arrivals/models/M"],
      ["kd1001", /^KD1001 KPI · /, "/arrivals/kpis/KD1001"],
    ] as const) {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog").getByRole("combobox").fill(typed);
      await page.getByRole("option", { name: option }).click();
      await page.waitForURL((url) => url.href.endsWith(path));
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
    await page.getByText("Waiting for a table: B 20260401.").waitFor();
    await page.getByRole("searchbox", { name: "Filter by name" }).fill("nothing");
    await page.getByText("Nothing matches the filters.").waitFor();
    // The page of a model that has failed shows why, and runs it again.
    const sql = "select 'KD1001' as kpi_id, ascii($op_time) / 0 as value";
    await kpis.publish("N", { engine: "warehouse", sql, kpis: ["KD1009"] });
    await kpis.arrive("T", "20260331");
    await page.goto(`${kpis.url}/arrivals/models/N`);
    await page.getByText("division by zero").first().waitFor();
    await page.getByText("millrace kpi apply").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Retry" }).click();
    await expect.poll(async () => (await kpis.tasks("N", "20260331")).length).toBe(2);
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
    await page.getByText("3 runs queued.").waitFor();
    expect(await clicks()).toBe(3);
    for (const day of days)
      await expect.poll(async () => (await kpis.tasks("M", day)).map((run) => run.status)).toEqual(["SUCCESS"]);
    // By the keyboard too, although the drawer opens at the second cell.
    await cell.focus();
    for (const key of ["End", "Shift+ArrowLeft", "Shift+ArrowLeft"]) await page.keyboard.press(key);
    for (const day of days) await page.getByRole("complementary").getByText(day).waitFor();
  });

  test("one failed delivery is redelivered by two clicks, and all since 02:00 by three", async () => {
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
    await one.page.getByRole("button", { name: "Redeliver", exact: true }).click();
    await one.page.getByText("Redelivery queued.").waitFor();
    expect(await one.clicks()).toBe(2);
    await expect.poll(failed).toEqual(["20260331: 1", "20260401: 1", "20260402: 2"]);
    // Every attempt stays, with what came of it.
    const attempts = one.page.getByRole("listitem").filter({ hasText: "ECONNREFUSED" });
    await expect
      .poll(() => attempts.allInnerTexts())
      .toEqual([expect.stringMatching(/^✕\s+2\./), expect.stringMatching(/^✕\s+1\./)]);
    // What was delivered is redelivered only after a confirmation.
    await one.page.getByRole("row", { name: /20260403/ }).click();
    await one.page.getByRole("button", { name: "Redeliver", exact: true }).click();
    await one.page.getByRole("dialog").getByText("Already delivered.").waitFor();
    await one.page.keyboard.press("Escape");
    await one.page.getByRole("dialog").waitFor({ state: "detached" });
    const all = await browser.open("/arrivals/deliveries");
    await all.page.getByRole("radio", { name: "Since 02:00" }).click();
    await all.page.getByRole("button", { name: "Redeliver all matching" }).click();
    await all.page.getByRole("button", { name: "Redeliver 2" }).click();
    await all.page.getByText("Deliveries queued for redelivery: 2.").waitFor();
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
    const form = all.page.getByRole("dialog");
    await form.locator('datalist option[value="KD1001"]').waitFor({ state: "attached" });
    await form.getByLabel("KPI").fill("KD1001");
    await form.getByLabel("Callback URL").fill("127.0.0.1/other");
    await form.getByLabel("Secret to send").selectOption("Header");
    await form.getByLabel("Name of the secret").fill("Host");
    await form.getByLabel("Value of the secret").fill("a, b");
    await form.getByRole("button", { name: "Create" }).click();
    for (const code of ["CALLBACK_URL_INVALID", "SECRET_INVALID"]) await form.getByText(code).waitFor();
    forgive(all, "400");
    await form.getByLabel("Callback URL").fill("http://127.0.0.1:9/other");
    await form.getByLabel("Name of the secret").fill("X-Key");
    await form.getByRole("button", { name: "Create" }).click();
    await all.page.getByText("Webhook signing key. Copy it now; it is not shown again.").waitFor();
    await all.page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    const added = all.page.getByRole("row", { name: /127\.0\.0\.1:9 ?\/other/ });
    await added.getByRole("button", { name: "Disable" }).click();
    await added.getByRole("button", { name: "Enable" }).waitFor();
    // It is tested, and its key is changed, where it is shown.
    await added.click();
    const drawer = all.page.getByRole("complementary");
    await drawer.getByText("in a header: X-Key").waitFor();
    // The way back closes it.
    await all.page.goBack();
    await drawer.waitFor({ state: "detached" });
    await added.click();
    await drawer.getByRole("button", { name: "Send a test" }).click();
    await drawer.getByText(/ECONNREFUSED/).waitFor();
    await drawer.getByRole("button", { name: "Rotate signing key" }).click();
    await all.page.getByRole("button", { name: "Rotate key" }).click();
    await all.page.getByText(/whsec_/).waitFor();
    await all.page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    expect(await accessibilityFaults(all.page)).toEqual([]);
    // The deliveries of one subscription say so, and lead back to all.
    await added.getByRole("link", { name: /other/ }).click();
    await all.page.getByRole("link", { name: /^Subscription \d+ ✕$/ }).click();
    await all.page
      .getByRole("row", { name: /20260402/ })
      .first()
      .waitFor();
    // A subscription that is deleted is gone; a receiver that asked to retry later is the reason of its deliveries.
    await all.page.goBack();
    await all.page.goBack();
    await drawer.getByRole("button", { name: "Delete" }).click();
    await all.page.getByRole("button", { name: "Delete the subscription" }).click();
    await added.waitFor({ state: "detached" });
    await database.query("update webhooks.endpoint set failing_since = now(), held_until = now() + interval '1 hour'");
    await kpis.arrive("T", "20260404");
    await all.page
      .getByRole("row", { name: /127\.0\.0\.1:9.*asked to retry later, next in/ })
      .getByRole("link", { name: "1 pending" })
      .click();
    await all.page.getByRole("row", { name: /20260404.*asked to retry later, next in/ }).click();
    await drawer.getByText("failing since").waitFor();
    // A phone shows the endpoint and the reason, without the columns that do not fit, and the filters at a click.
    await all.page.setViewportSize(PHONE);
    await drawer.getByRole("button", { name: "Close" }).click();
    const row = all.page.getByRole("row", { name: /pending 20260404.*:9.*asked to retry later/ });
    await row.waitFor();
    expect(await row.evaluate((element) => element.scrollWidth <= innerWidth)).toBe(true);
    expect(await all.page.getByLabel("Status").isVisible()).toBe(false);
    await all.page.getByRole("button", { name: "Filter (2)" }).click();
    await all.page.getByLabel("Status").waitFor();
  });

  test("a delivery shows the response to each attempt, and what verifies the webhook", async () => {
    const receiver = await startReceiver();
    receiver.on("/hook", (nth, response) => {
      response.writeHead(nth === 1 ? 500 : 200).end(nth === 1 ? "the disk is full" : "thank you");
      return undefined;
    });
    await kpis.publish("M", { kpis: ["KD2000"], sql: "select 'KD2000' as kpi_id, 7 as value" });
    const callbackUrl = receiver.url("/hook");
    const subscription = { kpiId: "KD2000", callbackUrl, retryNum: 0, secret: "Header,X-Key,hush-hush" };
    const signingKey = String((await kpis.post("/subscriptions", subscription)).body["signingKey"]);
    await kpis.arrive("T", "20260501");
    const { page } = await browser.open("/arrivals/deliveries?opTime=none");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByRole("row", { name: /failed.*20260501/ }).click();
    const drawer = page.getByRole("complementary");
    await drawer.getByText("the disk is full").waitFor();
    await drawer.getByRole("button", { name: "Redeliver" }).click();
    // The response to the attempt that failed stays, and that to the new one is a click away.
    const attempts = drawer.getByRole("listitem");
    await expect.poll(() => attempts.allInnerTexts()).toMatchObject([expect.stringContaining("200"), /500/]);
    await attempts.last().getByText("the disk is full").waitFor();
    expect(await drawer.getByText("thank you").isVisible()).toBe(false);
    await attempts.first().getByText("Response").click();
    await drawer.getByText("thank you").waitFor();
    const [first, second] = receiver.received();
    const texts = await drawer.locator("pre").allTextContents();
    const [payload, request, verify] = texts.slice(-3);
    expect(JSON.parse(String(payload))).toEqual(second?.json);
    expect(request).toContain(`POST ${callbackUrl}`);
    expect(request).toContain("x-key: •••");
    expect(await drawer.textContent()).not.toContain("hush-hush");
    expect(second?.headers["x-key"]).toBe("hush-hush");
    // As it is copied from the page, and as it stands in the documentation.
    const { isGenuine } = await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(String(verify))}`);
    for (const received of [first, second]) expect(isGenuine(received?.headers, received?.body, signingKey)).toBe(true);
    expect(isGenuine(second?.headers, `${second?.body} `, signingKey)).toBe(false);
    expect(readFileSync("docs/webhooks.md", "utf8")).toContain(verify);
    expect(await accessibilityFaults(page)).toEqual([]);
    // Once a pause that the receiver asked for is over, nothing is left to say of it.
    await database.query("update webhooks.endpoint set held_until = now() + interval '8 s' where callback_url = $1", [
      callbackUrl,
    ]);
    await page.reload();
    await drawer.getByText("Endpoint state").waitFor();
    await drawer.getByText("Endpoint state").waitFor({ state: "detached" });
    await receiver.stop();
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
    const label = () => cell.getAttribute("aria-label");
    await expect.poll(label).toMatch(/20250101: waiting for tables/);
    // Of more columns, several are one cell, which shows the most urgent of them and opens to show each.
    await page.getByRole("searchbox", { name: "Filter by name" }).fill("m0001");
    const columns = page.getByLabel("Columns");
    await columns.selectOption("2,400");
    await expect.poll(label).toBe("m0001 20190712 – 20190717 (6 opTimes): no data");
    await cell.focus();
    for (const key of ["End", "ArrowLeft", "ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key);
    await expect.poll(label).toBe("m0001 20260112 – 20260117 (6 opTimes): waiting for tables");
    await page.keyboard.press("Enter");
    await page.getByText("20251222 – 20260204").waitFor();
    // From there one goes on to what is earlier and later, and back to the map that was zoomed.
    await page.getByRole("button", { name: "Earlier" }).click();
    await page.getByText("20251108 – 20251222").waitFor();
    expect(page.url()).toMatch(/to=20251222/);
    await page.getByRole("button", { name: "Later" }).click();
    await page.getByText("20251222 – 20260204").waitFor();
    await page.goBack();
    await expect.poll(() => columns.inputValue()).toBe("2400");
    await page.getByRole("button", { name: "Newest" }).click();
    await expect.poll(() => page.url()).toMatch(/\/arrivals\?tab=models&q=m0001$/);
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
