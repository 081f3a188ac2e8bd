/** The pages of chains: a failure found and retried, a stop, and histories and graphs of any size. */
import { describe, expect, test } from "vitest";
import { holds, scripted, useChains } from "../chains.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, forgive, hasBrowser, isInView, PHONE, useConsole } from "./browser.ts";
import { addRuns, manyNodes } from "./large-data.ts";

const database = useDatabase();
const chains = useChains(database);

/** A node that fails until the test calls `fix`. */
function fixable(id: string, dependsOn: string[]) {
  const state = { fixed: false };
  const node = scripted(
    id,
    () => {
      if (!state.fixed) throw new Error("the table ORDERS has no column price");
      return {};
    },
    { dependsOn },
  );
  return { node, fix: () => Object.assign(state, { fixed: true }) };
}

describe.runIf(hasBrowser)("chains in the console", () => {
  const browser = useConsole(chains);

  test("a failure is seen on a phone without a click, and retried in two, which show what runs again", async () => {
    const { node, fix } = fixable("load", ["extract"]);
    const runId = await chains.run([
      { id: "extract", type: "noop" },
      node,
      { id: "publish", type: "noop", dependsOn: ["load"] },
    ]);
    await chains.reaches(runId, "FAILED");
    const { page, clicks } = await browser.open(`/chains/runs/${runId}`, { viewport: PHONE });
    const panel = page.getByRole("complementary");
    await panel.getByRole("heading", { name: "load" }).waitFor();
    // Without scrolling either.
    await expect.poll(() => isInView(panel.getByText("has no column price").first())).toBe(true);
    expect(await clicks()).toBe(0);

    await panel.getByRole("button", { name: "Retry" }).click();
    const preview = page.getByRole("region", { name: "Effect" });
    await preview.waitFor();
    expect(await preview.innerText()).toContain("1 node runs");
    expect(await preview.innerText()).toContain("1 node waits again");
    await page.locator('[data-id="publish"]').getByText("waits again").waitFor();
    fix();
    await preview.getByRole("button", { name: "Confirm" }).click();
    expect(await clicks()).toBe(2);
    await panel.getByText("succeeded").waitFor();
    await chains.reaches(runId, "SUCCESS");
  });

  test("a node is opened and retried from the graph, and its card turns to succeeded", async () => {
    const { node, fix } = fixable("load", ["extract"]);
    const runId = await chains.run([{ id: "extract", type: "noop" }, node]);
    await chains.reaches(runId, "FAILED");
    const { page } = await browser.open(`/chains/runs/${runId}?panel=closed`);
    const card = page.locator('[data-id="load"]');
    await card.waitFor();
    expect(await page.locator(".react-flow__edge path").count()).toBe(1);
    await page.locator('[data-id="extract"]').focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByRole("complementary").getByRole("button", { name: "Retry" }).click();
    fix();
    await page.getByRole("button", { name: "Confirm" }).click();
    await card.getByText("succeeded").waitFor({ state: "attached" });
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  test("a run that goes on is stopped in two clicks", async () => {
    const runId = await chains.run([scripted("work", holds), { id: "after", type: "noop", dependsOn: ["work"] }]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    const { page, clicks } = await browser.open(`/chains/runs/${runId}`);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator('[data-id="after"]').getByText("stops").waitFor();
    await page.getByRole("button", { name: "Confirm" }).click();
    expect(await clicks()).toBe(2);
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await chains.reaches(runId, "STOPPED");
  });

  test("a preview that is no longer true is shown again, and nothing is done", async () => {
    const { node } = fixable("load", []);
    const runId = await chains.run([node]);
    await chains.reaches(runId, "FAILED");
    const opened = await browser.open(`/chains/runs/${runId}`);
    const { page } = opened;
    await page.getByRole("complementary").getByRole("button", { name: "Retry" }).click();
    await page.getByRole("button", { name: "Confirm" }).waitFor();
    await chains.api.post(`/api/v1/runs/${runId}:retry`);
    await chains.reaches(runId, "FAILED");
    await page.getByRole("button", { name: "Confirm" }).click();
    await page.getByText("has changed meanwhile").waitFor();
    expect(await chains.node(runId, "load")).toMatchObject({ attempt: 2 });
    forgive(opened, "409");
  });

  test("a run of 10,000 nodes opens as a table that scrolls, and as a graph around one node", async () => {
    const runId = await chains.run(manyNodes(10_000));
    const { page } = await browser.open(`/chains/runs/${runId}`);
    const table = page.getByRole("grid");
    await table.waitFor();
    expect(await table.getAttribute("aria-rowcount")).toBe("10001");
    await table.getByRole("row").nth(1).focus();
    await page.keyboard.press("End");
    await table.getByText("n9999", { exact: true }).waitFor();
    await page.goto(`${chains.url}/chains/runs/${runId}?tab=graph&node=n5000`);
    await page.locator('[data-id="n5000"]').waitFor();
    expect(await page.locator(".react-flow__node").count()).toBeLessThanOrEqual(600);
    await chains.api.post(`/api/v1/runs/${runId}:stop`);
  });

  test("100,000 runs scroll, page by page", async () => {
    const chainId = await chains.define([{ id: "a", type: "noop" }], { name: "often" });
    await addRuns(database.query, chainId, 100_000);
    const { page } = await browser.open(`/chains/${chainId}`);
    const list = page.getByRole("grid");
    await list.getByText("run-100000", { exact: true }).waitFor();
    await list.getByRole("row").nth(1).focus();
    for (const loaded of [500, 1_000, 1_500]) {
      // The list is as high as the rows that are loaded. Only then `End` is the end of this page.
      await expect.poll(() => list.evaluate(loadedRows)).toBe(loaded);
      await page.keyboard.press("End");
      await list.getByText(`run-${100_001 - loaded}`, { exact: true }).waitFor();
    }
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("run-98501");
    await page.goto(`${chains.url}/chains`);
    await page.getByRole("link", { name: "often", exact: true }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });
});

function loadedRows(list: Element): number {
  const row = list.querySelector('[role="row"]');
  return list.getBoundingClientRect().height / (row?.getBoundingClientRect().height ?? 0) - 1;
}
