/** The first page: is anything wrong, what waits, what has ended, is a source slow or are we throttled; and handing a view on. */
import { describe, expect, test } from "vitest";
import { hrefOf } from "../../console/src/overview/targets.ts";
import { correct, itemsOf, useScripted } from "../../src/harvest/run/scripted.fixture.ts";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY } from "../millrace.ts";
import { until } from "../until.ts";
import { accessibilityFaults, DESKTOP, forgive, hasBrowser, isInView, PHONE, useConsole } from "./browser.ts";

const database = useDatabase();
const harvests = useScripted(database);

async function define(name: string, nodes: object[]): Promise<string> {
  const { body } = await harvests.api.post<{ chainId: string }>("/api/v1/chains", { name, dagJson: { nodes } });
  return body.chainId;
}

async function run(chainId: string, opTime: string): Promise<string> {
  const { body } = await harvests.api.post<{ runId: string }>(`/api/v1/chains/${chainId}:start`, { opTime });
  return body.runId;
}

const ends = (runId: string) =>
  until(async () => {
    const { body } = await harvests.api.get<{ endedAt: string | null }>(`/api/v1/runs/${runId}`);
    return body.endedAt !== null;
  }, `the end of run ${runId}`);

describe.runIf(hasBrowser)("the overview", () => {
  const browser = useConsole({
    get url() {
      return harvests.millrace.url;
    },
  });

  test("of an empty system names the command that fills it", async () => {
    // Without the scope admin: the doctor has something to say of a Postgres that tests use.
    const { body } = await harvests.api.post<{ key: string }>("/api/v1/keys", {
      name: "reader",
      scopes: ["run:read", "kpi:read", "harvest:read", "lineage:read", "pipeline:read"],
    });
    const { page } = await browser.open("/", { key: body.key });
    await page.getByText("Nothing needs you.").waitFor();
    await page.getByText("millrace chain apply").waitFor();
  });

  test("says without a click what is wrong and what waits, follows it live, and marks failures in their lanes", async () => {
    const broken = await define("export", [
      { id: "upload", type: "sql", cfg: { engine: "duckdb", sql: "select no_column" } },
    ]);
    const runId = await run(broken, "20260401");
    await ends(runId);
    await run(await define("waits", [{ id: "load", type: "noop", waitsFor: ["ORDERS_OF_A_DAY"] }]), "20260401");

    const { page, clicks } = await browser.open("/?range=hour");
    const failure = page.getByRole("list", { name: "Needs you" }).getByRole("listitem").filter({ hasText: "export" });
    await failure.getByText("no_column").waitFor();
    const cause = page.getByText("Table ORDERS_OF_A_DAY has not arrived");
    await cause.waitFor();
    const action = failure.getByRole("link", { name: "Retry export" });
    expect(await action.getAttribute("href")).toBe(`/chains/runs/${runId}`);
    for (const shown of [failure, action, cause]) expect(await isInView(shown)).toBe(true);
    const chains = page.getByRole("grid", { name: "Chains", exact: true });
    const cell = chains.getByRole("gridcell", { name: /^export, .*1 ended, 1 failed$/ });
    await cell.waitFor();
    expect(await clicks()).toBe(0);
    // The doctor knows of the failure too. It has answered: what it says of this Postgres is there.
    await page.getByText(/fsync off/).waitFor();
    expect(await failure.count()).toBe(1);

    // What ends meanwhile appears by itself.
    const good = await define("import", [{ id: "n", type: "noop" }]);
    await ends(await run(good, "20260401"));
    await chains.getByRole("gridcell", { name: /^import, .*1 ended$/ }).waitFor();

    const ended = page.getByRole("figure", { name: "Ended", exact: true });
    await ended.getByRole("button", { name: "Table" }).click();
    const counts = ended.locator("[role=row] [role=gridcell]:last-child");
    const sum = async () => (await counts.allInnerTexts()).reduce((all, one) => all + Number(one), 0);
    await expect.poll(sum).toBe(2);
    await page.getByRole("figure", { name: "From request to end, p95" }).waitFor();

    for (const [colorScheme, viewport] of [
      ["light", DESKTOP],
      ["dark", PHONE],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      expect(await accessibilityFaults(page)).toEqual([]);
    }
    await page.setViewportSize(DESKTOP);

    await cell.focus();
    await page.keyboard.press("ArrowDown");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toMatch(/^(import|waits),/);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/chains/runs/${runId}*`);
  });

  test("tells a source that is slow from one that we throttle, and opens it in one click", async () => {
    const answer = correct(itemsOf(30));
    const throttled = await harvests.source(answer, { rateLimit: { refillRatePerSec: 0.7, burstCapacity: 1 } });
    // Much slower than a permit of the gate takes on a busy machine.
    const slow = await harvests.source(async (request) => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return answer(request);
    });
    for (const source of [throttled, slow])
      expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    const { page, clicks } = await browser.open("/");
    const list = page.getByRole("grid", { name: "Sources in the last hour" });
    const row = list.getByRole("row", { name: new RegExp(throttled) });
    await row.getByText("throttled").waitFor();
    expect(await row.innerText()).toMatch(new RegExp(`\\d+% waiting for gate ${throttled}`));
    expect(await list.getByRole("row", { name: new RegExp(slow) }).innerText()).toMatch(/waiting for responses/);
    const lag = page.getByRole("figure", { name: "Lag behind the source" });
    await expect.poll(() => lag.innerText()).toMatch(new RegExp(`${slow}\\S*\\s+\\d+ [mhd]`));
    await row.getByRole("link", { name: throttled }).click();
    await page.waitForURL(`**/harvest/${throttled}*`);
    expect(await clicks()).toBe(1);
  });

  test("links to pages that exist, whatever an entry is about", async () => {
    const opened = await browser.open("/");
    const { page } = opened;
    const kinds = ["chain", "pool", "model", "table", "delivery", "receiver", "source", "plan"];
    for (const kind of [...kinds, "stage", "failed-stage", "dead-letter", "tenant"]) {
      const href = hrefOf({ kind, id: kind.endsWith("stage") ? "shard-worker" : "7", opTime: "20260401" });
      await page.goto(harvests.millrace.url + String(href));
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect([kind, await page.getByText("Page not found.").count()]).toEqual([kind, 0]);
    }
    // Most of them do not exist here, and the pages say so.
    forgive(opened, "400", "404");
  });

  test("chooses a part of the time by dragging, which is then in the address", async () => {
    const { page } = await browser.open("/?range=hour");
    const track = page.locator("[data-track]");
    await track.scrollIntoViewIfNeeded();
    const box = await track.boundingBox();
    if (!box) throw new Error("the axis is not in view");
    await page.mouse.move(box.x + box.width * 0.5, box.y - 10);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y - 10);
    await page.mouse.move(box.x + box.width * 0.75, box.y - 10);
    await page.mouse.up();
    await page.waitForURL(/from=.*&to=/);
    const search = new URL(page.url()).searchParams;
    const minutes = (Date.parse(search.get("to") ?? "") - Date.parse(search.get("from") ?? "")) / 60_000;
    expect(minutes).toBeGreaterThan(13);
    expect(minutes).toBeLessThan(19);
    await page.getByRole("button", { name: "Show the last day again" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("");
  });

  test("hands a colleague the exact view by one click, or by the key y", async () => {
    const chainId = await define("shared", [{ id: "n", type: "noop" }]);
    const runId = await run(chainId, "20260407");
    await ends(runId);
    const view = `/chains/runs/${runId}?tab=table&node=n`;
    const { page, clicks } = await browser.open(view);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy link to this view" }).click();
    await page.getByText("Copied").waitFor();
    expect(await clicks()).toBe(1);
    const link = await page.evaluate(() => navigator.clipboard.readText());
    expect(link).toBe(page.url());

    const { pathname, search } = new URL(link);
    const other = await browser.open(pathname + search, { key: null });
    await other.page.getByLabel("API key").fill(ADMIN_KEY);
    await other.page.getByRole("button", { name: "Sign in" }).click();
    await other.page.getByRole("complementary").getByRole("heading", { name: "n" }).waitFor();
    expect(other.page.url()).toBe(link);
    expect(await other.page.locator("main").innerText()).toContain("20260407");

    // The run is also found by a part of its id, and by its chain and opTime.
    for (const typed of [runId.slice(0, 8), "share 20260407"]) {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog").getByRole("combobox").fill(typed);
      await page.getByRole("option", { name: new RegExp(`${runId}.*shared · 20260407 · succeeded`) }).waitFor();
      await page.keyboard.press("Escape");
    }

    const filtered = await browser.open("/chains/runs?status=SUCCESS&q=shared");
    await filtered.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await filtered.page.keyboard.press("y");
    await filtered.page.getByText("Copied").waitFor();
    expect(await filtered.page.evaluate(() => navigator.clipboard.readText())).toBe(filtered.page.url());
  });

  test("of a key with few scopes says what it does not see, instead of that there is nothing", async () => {
    const wanted = { name: "runs only", scopes: ["run:read"] };
    const { body } = await harvests.api.post<{ key: string }>("/api/v1/keys", wanted);
    const { page } = await browser.open("/", { key: body.key });
    await page.getByText(/^This page is not complete: your key lacks .*harvest:read/).waitFor();
    await page.getByText("Your key lacks the scope harvest:read.").waitFor();
    expect(await page.getByText("No source is defined yet.").count()).toBe(0);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("anything");
    await page.getByText(/^Some results are hidden: your key lacks .*harvest:read/).waitFor();
  });
});
