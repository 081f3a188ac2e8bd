/** A server that really is away: its process ends, and another one starts on its port 20 seconds later. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { type Server, startServer } from "../server.ts";
import { forgive, hasBrowser, useConsole } from "./browser.ts";
import { NODES, textOf, write } from "./chain-texts.ts";

const AWAY_MS = 20_000;

const database = useDatabase();

describe.runIf(hasBrowser)("a server that is away for 20 s", () => {
  const served = { url: "" };
  const browser = useConsole(served);

  test("loses no draft, and the page goes on by itself when it is back", { timeout: 60_000 }, async () => {
    const serve = (port: string): Promise<Server> =>
      startServer({ database, env: { MILLRACE_PORT: port, MILLRACE_LOG_LEVEL: "info" } });
    const before = await serve("0");
    served.url = before.url;
    const made = await before.api.post("/api/v1/chains", { name: "patient", dagJson: { nodes: NODES } });
    const chainId = String(made.body["chainId"]);
    const opened = await browser.open(`/chains/${chainId}?tab=definition`);
    const { page } = opened;
    await write(page, textOf("patient", "noop"));
    await page.getByText("1 node added: report").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();

    const gone = Date.now();
    expect(await before.stop()).toBe(0);
    const banner = page.getByRole("alert").getByText(/^The server has not responded since \d\d:\d\d:\d\d/);
    await banner.waitFor();
    await page.getByText("Polling", { exact: true }).waitFor();
    await page
      .getByTitle(/^No live updates/)
      .getByText(/^\d.* m?s$/)
      .waitFor();
    // What is typed meanwhile counts.
    await write(page, textOf("patient", "sleep").replace("type: sleep", "type: sleep\n    cfg: {ms: 7}"));
    await page.getByText("Your text is kept").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").getByText("The server is not responding. SERVER_AWAY").first().waitFor();
    // It may have been saved or not, and a save of a version that is stored already does nothing.
    await page.getByRole("status").getByRole("button", { name: "Retry" }).first().waitFor();
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS - (Date.now() - gone)));
    const after = await serve(new URL(before.url).port);
    expect(after.pid).not.toBe(before.pid);

    await banner.waitFor({ state: "detached" });
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("1 node added: report").waitFor();
    await page.reload();
    const editor = page.getByRole("textbox", { name: "Definition of patient" });
    await editor.getByText("cfg: {ms: 7}").waitFor();
    await page.getByText("1 node changed: load").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved as version 2.").waitFor();
    const { body } = await after.api.get(`/api/v1/chains/${chainId}`);
    expect(body).toMatchObject({ version: 2, dag: { nodes: [{}, { cfg: { ms: 7 } }, { id: "report" }] } });
    forgive(
      opened,
      "ERR_CONNECTION_REFUSED",
      "ERR_EMPTY_RESPONSE",
      "ERR_INCOMPLETE_CHUNKED_ENCODING",
      "ERR_CONNECTION_RESET",
    );
  });
});
