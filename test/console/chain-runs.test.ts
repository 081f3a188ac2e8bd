/** The page of a run: Gantt, grid, log and comparison. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { holds, scripted, useChains } from "../chains.ts";
import { useDatabase } from "../database.ts";
import { signal } from "../until.ts";
import { accessibilityFaults, hasBrowser, useConsole } from "./browser.ts";

const database = useDatabase();
const chains = useChains(database);

/** A node that logs so many lines in its first attempt, then fails, and logs one line in its second. */
function talkative(id: string, lines: number) {
  return scripted(
    id,
    (ctx) => {
      if (ctx.attempt > 1) {
        ctx.log("this time it works");
        return {};
      }
      for (let n = 1; n <= lines; n += 1) ctx.log(`row ${n} of the table`, n === 4_321 ? "error" : "info");
      throw new Error("the table has no column price");
    },
    { retry: { maxAttempts: 2, backoffMs: 0, jitter: 0 } },
  );
}

/** As if the nodes of a run had taken so long, one after the other. */
async function took(runId: string, seconds: Readonly<Record<string, number>>): Promise<void> {
  let at = 0;
  for (const [nodeId, length] of Object.entries(seconds)) {
    await database.query(
      `update chains.job_run_node set started_at = '2025-01-01'::timestamptz + make_interval(secs => $3),
         ended_at = '2025-01-01'::timestamptz + make_interval(secs => $4) where run_id = $1 and node_id = $2`,
      [runId, nodeId, at, at + length],
    );
    at += length;
  }
  await database.query(
    `update chains.job_run set created_at = '2025-01-01', started_at = '2025-01-01',
       ended_at = '2025-01-01'::timestamptz + make_interval(secs => $2) where run_id = $1`,
    [runId, at],
  );
}

describe.runIf(hasBrowser)("the page of a run", () => {
  const browser = useConsole(chains);

  test("shows each attempt as a bar, the waits, and the critical path, and grows while the run goes on", async () => {
    const gate = signal();
    const runId = await chains.run([
      talkative("load", 3),
      { id: "beside", type: "noop" },
      scripted("check", async () => ({ artifact: await gate.promise }), { dependsOn: ["load"] }),
      { id: "publish", type: "noop", dependsOn: ["check"] },
    ]);
    await chains.nodeReaches(runId, "check", "RUNNING");
    const { page } = await browser.open(`/chains/runs/${runId}?tab=gantt`);
    const row = (name: string) => page.getByRole("row").filter({ hasText: name });
    await row("load")
      .getByLabel(/^attempt 1 failed/)
      .waitFor();
    await row("load")
      .getByLabel(/^attempt 2 succeeded/)
      .waitFor();
    await row("check")
      .getByLabel(/^attempt 1 running/)
      .waitFor();
    expect(await row("check").innerText()).toContain("on the critical path");
    expect(await row("beside").innerText()).not.toContain("on the critical path");
    await page.getByText("Critical path: load → check").waitFor();
    gate.resolve();
    await row("publish")
      .getByLabel(/^attempt 1 succeeded/)
      .waitFor();
    await page.getByText("Critical path: load → check → publish").waitFor();
    await row("load")
      .getByLabel(/^attempt 1 failed/)
      .click();
    const panel = page.getByRole("complementary");
    await panel.getByText("row 3 of the table").waitFor();
    await panel.getByLabel("Attempt", { exact: true }).selectOption("2");
    await panel.getByText("this time it works").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  test("draws 3,000 nodes as bars that scroll, and folds a night in which nothing ran", async () => {
    const nodes = Array.from({ length: 3_000 }, (_, at) => ({
      id: `n${at}`,
      type: "noop",
      ...(at > 0 && { dependsOn: [`n${Math.floor(at / 10)}`] }),
    }));
    const runId = await chains.run([...nodes.slice(0, 2_999), { ...nodes[2_999], id: "last", type: "noop" }]);
    await chains.reaches(runId, "SUCCESS");
    await database.query(
      `update chains.job_run_node set started_at = started_at + interval '9 hours', ended_at = ended_at + interval '9 hours'
       where run_id = $1 and node_id = 'last'`,
      [runId],
    );
    const { page } = await browser.open(`/chains/runs/${runId}?tab=gantt`, { colorScheme: "dark" });
    const gantt = page.getByRole("grid");
    await gantt.waitFor();
    expect(await gantt.getAttribute("aria-rowcount")).toBe("3001");
    expect(await gantt.getByRole("row").count()).toBeLessThan(100);
    await gantt.getByRole("row").nth(1).focus();
    await page.keyboard.press("End");
    await gantt.getByTitle("last", { exact: true }).waitFor();
    expect(await gantt.getByTitle(/^nothing ran for 8 h 59 m|^nothing ran for 9 h/).count()).toBeGreaterThan(0);
    await page.keyboard.press("Enter");
    await page.getByRole("complementary").getByRole("heading", { name: "last" }).waitFor();
  });

  test("says in one click why it was slower than the run before", async () => {
    const nodes = [
      { id: "extract", type: "noop" },
      { id: "load", type: "noop", dependsOn: ["extract"] },
      { id: "publish", type: "noop", dependsOn: ["load"] },
    ];
    const chainId = await chains.define(nodes);
    const [yesterday, today] = [
      await chains.start(chainId, { opTime: "20250101" }),
      await chains.start(chainId, { opTime: "20250102" }),
    ];
    for (const runId of [yesterday, today]) await chains.reaches(runId, "SUCCESS");
    await took(yesterday, { extract: 10, load: 20, publish: 1 });
    await took(today, { extract: 12, load: 320, publish: 1 });
    await database.query("update chains.job_run set created_at = created_at + interval '1 day' where run_id = $1", [
      today,
    ]);
    const { page, clicks } = await browser.open(`/chains/runs/${today}`);
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByText("5 m 2 s slower than 20250101: 5 m 33 s instead of 31 s.").waitFor();
    await page.getByText("Main cause: load (+5 m). Its own work took 5 m 20 s instead of 20 s.").waitFor();
    expect(await clicks()).toBe(1);
    const rows = page.getByRole("grid").getByRole("row");
    expect(await rows.nth(1).innerText()).toContain("load");
    expect(await rows.nth(2).innerText()).toContain("extract");
    await page.goto(`${chains.url}/chains/runs/${yesterday}?tab=compare&with=${today}`);
    await page.getByText("5 m 2 s faster than 20250102").waitFor();
  });

  test("opens the node of any run from the grid of the last ones", async () => {
    const name = `grid ${Math.random()}`;
    const nodes = (last: string) => [
      { id: "extract", type: "noop" },
      scripted(
        "load",
        ({ opTime }) => {
          if (opTime === "20250102") throw new Error("no rows");
          return {};
        },
        { dependsOn: ["extract"] },
      ),
      { id: last, type: "noop", dependsOn: ["load"] },
    ];
    const chainId = await chains.define(nodes("publish"), { name });
    for (const opTime of ["20250101", "20250102"]) {
      const runId = await chains.start(chainId, { opTime });
      await chains.reaches(runId, opTime === "20250102" ? "FAILED" : "SUCCESS");
    }
    await chains.api.put(`/api/v1/chains/${chainId}`, { name, dagJson: { nodes: nodes("notify") }, version: 1 });
    const runId = await chains.start(chainId, { opTime: "20250103" });
    await chains.reaches(runId, "SUCCESS");

    const { page } = await browser.open(`/chains/${chainId}?tab=grid`);
    const grid = page.getByRole("grid");
    await grid.getByText("v2").waitFor();
    expect(await grid.getByRole("rowheader").allInnerTexts()).toEqual(["extract", "load", "notify", "publish"]);
    await grid.getByLabel("load, 20250102: failed").click();
    await page.getByRole("complementary").getByText("no rows").first().waitFor();
    expect(page.url()).toContain("tab=grid");
    // The columns are where they were; the next run is reached by keys.
    await grid.getByLabel("load, 20250102: failed").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `${name} · 20250103` }).waitFor();
    await page.getByRole("complementary").getByRole("heading", { name: "load" }).waitFor();
  });

  test("shows a grid of 2,500 nodes, of which it reads the page in view", async () => {
    const nodes = Array.from({ length: 2_500 }, (_, at) => ({ id: `n${at}`, type: "noop" }));
    const chainId = await chains.define(nodes);
    const runId = await chains.start(chainId, { opTime: "20250101" });
    await chains.reaches(runId, "SUCCESS");
    const { page } = await browser.open(`/chains/${chainId}?tab=grid`);
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/grid")) asked.push(new URL(request.url()).searchParams.get("from") ?? "");
    });
    const grid = page.getByRole("grid");
    await grid.getByLabel("n0, 20250101: succeeded").focus();
    expect(await grid.getAttribute("aria-rowcount")).toBe("2501");
    await page.keyboard.press("End");
    await grid.getByLabel("n2499, 20250101: succeeded").waitFor();
    expect(await grid.getByRole("row").count()).toBeLessThan(100);
    expect(new Set(asked).size).toBeLessThanOrEqual(2);
  });

  test("opens a log of 6,000 lines at its end, finds in it, marks a line in the address, and saves it", async () => {
    const runId = await chains.run([talkative("load", 6_000)]);
    await chains.reaches(runId, "SUCCESS");
    const { page } = await browser.open(`/chains/runs/${runId}?tab=log&node=load&attempt=1`);
    const log = page.getByRole("log");
    await log.getByText("row 6000 of the table").waitFor();
    expect(await page.getByText("6,000 lines").isVisible()).toBe(true);
    expect(await log.locator("time").count()).toBeLessThan(200);

    await log.evaluate((element) => element.scrollTo(0, 0));
    await log.getByText("row 1 of the table", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Follow" }).getAttribute("aria-pressed")).toBe("false");

    await page.keyboard.press("Control+f");
    await page.keyboard.type("ROW 43");
    await page.getByText("1 of 111").waitFor();
    await page.keyboard.press("Shift+Enter");
    await log.getByText("row 4399 of the table").waitFor();
    await page.getByRole("button", { name: "Regular expression" }).click();
    await page.getByLabel("Find in the log").fill("row 5\\d00 ");
    await page.getByText("1 of 10").waitFor();
    await page.getByLabel("Find in the log").fill("row (");
    await page.getByText("Invalid regular expression.").waitFor();
    await page.getByLabel("Find in the log").fill("");

    await page.getByLabel("Level").selectOption("error");
    await log.getByRole("button", { name: "Select line 4321" }).click();
    expect(page.url()).toContain("line=L4321");
    await page.reload();
    await log.getByText("row 4321 of the table").waitFor();
    // The search and the level are part of the address, like the line.
    expect(await page.getByLabel("Level").inputValue()).toBe("error");
    expect(await log.locator("time").count()).toBe(1);
    await page.getByLabel("Level").selectOption("all");
    await page.getByLabel("Find in the log").fill("row 59\\d\\d ");
    await page.getByRole("button", { name: "Regular expression" }).click();
    await page.waitForURL((url) => url.searchParams.get("regex") === "true" && !url.searchParams.has("logLevel"));
    await page.goto(page.url().replace("line=L4321", "line="));
    await page.getByText("1 of 100").waitFor();
    await log.getByText("row 5900 of the table").waitFor();

    // A range of lines is marked and copied by keys alone.
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await log.focus();
    await page.keyboard.press("Tab");
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    await page.keyboard.press("Home");
    await expect.poll(focused).toBe("1");
    await page.keyboard.press("End");
    await expect.poll(focused).toBe("6000");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Shift+ArrowUp");
    await page.keyboard.press("Shift+ArrowUp");
    await page.keyboard.press("Shift+ArrowDown");
    await page.keyboard.press("Shift+ArrowUp");
    expect(await focused()).toBe("5997");
    await page.waitForURL(/line=L5997-5999/);
    await page.getByRole("button", { name: "Copy selected lines" }).focus();
    await page.keyboard.press("Enter");
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await expect.poll(copied).toBe([5997, 5998, 5999].map((row) => `row ${row} of the table`).join("\n"));

    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("load-1.log");
    const saved = (await readFile(await download.path(), "utf8")).trimEnd().split("\n");
    expect(saved).toHaveLength(6_000);
    expect(saved[4_320]).toMatch(/Z error row 4321 of the table$/);
  });

  test("follows the log of a node that runs", async () => {
    const more = signal();
    const runId = await chains.run([
      scripted("work", async (ctx, input) => {
        ctx.log("the first line");
        await more.promise;
        ctx.log("a later line");
        return holds(ctx, input);
      }),
    ]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    const { page } = await browser.open(`/chains/runs/${runId}?tab=log`);
    await page.getByRole("log").getByText("the first line").waitFor();
    more.resolve();
    await page.getByRole("log").getByText("a later line").waitFor();
    await chains.api.post(`/api/v1/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
  });
});
