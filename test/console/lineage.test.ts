/** The pages of lineage in a browser: who breaks if a column goes, a path, a hub with 3,000 readers, and what could not be applied. */
import { beforeAll, describe, expect, test } from "vitest";
import { createGraph, lakeTable, type TestGraph } from "../../src/lineage/graph/graph.fixture.ts";
import { useDatabase } from "../database.ts";
import { sendHint } from "../hints.ts";
import { useMillrace } from "../millrace.ts";
import { faultsInBothThemes as faults, hasBrowser, PHONE, useConsole } from "./browser.ts";
import { addReaders } from "./large-data.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const IDENTITY = [{ type: "DIRECT", subtype: "IDENTITY" }];

describe.runIf(hasBrowser)("lineage in the console", () => {
  const browser = useConsole(millrace);
  let graph: TestGraph;
  const ids: Record<string, string> = {};
  const at = (name: string, query = "") => `/lineage/assets/${ids[name]}?tenant=7${query}`;

  /** raw -> load -> orders -> daily -> revenue, with a second way from raw to revenue, and amount of raw up to total of revenue. */
  beforeAll(async () => {
    graph = await createGraph(database, "7");
    for (const name of ["raw", "orders", "revenue"]) ids[name] = await graph.table(`shop.${name}`);
    const { raw = "", orders = "", revenue = "" } = ids;
    ids["load"] = await graph.flow([raw], [orders], "load");
    await graph.flow([orders], [revenue], "daily");
    await graph.flow([raw], [revenue], "shortcut");
    ids["amount"] = await graph.column("shop.raw.amount", { dataType: "decimal" });
    ids["price"] = await graph.column("shop.orders.price", { dataType: "decimal" });
    ids["total"] = await graph.column("shop.revenue.total", { dataType: "decimal" });
    await graph.edge(ids["price"], "DERIVES_FROM", ids["amount"], IDENTITY);
    await graph.edge(ids["total"], "DERIVES_FROM", ids["price"], [{ type: "DIRECT", subtype: "AGGREGATION" }]);
  });

  test("who breaks if a column goes is one click after Ctrl K, from any page", async () => {
    const { page, clicks } = await browser.open("/");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").waitFor();
    await page.keyboard.type("amount");
    await page.getByRole("option", { name: /amount.*Column.*shop\.raw/ }).click();
    expect(await clicks()).toBe(1);
    await page.getByText("A change to amount affects 2 assets, up to 2 steps away.").waitFor();
    const list = page.getByRole("grid", { name: "Impact of amount" });
    expect(await list.getByRole("row").nth(2).innerText()).toMatch(
      /2\s+Column\s+revenue\s+total\s+aggregation\s+price/,
    );
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "CSV" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe(`impact-${ids["amount"]}.csv`);
    const lines = (await (await download.createReadStream()).toArray()).join("").split("\r\n");
    expect(lines[2]).toContain("2,COLUMN,");
    expect(lines).toHaveLength(4);
    const [json] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "JSON" }).click()]);
    expect(json.suggestedFilename()).toBe("impact-amount.json");
    expect(JSON.parse((await (await json.createReadStream()).toArray()).join(""))).toMatchObject({
      partial: false,
      items: [
        { kind: "COLUMN", name: "price", distance: 1, via: [] },
        { kind: "COLUMN", name: "total", distance: 2, transformations: [{ type: "DIRECT", subtype: "AGGREGATION" }] },
      ],
    });
    // A filter that leaves nothing is taken away again.
    await page.getByRole("searchbox", { name: "Filter by name or owner" }).fill("nothing");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await list.getByRole("row").nth(2).waitFor();
  });

  test("a path to another asset is found, of how many is told, and one of them stands out", async () => {
    const { page } = await browser.open(at("revenue", "&tab=path"));
    await page.getByRole("searchbox", { name: "Another asset" }).fill("raw");
    await page.getByRole("list", { name: "Another asset" }).getByRole("button", { name: "raw" }).first().click();
    await page.getByText("2 of 2 paths.").waitFor();
    await page.getByText("Data flows from raw to revenue.").waitFor();
    expect(
      await page.getByRole("list", { name: "Paths, the shortest first" }).getByRole("listitem").allInnerTexts(),
    ).toEqual([
      expect.stringMatching(/2 steps\s+raw\s+shortcut\s+revenue/),
      expect.stringMatching(/4 steps\s+raw\s+load\s+orders\s+daily\s+revenue/),
    ]);
    await page.locator(`[data-id="${ids["orders"]}"]`).waitFor();
    await page.getByRole("button", { name: "2 steps" }).click();
    await page.locator(`[data-id="${ids["orders"]}"] [data-faded]`).waitFor();
    expect(page.url()).toMatch(/path=0/);
    expect(await faults(page)).toEqual([]);
  });

  test("a graph opens one step around its asset, is followed further by a pill, and turns to columns", async () => {
    const { page } = await browser.open(at("raw", "&tab=graph&direction=down"));
    const card = (id: string | undefined) => page.locator(`.react-flow__node[data-id="${id}"]`);
    await card(ids["orders"]).waitFor();
    expect(await page.locator(".react-flow__node").count()).toBe(5);
    let requests = 0;
    page.on("request", (request) => (requests += request.url().includes("/api/v1/lineage/") ? 1 : 0));
    await card(ids["orders"])
      .getByRole("button", { name: /1 more (after|downstream)/ })
      .click();
    await card(await graph.sql("daily")).waitFor();
    expect(requests).toBe(1);
    await card(ids["orders"]).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary").getByRole("link", { name: "Path from raw" }).waitFor();
    expect(await faults(page)).toEqual([]);
    await page.getByLabel("Level").selectOption("Columns");
    await card(ids["price"]).waitFor();
    expect(await card(ids["orders"]).count()).toBe(0);

    // Of a table with many columns ten are drawn, and the others beside the one of the page, which stays in its place.
    const columns: string[] = [];
    for (let number = 1; number <= 14; number += 1) {
      columns.push(await graph.column(`shop.wide.c${number}`, { position: number }));
      await graph.edge(columns.at(-1) ?? "", "DERIVES_FROM", ids["amount"] ?? "", IDENTITY);
    }
    const wide = await graph.table("shop.wide");
    // All of it is in view, so nothing has to be moved there.
    await page.setViewportSize({ width: 1280, height: 1600 });
    await page.goto(`${millrace.url}/lineage/assets/${wide}?tenant=7&tab=graph&level=columns`);
    await card(columns[9]).waitFor();
    expect(await page.locator(".react-flow__node", { hasText: "wide" }).count()).toBe(11);
    const others = card(columns[10]).filter({ hasText: "+4 more columns" });
    const before = await others.boundingBox();
    await others.click();
    await card(columns[13]).waitFor();
    const after = await card(columns[10]).filter({ hasText: "c11" }).boundingBox();
    expect([after?.x, after?.y].map((one) => Math.round(one ?? 0))).toEqual(
      [before?.x, before?.y].map((one) => Math.round(one ?? 1)),
    );
    expect(new URL(page.url()).searchParams.get("columns")).toBe(columns[10]);
    await page.getByRole("button", { name: "Collapse" }).click();
    await expect.poll(() => page.locator(".react-flow__node", { hasText: "wide" }).count()).toBe(11);
  });

  test("the search and the graph follow what happens to any asset, and that of the page stays in its place", async () => {
    const { page } = await browser.open("/lineage?tenant=7");
    await page.getByText("Live", { exact: true }).waitFor();
    const raw = page.getByRole("grid", { name: "Assets" }).getByRole("link", { name: "raw", exact: true });
    await raw.waitFor();
    await sendHint(database, "asset", await graph.table("alive.found"));
    await page.getByRole("link", { name: "found", exact: true }).waitFor();

    await page.goto(millrace.url + at("raw", "&tab=graph&direction=down&depth=2"));
    const card = (id: string | undefined) => page.locator(`.react-flow__node[data-id="${id}"]`);
    await card(ids["revenue"]).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    const before = await card(ids["raw"]).boundingBox();
    const later = await graph.flow([ids["orders"] ?? ""], [await graph.table("alive.later")], "later");
    await sendHint(database, "asset", ids["orders"] ?? "");
    await card(later).waitFor();
    const after = await card(ids["raw"]).boundingBox();
    expect([after?.x, after?.y].map((one) => Math.round(one ?? 0))).toEqual(
      [before?.x, before?.y].map((one) => Math.round(one ?? 1)),
    );
  });

  test("a graph that is wider than the page fills it: its asset, or the columns of its table, is in the middle or where the graph ends", async () => {
    const tables: string[] = [];
    const columns: string[] = [];
    for (let step = 0; step < 9; step += 1) {
      tables.push(await graph.table(`line.step${step}`));
      columns.push(await graph.column(`line.step${step}.id`, { dataType: "bigint" }));
      const [before, own] = columns.slice(-2);
      if (own !== undefined) await graph.edge(own, "DERIVES_FROM", before ?? "", IDENTITY);
    }
    const { page } = await browser.open("/lineage");
    const MARGIN_PX = 24;
    const marginsOf = async (selector: string) => {
      const [card, frame] = await Promise.all([
        page.locator(selector).boundingBox(),
        page.locator(".react-flow").boundingBox(),
      ]);
      if (!card || !frame) return undefined;
      const left = card.x - frame.x;
      return { left, right: frame.width - left - card.width };
    };
    for (const [asset, step, direction, place] of [
      [tables[0], 0, "down", ({ left }) => left - MARGIN_PX],
      [tables[4], 4, "both", ({ left, right }) => left - right],
      [tables[8], 8, "up", ({ right }) => right - MARGIN_PX],
      [columns[8], 8, "up", ({ right }) => right - MARGIN_PX],
    ] as [string, number, string, (margins: { left: number; right: number }) => number][]) {
      const query = `tenant=7&tab=graph&level=columns&direction=${direction}&depth=10`;
      await page.goto(`${millrace.url}/lineage/assets/${asset}?${query}`);
      const card = `.react-flow__node[data-id="${columns[step]}"]`;
      await expect
        .poll(
          async () => {
            const margins = await marginsOf(card);
            return margins && Math.abs(place(margins));
          },
          { message: direction },
        )
        .toBeLessThan(2);
    }
  });

  test("an asset that 3,000 statements read opens folded, with a list that scrolls and is searched", async () => {
    const hub = await graph.table("shop.dates");
    await addReaders(database.query, 7, hub, 3_000);
    const { page } = await browser.open(`/lineage/assets/${hub}?tenant=7&tab=graph`);
    const folded = page.locator(".react-flow__node", { hasText: "2,992 more" });
    await folded.click();
    expect(await page.locator(".react-flow__node").count()).toBe(10);
    const list = page.getByRole("grid", { name: "Downstream" });
    await list.getByText("refresh_1", { exact: true }).waitFor();
    await list.getByRole("row").nth(1).focus();
    await expect
      .poll(async () => {
        await page.keyboard.press("End");
        return list.getByText("refresh_3000", { exact: true }).isVisible();
      })
      .toBe(true);
    expect(await list.getByRole("row").count()).toBeLessThan(100);
    await page.getByRole("searchbox").fill("fresh_299");
    await page.getByText("11 rows").waitFor();
    // The address has the filter too.
    await page.reload();
    await page.getByText("11 rows").waitFor();
    await page.getByRole("searchbox").fill("nobody");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("1,000 rows so far").waitFor();
    await page.getByRole("searchbox").fill("fresh_2999");
    await list.getByText("refresh_2999", { exact: true }).click();
    await page.getByRole("heading", { name: "refresh_2999" }).waitFor();
  });

  test("an asset is found by the beginning of a word, shows columns and runs, and its events with their text", async () => {
    await graph.event({
      time: "2026-01-01T00:00:00Z",
      names: [lakeTable("shop.orders")],
      job: "load",
      body: '{"job":{"name":"load"}}',
    });
    await database.query(
      "insert into lineage.execution_count (tenant_id, node_id, executions, last_at) values (7, $1, 5, 1)",
      [ids["load"]],
    );
    const { page } = await browser.open("/lineage?tenant=7");
    await page.keyboard.press("/");
    await page.keyboard.type("ord");
    const row = page.getByRole("grid", { name: "Assets" }).getByRole("row", { name: /^Table orders/ });
    await row.focus();
    await row.press("Enter");
    await page
      .getByRole("grid", { name: "Upstream" })
      .getByRole("row", { name: /load 5/ })
      .waitFor();
    await page
      .getByRole("grid", { name: "Columns" })
      .getByRole("row", { name: /price decimal/ })
      .waitFor();
    await page.getByRole("link", { name: "History" }).click();
    await page.getByRole("row", { name: /completed load/ }).click();
    await page.getByRole("complementary").getByText('"name": "load"').waitFor();
  });

  test("a link to a dropped table says when and by which event it was dropped, and what it was", async () => {
    const TIME = "2026-02-03T04:05:06Z";
    const names = [lakeTable("shop.retired")];
    const id = await graph.table("shop.retired");
    await graph.event({ time: "2026-01-01T00:00:00Z", names, job: "load" });
    await graph.event({ time: TIME, names, job: "gravitino.drop_table" });
    await graph.dropped(id, { at: TIME, attributes: { description: "Replaced by orders", owners: ["ann"] } });
    const { page } = await browser.open(`/lineage/assets/${id}?tenant=7&tab=impact`);
    await page.getByText("Dropped on 2026-02-03 04:05:06").waitFor();
    await page.getByText("Replaced by orders").waitFor();
    expect(await page.getByRole("navigation", { name: "Parts of the page" }).getByRole("link").allInnerTexts()).toEqual(
      ["Overview", "History"],
    );
    expect(await page.getByRole("grid", { name: "Upstream" }).count()).toBe(0);
    expect(await faults(page)).toEqual([]);
    await page.getByRole("link", { name: "by gravitino.drop_table" }).click();
    await page.getByRole("complementary").getByText("gravitino.drop_table").waitFor();
    await page
      .getByRole("grid", { name: "History" })
      .getByRole("row", { name: /load applied/ })
      .waitFor();

    await page.goto(`${millrace.url}/lineage?tenant=7&q=retired`);
    await page.getByText("No assets found").waitFor();
    await page.getByLabel("Dropped assets").selectOption("included");
    await page.getByRole("row", { name: /Table retired dropped/ }).waitFor();
    expect(await faults(page)).toEqual([]);
  });

  test("dead letters say why, and are replayed one by one or together", async () => {
    const event = { eventTime: "2026-01-01T00:00:00Z", eventType: "COMPLETE", producer: "p", run: { runId: "r" } };
    for (const job of ["first", "second", "third"]) {
      const body = JSON.stringify({ ...event, job: { namespace: "etl", name: job }, inputs: [], outputs: [] });
      await graph.event({ time: "2026-01-01T00:00:00Z", job, state: "DEAD", error: `${job} was too much`, body });
    }
    const { page } = await browser.open("/lineage/dead-letters?tenant=7");
    await page.getByRole("row", { name: /third was too much/ }).click();
    const drawer = page.getByRole("complementary");
    await drawer.getByText('"namespace": "etl"').waitFor();
    await drawer.getByRole("button", { name: "Replay" }).click();
    await page.getByText("Event applied.").waitFor();
    await expect.poll(() => page.getByRole("row", { name: /third was too much/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Replay all" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay 2" }).click();
    await page.getByRole("status").getByText("2 applied, 0 failed again.").first().waitFor();
    await page.getByText("No dead letters").waitFor();
  });

  test("a tenant is made ready, and async tasks are tried again, on a phone too", async () => {
    await millrace.api.post("/api/v1/lineage/tenants", { id: 8, code: "globex", name: "Globex" });
    const { page } = await browser.open("/lineage/tenants?id=8");
    await page.getByRole("complementary").getByText("Events are stored and not applied").waitFor();
    await page.getByRole("button", { name: "Mark as ready" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Confirm" }).click();
    await page.getByRole("row", { name: /ready 8 globex Globex/ }).waitFor();
    await database.query(
      `insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash,
         model_fingerprint, status, last_error)
       values ('EMBEDDING', 7, 't7', 'TABLE', $1, 'h', 'm', 'DEAD', 'the model answered 500')`,
      [ids["raw"]],
    );
    const phone = await browser.open("/lineage/tasks?tenant=7&status=DEAD", { viewport: PHONE });
    await phone.page.getByRole("row", { name: /dead Embedding/ }).click();
    const drawer = phone.page.getByRole("complementary");
    await drawer.getByText("the model answered 500").waitFor();
    await drawer.getByRole("button", { name: "Retry" }).click();
    await drawer.getByText("waiting", { exact: true }).waitFor();
    expect(await faults(phone.page)).toEqual([]);
    await drawer.getByRole("button", { name: "Close" }).click();
    await phone.page.getByRole("button", { name: "Clear filters" }).click();
    await phone.page.getByRole("row", { name: /waiting Embedding/ }).waitFor();
    // The search of everything says that it does not search all of many tenants, and leads to where one is chosen.
    for (const id of [9, 10, 11, 12])
      await millrace.api.post("/api/v1/lineage/tenants", { id, code: `t${id}`, name: `T${id}` });
    await page.reload();
    await page.getByRole("row", { name: /t12/ }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("raw");
    await page.getByRole("option", { name: /Search another tenant.* of \d+ tenants/ }).click();
    await page.getByRole("searchbox", { name: "Names, descriptions, statements" }).waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("raw");
  });
});
