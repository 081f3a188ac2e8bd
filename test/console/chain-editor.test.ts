/** Definitions of chains in the console: edited with errors at their line, compared, and started. */
import { describe, expect, test } from "vitest";
import { useChains } from "../chains.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, forgive, hasBrowser, PHONE, useConsole } from "./browser.ts";
import { NODES, textOf, write } from "./chain-texts.ts";

const database = useDatabase();
const chains = useChains(database);

describe.runIf(hasBrowser)("the definition of a chain", () => {
  const browser = useConsole(chains);

  test("is edited with the error at its line, mended, saved, and started as the new version", async () => {
    const chainId = await chains.define(NODES, { name: "edited" });
    await chains.reaches(await chains.start(chainId, { params: { region: "eu" } }), "SUCCESS");
    const opened = await browser.open(`/chains/${chainId}?tab=definition`);
    const { page } = opened;
    await write(page, textOf("edited", "slep"));
    const problem = page.getByRole("button", { name: /line 6.*slep.*sleep/ });
    await problem.waitFor();
    expect(await page.locator(".cm-line", { has: page.locator(".cm-lintRange-error") }).allInnerTexts()).toEqual([
      "    type: slep",
    ]);
    await page.locator('[data-id="load"]').getByText("problem").waitFor();
    expect(await page.getByRole("button", { name: "Save" }).getAttribute("aria-disabled")).toBe("true");
    expect(await accessibilityFaults(page)).toEqual([]);
    // The problem leads to its line.
    await problem.click();
    expect(await page.locator(".cm-activeLine").innerText()).toBe("    type: slep");
    await page.keyboard.press("End");
    await page.keyboard.press("Control+Backspace");
    await page.keyboard.type("noop");
    await page.getByText("No problems.").waitFor();
    await page.getByText("1 node added: report").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved as version 2.").waitFor();
    expect(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("draft")))).toEqual([]);

    await page.getByRole("button", { name: "Start" }).click();
    const form = page.getByRole("complementary");
    await form.getByText("Starts version 2 with 3 nodes.").waitFor();
    // As in the last run.
    expect(await form.getByLabel("region").inputValue()).toBe("eu");
    await form.getByLabel("opTime").fill("20260401");
    await form.getByRole("button", { name: "Start" }).click();
    await page.getByRole("heading", { name: "edited · 20260401" }).waitFor();
    await page.getByText("version 2, changed since version 1").waitFor();
    const runId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    expect(await chains.reaches(runId, "SUCCESS")).toMatchObject({ chainVersion: 2, params: { region: "eu" } });
    forgive(opened, "400");
  });

  test("is compared with that of the run before by one click, in words, as text and as a graph", async () => {
    const chainId = await chains.define(NODES, { name: "compared" });
    await chains.start(chainId);
    const nodes = [
      { id: "load", type: "sleep", cfg: { ms: 1 } },
      { id: "report", type: "noop", dependsOn: ["load"] },
    ];
    const change = { name: "compared", description: "Now with a report", version: 1, dagJson: { nodes } };
    expect((await chains.api.put(`/api/v1/chains/${chainId}`, change)).status).toBe(200);
    const runId = await chains.start(chainId);
    const { page, clicks } = await browser.open(`/chains/runs/${runId}`);
    await page.getByRole("link", { name: "version 2, changed since version 1" }).click();
    await page.getByText("1 node added: report").waitFor();
    expect(await clicks()).toBe(1);
    await page.getByText("1 node removed: extract").waitFor();
    await page.getByText("1 node changed: load (type, dependsOn, cfg)").waitFor();
    await page.getByText("Changed: description").waitFor();
    await page.getByRole("textbox", { name: /version 1$/ }).waitFor();
    expect(await page.locator(".cm-merge-a .cm-deletedLine, .cm-merge-a .cm-changedLine").count()).toBeGreaterThan(0);
    await page.getByLabel("Show as").selectOption("graph");
    await page.locator('[data-id="report"]').getByText("added").waitFor();
    await page.locator('[data-id="extract"]').getByText("removed").waitFor();
    expect(new URL(page.url()).search).toBe("?tab=versions&version=2&against=1&view=graph");
    await page.setViewportSize(PHONE);
    await page.getByLabel("Show as").selectOption("text");
    await page.getByRole("textbox", { name: /version 1, version 2$/ }).waitFor();
    // An older version is the beginning of the next one.
    await page.getByRole("grid", { name: "Versions" }).getByText("1", { exact: true }).click();
    await page.getByRole("button", { name: "Edit this version" }).click();
    await page.getByText("1 node added: extract").waitFor();
  });

  test("keeps the last graph while its text cannot be read, its draft over a reload, and lets the keyboard out", async () => {
    const chainId = await chains.define(NODES, { name: "drafted" });
    const { page } = await browser.open(`/chains/${chainId}?tab=definition`);
    await page.locator('[data-id="load"]').waitFor();
    await write(page, "name: drafted\nnodes: [\n");
    await page.getByText("Graph of the last valid text.").waitFor();
    await page.getByRole("button", { name: /^line 3/ }).waitFor();
    expect(await page.locator(".react-flow__node").count()).toBe(2);
    await page.reload();
    await page.getByText("Not saved. Your changes are kept in this browser.").waitFor();
    const editor = page.getByRole("textbox", { name: "Definition of drafted" });
    expect(await editor.innerText()).toContain("nodes: [");
    await editor.focus();
    await page.keyboard.press("Tab");
    expect(await editor.evaluate((one) => one === document.activeElement)).toBe(true);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    expect(await editor.evaluate((one) => one === document.activeElement)).toBe(false);
    await page.getByRole("button", { name: "Discard my changes" }).click();
    await page.getByText("No problems.").waitFor();
    expect(await editor.innerText()).toContain("dependsOn: [extract]");
  });

  test("is not overwritten by a second editor, who is shown what the first has saved", async () => {
    const chainId = await chains.define(NODES, { name: "shared" });
    const first = await browser.open(`/chains/${chainId}?tab=definition`);
    const second = await browser.open(`/chains/${chainId}?tab=definition`, { colorScheme: "dark" });
    // Without the stream the second does not hear of the first in time.
    await second.page.route("**/api/v1/events*", (route) => route.abort());
    await second.page.reload();
    for (const { page } of [first, second]) await page.getByRole("textbox", { name: "Definition of shared" }).waitFor();
    await write(second.page, textOf("shared", "sleep").replace("dependsOn: [extract]", "cfg: {ms: 5}"));
    await second.page.getByText("No problems.").waitFor();
    await write(first.page, textOf("shared", "noop"));
    await first.page.getByText("1 node added: report").waitFor();
    await first.page.getByRole("button", { name: "Save" }).click();
    await first.page.getByText("Saved as version 2.").waitFor();

    await second.page.getByRole("button", { name: "Save" }).click();
    await second.page.getByText("Someone saved version 2. Your changes are based on version 1.").waitFor();
    await second.page.getByRole("region", { name: "Your changes" }).getByText("ms: 5").first().waitFor();
    expect(await accessibilityFaults(second.page)).toEqual([]);
    const dag = async () => (await chains.api.get(`/api/v1/chains/${chainId}`)).body["dagJson"];
    expect(await dag()).not.toContain("sleep");
    await second.page.getByRole("button", { name: "Keep mine and overwrite version 2" }).click();
    await second.page.getByRole("button", { name: "Save" }).click();
    await second.page.getByText("Saved as version 3.").waitFor();
    expect(await dag()).toContain("sleep");
    forgive(second, "409", "ERR_FAILED");
  });

  test("is found by its name, and a new one is made, whose schedule is paused", async () => {
    const opened = await browser.open("/");
    const { page } = opened;
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("drafte");
    await page.getByRole("dialog").getByText("drafted").click();
    await page.getByRole("heading", { name: "drafted" }).waitFor();
    await page.goto(`${chains.url}/chains`);
    await page.getByRole("button", { name: "New chain" }).click();
    await page.getByText("No problems.").waitFor();
    await write(page, "name: drafted\nnodes: [{id: a, type: noop}]\n");
    await page.getByRole("button", { name: /line 1 There is already a chain named/ }).waitFor();
    await write(page, "name: brand-new\nnodes: [{id: a, type: noop}]\n");
    await page.getByText("No problems.").waitFor();
    await page.keyboard.press("Control+s");
    await page.getByRole("heading", { name: "brand-new" }).waitFor();
    const chainId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await page.getByRole("link", { name: "Schedules" }).click();
    await page.getByRole("button", { name: "Add a schedule" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("nightly");
    await page.getByRole("dialog").getByLabel("Cron").fill("0 3 * * *");
    await page.getByRole("dialog").getByLabel("opTime of its runs").selectOption("day");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    const schedules = await chains.api.get<{ items: unknown[] }>(`/api/v1/chains/${chainId}/schedules`);
    expect(schedules.body.items).toMatchObject([
      { name: "nightly", paused: true, opTime: { grain: "day", offset: -1 } },
    ]);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("No schedules. Runs start manually").waitFor();
    forgive(opened, "400");
  });
});
