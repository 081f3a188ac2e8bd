/** The pages of chains: a failure found and retried, a stop, and histories and graphs of any size. */
import type { Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { fails, holds, scripted, useChains } from "../chains.ts";
import { useDatabase } from "../database.ts";
import { sendHint } from "../hints.ts";
import { signal } from "../until.ts";
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
    expect(await preview.innerText()).toContain("1 node is reset");
    await page.locator('[data-id="publish"]').getByText("is reset").waitFor();
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
    const retry = { maxAttempts: 3, backoffMs: 60_000, jitter: 0 };
    const runId = await chains.run([
      scripted("work", holds),
      scripted("flaky", fails, { retry }),
      { id: "after", type: "noop", dependsOn: ["work"] },
    ]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    await chains.nodeReaches(runId, "flaky", "RETRYING");
    const { page, clicks } = await browser.open(`/chains/runs/${runId}`);
    await page
      .locator('[data-id="flaky"]')
      .getByText(/^retry 2\/3 in (1:00|0:[1-5]\d)$/)
      .waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator('[data-id="after"]').getByText("stops").waitFor();
    await page.getByRole("button", { name: "Confirm" }).click();
    expect(await clicks()).toBe(2);
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await chains.reaches(runId, "STOPPED");
  });

  test("a stopped run is resumed, and a node of it marked as succeeded, each after a preview", async () => {
    const runId = await chains.run([scripted("work", holds), { id: "after", type: "noop", dependsOn: ["work"] }]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    await chains.api.post(`/api/v1/runs/${runId}:stop`);
    await chains.reaches(runId, "STOPPED");
    const { page } = await browser.open(`/chains/runs/${runId}?panel=closed`);
    const preview = page.getByRole("region", { name: "Effect" });
    await page.getByRole("button", { name: "Resume" }).click();
    await preview.getByText("1 node runs").waitFor();
    await page.locator('[data-id="after"]').getByText("is reset").waitFor();
    expect(await chains.node(runId, "work")).toMatchObject({ status: "STOPPED" });
    await preview.getByRole("button", { name: "Confirm" }).click();
    await chains.nodeReaches(runId, "work", "RUNNING");

    await page.locator('[data-id="work"]').click();
    await page.getByRole("complementary").getByRole("button", { name: "Mark as succeeded" }).click();
    await preview.getByText("1 node is marked succeeded").waitFor();
    expect(await chains.node(runId, "work")).toMatchObject({ status: "RUNNING" });
    await preview.getByRole("button", { name: "Confirm" }).click();
    await page.getByRole("complementary").getByText("succeeded", { exact: true }).waitFor();
    await chains.reaches(runId, "SUCCESS");
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
    await page.getByText("The run changed in the meantime").waitFor();
    expect(await chains.node(runId, "load")).toMatchObject({ attempt: 2 });
    forgive(opened, "409");
  });

  test("a run that has ended is not set back by a reply that is older", async () => {
    const gate = signal();
    const runId = await chains.run([scripted("work", async () => ({ artifact: await gate.promise }))]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    const { page } = await browser.open(`/chains/runs/${runId}?tab=table`);
    await page.getByRole("button", { name: "Stop" }).waitFor();
    const row = page.getByRole("grid").getByRole("row", { name: "work" });
    await row.getByText("running").waitFor();
    // Both replies of the page, and the run in a list.
    const paths = [`/api/v1/runs/${runId}?dag=false`, `/api/v1/runs/${runId}/nodes?artifacts=false`];
    const old = new Map(await Promise.all(paths.map(async (path) => [path, await answerOf(page, path)] as const)));
    gate.resolve();
    await row.getByText("succeeded").waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });

    let given = 0;
    await page.route(`**/api/v1/runs/${runId}*/**`, (route) => answerOld(route));
    await page.route(`**/api/v1/runs/${runId}?*`, (route) => answerOld(route));
    function answerOld(route: Route): Promise<void> {
      const { pathname, search } = new URL(route.request().url());
      const answer = old.get(pathname.endsWith("/nodes") ? (paths[1] ?? "") : pathname + search);
      if (!answer) return route.fallback();
      if (!pathname.endsWith("/nodes")) given += 1;
      return route.fulfill(answer);
    }
    await sendHint(database, "run", runId);
    // The first ones are asked for again soon, further ones later and later.
    await expect.poll(() => given, { timeout: 15_000 }).toBeGreaterThan(5);
    expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0);
    expect(await row.innerText()).toContain("succeeded");
  });

  test("a chain of 10,000 nodes opens as a graph and as a text, its run as a table that scrolls and as a graph around one node", async () => {
    const chainId = await chains.define(manyNodes(10_000));
    const runId = await chains.start(chainId);
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

    await page.goto(`${chains.url}/chains/${chainId}?tab=graph&node=n5000`);
    await page.locator('[data-id="n5000"]').waitFor();
    // Its surroundings are drawn, as far as is chosen; a map shows where one is among many.
    const drawn = () => page.locator(".react-flow__node").count();
    const map = page.locator(".react-flow__minimap");
    const near = await drawn();
    expect(near).toBeLessThanOrEqual(50);
    await page.getByText(`${near} of 10,000 nodes, around n5000`).waitFor();
    expect(await map.count()).toBe(0);
    await page.getByLabel("Depth").selectOption("8");
    await map.waitFor();
    expect(await drawn()).toBeGreaterThan(50);
    expect(await drawn()).toBeLessThanOrEqual(600);
    expect(new URL(page.url()).searchParams.get("depth")).toBe("8");
    const far = await drawn();
    await page.reload();
    await expect.poll(drawn).toBe(far);

    // Twins are one card until it is opened.
    const twins = (parent: string) =>
      Array.from({ length: 400 }, (_, at) => ({ id: `${parent}${at}`, type: "noop", dependsOn: [parent] }));
    const roots = ["a", "b"].map((id) => ({ id, type: "noop" }));
    const folded = await chains.define([...roots, ...twins("a"), ...twins("b")]);
    await page.goto(`${chains.url}/chains/${folded}?tab=graph`);
    const group = page.locator(".react-flow__node", { hasText: "400 nodes" });
    await group.first().waitFor();
    const few = await drawn();
    await page.getByText(`802 nodes, drawn as ${few}: similar and finished nodes are grouped.`).waitFor();
    const id = (await group.first().getAttribute("data-id")) ?? "";
    await group.first().click();
    await page.locator(`[data-id="${id.startsWith("b") ? "b" : "a"}399"]`).waitFor({ state: "attached" });
    expect(await drawn()).toBeGreaterThanOrEqual(400);
    await page.getByRole("button", { name: "Collapse" }).click();
    // The node that was looked at stays a card of its own.
    await expect.poll(drawn).toBeLessThanOrEqual(few + 1);

    await page.goto(`${chains.url}/chains/${chainId}?tab=graph`);
    await page.locator('.react-flow__node[data-id="n0"]').waitFor();
    // The text is there before the editor, and scrolls by keys, too.
    const editor = signal();
    await page.route("**/assets/CodeView-*.js", async (route) => {
      await editor.promise;
      await route.continue();
    });
    await page.goto(`${chains.url}/chains/${chainId}?tab=definition`);
    await page.locator("pre").waitFor();
    expect(await accessibilityFaults(page, ["scrollable-region-focusable"])).toEqual([]);
    editor.resolve();
    const beside = page.locator('.react-flow__node[data-id="n0"]');
    await beside.waitFor();
    await page.getByText("No problems.").waitFor();
    const line = page.locator(".cm-line", { hasText: /id: n3$/ });
    await line.click();
    await page.keyboard.press("End");
    await page.keyboard.type(": x");
    await page.locator("[data-any=true]").getByText("1 problem").waitFor();
    await page.getByRole("region", { name: "Problems" }).getByText("line 12").waitFor();
  });

  test("a list says what its runs are now, wherever they are in it and whatever its filter is, and moves none", async () => {
    const gate = signal();
    const { node, fix } = fixable("load", []);
    const ends = await chains.run([scripted("work", async () => ({ artifact: await gate.promise }))], { name: "ends" });
    const failed = await chains.run([node], { name: "fails" });
    await chains.nodeReaches(ends, "work", "RUNNING");
    await chains.reaches(failed, "FAILED");
    // Behind the newest ones, which are read for how many there are.
    await database.query("update chains.job_run set created_at = '2019-01-01' where run_id = any($1)", [
      [ends, failed],
    ]);
    await addRuns(database.query, await chains.define([{ id: "a", type: "noop" }]), 150);
    const { page } = await browser.open("/chains/runs?status=FAILED");
    const row = (name: string) => page.getByRole("grid").getByRole("row", { name });
    await row("fails").getByText("failed", { exact: true }).waitFor();
    await inView(page, failed);
    fix();
    await chains.api.post(`/api/v1/runs/${failed}:retry`);
    await row("fails").getByText("succeeded").waitFor();

    await page.getByRole("combobox", { name: "State" }).selectOption("");
    await row("run-150").focus();
    await page.keyboard.press("End");
    await row("ends").getByText("running").waitFor();
    await inView(page, ends);
    const place = () => row("ends").getAttribute("aria-rowindex");
    const before = await place();
    const requests: string[] = [];
    page.on("request", (request) => requests.push(new URL(request.url()).pathname));
    gate.resolve();
    await row("ends").getByText("succeeded").waitFor();
    expect(await place()).toBe(before);
    expect(requests.filter((path) => path !== "/api/v1/runs")).toEqual([]);
    expect(requests.length).toBeLessThanOrEqual(6);
    await chains.run([{ id: "a", type: "noop" }], { name: "another" });
    await page.getByRole("button", { name: "1 new" }).waitFor();
    expect(await row("another").count()).toBe(0);
    await page.getByRole("button", { name: "1 new" }).click();
    await row("another").waitFor();
    // Whoever comes back sees the present list.
    const loaded = await page.getByRole("grid").evaluate(loadedRows);
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await database.query("update chains.job_run set reason = 'told without a hint' where run_id = $1", [failed]);
    await page.goBack();
    // At first there are the newest only.
    await expect.poll(() => page.getByRole("grid").evaluate(loadedRows)).toBe(loaded);
    await row("run-150").focus();
    await page.keyboard.press("End");
    await row("fails").getByText("told without a hint").waitFor();
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
    await page.getByRole("combobox", { name: "State" }).selectOption("FAILED");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await list.getByText("run-100000", { exact: true }).waitFor();
    await chains.api.post(`/api/v1/chains/${chainId}/schedules`, { name: "nightly", cron: "0 3 * * *" });
    await page.goto(`${chains.url}/chains`);
    const often = page.getByRole("row").filter({ has: page.getByRole("link", { name: "often", exact: true }) });
    await often.waitFor();
    // Its last 20 runs, when the next one starts, and how long they take.
    expect(await often.getByLabel(/^succeeded, run-/).count()).toBe(20);
    expect(await often.innerText()).toMatch(/in \d+ [hms]/);
    expect(await often.innerText()).toContain("1 d / 1 d");
    // A list of chains has pages, too.
    await database.query(
      `insert into chains.job_chain_definition (chain_id, name, dag_json)
       select gen_random_uuid(), 'of many ' || to_char(n, 'FM000'), '{"nodes": []}' from generate_series(1, 401) n`,
    );
    await page.goto(`${chains.url}/chains?q=of%20many`);
    await list.getByText("of many 001", { exact: true }).waitFor();
    await list.getByRole("row").nth(1).focus();
    for (const loaded of [200, 400, 401]) {
      await expect.poll(() => list.evaluate(loadedRows)).toBe(loaded);
      await page.keyboard.press("End");
    }
    await list.getByText("of many 401", { exact: true }).waitFor();
  });
});

/** What the server answers to the page now. */
async function answerOf(page: Page, path: string): Promise<{ body: Buffer; headers: Record<string, string> }> {
  const reply = await page.request.get(chains.url + path);
  return { body: await reply.body(), headers: reply.headers() };
}

/** Waits until the page has asked for what the run is now. */
async function inView(page: Page, runId: string): Promise<void> {
  await page.waitForFunction(
    (id) => performance.getEntriesByType("resource").some(({ name }) => /[?&]ids=/.test(name) && name.includes(id)),
    runId,
  );
}

function loadedRows(list: Element): number {
  const row = list.querySelector('[role="row"]');
  return list.getBoundingClientRect().height / (row?.getBoundingClientRect().height ?? 0) - 1;
}
