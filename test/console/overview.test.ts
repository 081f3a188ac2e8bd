/** The overview: is anything wrong, what waits, recent activity, is a source slow or throttled; and sharing a view. */
import { describe, expect, test } from "vitest";
import { hrefOf } from "../../console/src/overview/targets.ts";
import { correct, itemsOf, useScripted } from "../../src/harvest/run/scripted.fixture.ts";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY } from "../millrace.ts";
import { reached, trackingTable } from "../tracking.ts";
import { until } from "../until.ts";
import { accessibilityFaults, DESKTOP, forgive, hasBrowser, isInView, PHONE, useConsole } from "./browser.ts";

const database = useDatabase();
const harvests = useScripted(database);
const tracking = trackingTable(database);

async function define(name: string, nodes: object[], more: object = {}): Promise<string> {
  const { body } = await harvests.api.post<{ chainId: string }>("/api/v1/chains", {
    name,
    dagJson: { nodes },
    ...more,
  });
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
    // A link leads to where the first source is added.
    const add = page.getByRole("link", { name: "Add a source" });
    expect(await add.getAttribute("href")).toBe("/harvest?tab=new");
    const action = failure.getByRole("link", { name: "Retry export" });
    expect(await action.getAttribute("href")).toBe(`/chains/runs/${runId}`);
    for (const shown of [failure, action, cause]) expect(await isInView(shown)).toBe(true);
    const chains = page.getByRole("grid", { name: "Chains", exact: true });
    const cell = chains.getByRole("gridcell", { name: /^export, .*1 finished, 1 failed$/ });
    await cell.waitFor();
    expect(await clicks()).toBe(0);
    // The doctor knows of the failure too. It has answered: what it says of this Postgres is there.
    await page.getByText(/fsync off/).waitFor();
    expect(await failure.count()).toBe(1);

    // What ends meanwhile appears by itself.
    const good = await define("import", [{ id: "n", type: "noop" }]);
    await ends(await run(good, "20260401"));
    await chains.getByRole("gridcell", { name: /^import, .*1 finished$/ }).waitFor();

    const ended = page.getByRole("figure", { name: "Finished", exact: true });
    await ended.getByRole("button", { name: "Table" }).click();
    const counts = ended.locator("[role=row] [role=gridcell]:last-child");
    const sum = async () => (await counts.allInnerTexts()).reduce((all, one) => all + Number(one), 0);
    await expect.poll(sum).toBe(2);
    await page.getByRole("figure", { name: "Time to finish, p95" }).waitFor();

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
    const lag = page.getByRole("figure", { name: "Source lag" });
    await expect.poll(() => lag.innerText()).toMatch(new RegExp(`${slow}\\S*\\s+\\d+ [mhd]`));
    await row.getByRole("link", { name: throttled }).click();
    await page.waitForURL(`**/harvest/${throttled}*`);
    expect(await clicks()).toBe(1);
  });

  test("links to pages that exist, whatever an entry is about", async () => {
    const opened = await browser.open("/");
    const { page } = opened;
    const kinds = ["chain", "model", "table", "delivery", "receiver", "source", "plan"];
    for (const kind of [...kinds, "stage", "failed-stage", "dead-letter", "tenant"]) {
      const href = hrefOf({ kind, id: kind.endsWith("stage") ? "shard-worker" : "7", opTime: "20260401" });
      await page.goto(harvests.millrace.url + String(href));
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect([kind, await page.getByText("Page not found.").count()]).toEqual([kind, 0]);
    }
    // Most of them do not exist here, and the pages say so.
    forgive(opened, "400", "404");
  });

  test("leads from each cause to what waits for it, and from each need to where it is handled", async () => {
    const waits = await define("waits for a table", [{ id: "load", type: "noop", waitsFor: ["ORDERS:OF_A_MONTH"] }]);
    const runId = await run(waits, "20260402");
    await harvests.api.put("/api/v1/pools/small", { size: 0 });
    await run(await define("waits for a pool", [{ id: "n", type: "noop", pool: "small" }]), "20260402");
    const delayed = await run(
      await define("waits for an attempt", [{ id: "n", type: "noop", pool: "small" }]),
      "20260402",
    );
    await database.query(
      "update chains.live_node set state = 'delayed', due_at = now() + interval '1 hour' where run_id = $1",
      [delayed],
    );
    const single = await define("single", [{ id: "n", type: "noop", waitsFor: ["NEVER"] }], { maxActiveRuns: 1 });
    for (const opTime of ["20260402", "20260403"]) await run(single, opTime);
    const schedule = { name: "daily", cron: "0 3 * * *", timeZone: "UTC", paused: true };
    const nightly = await define("nightly", [{ id: "n", type: "noop" }]);
    await harvests.api.post(`/api/v1/chains/${nightly}/schedules`, schedule);

    const [lost] = [await tracking.put(reached("shard-worker", "started"))];
    await database.query(
      "update tracking.pipeline_tracking set shard_worker_fence = 1, worker = 'w1', updated_at = now() - interval '2 hours'",
    );
    await database.query(
      `with endpoints as (
         insert into webhooks.endpoint (callback_url, team_name, signing_key, held_until, disabled_at, disabled_reason)
         values ('https://held.example/', '', '', now() + interval '1 hour', null, null),
                ('https://off.example/', '', '', null, now(), 'It failed for 5 days.') returning callback_url
       ), subscriptions as (
         insert into webhooks.metrics_webhook_subscription (id, kpi_id, callback_url)
         select 70 + row_number() over (order by callback_url), 'KD7', callback_url from endpoints
       )
       insert into webhooks.delivery (id, event_id, group_no, event, callback_url, subscription_ids, op_time, payload, retry_num)
       select gen_random_uuid(), gen_random_uuid(), 0, 'kpi.updated', 'https://held.example/', '{71}', '20260402', '{}', 3`,
    );
    await database.query(
      `with tenant as (insert into lineage.tenant (id, code, name) values (70, 'c70', 'Tenant 70') returning id)
       insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint, status)
       select 'EMBEDDING', id, 'c70', 'TABLE', '1', repeat('0', 64), 'm', 'DEAD' from tenant`,
    );
    const refusing = await harvests.source(() => ({ status: 401, body: {} }), { budget: { concurrency: 1 } });
    await harvests.plan(refusing, 2);
    const failing = await harvests.source(() => ({ status: 400, body: {} }));
    await harvests.harvest(failing);

    const { page } = await browser.open("/?needs=all");
    const list = (name: string) => page.getByRole("list", { name });
    const row = (name: RegExp) => page.getByRole("row", { name }).waitFor();
    /** The list has nothing else. */
    const only = async (name: RegExp) => {
      await row(name);
      expect(await page.getByRole("grid").getByRole("row").count()).toBe(2);
    };
    const stuck = /^Open shard-worker$/;
    const places: readonly (readonly [list: string, link: RegExp, found: () => Promise<unknown>])[] = [
      ["Waiting", /^Table ORDERS:OF_A_MONTH has not/, () => only(/waits for a table/)],
      ["Waiting", /^Pool small is full$/, () => only(/waits for a pool/)],
      ["Waiting", /^Next attempt$/, () => only(/waits for an attempt/)],
      ["Waiting", /^Chain single is at its limit/, () => only(/20260403/)],
      ["Waiting", /^Paused: nightly$/, () => page.getByText("0 3 * * *").waitFor()],
      ["Waiting", /^https:\/\/held\.example\/ asked/, () => only(/20260402/)],
      ["Waiting", new RegExp(`^Paused: ${refusing}$`), () => page.getByRole("button", { name: "Resume" }).waitFor()],
      ["Needs you", new RegExp(`^Resume ${refusing}`), () => page.getByRole("button", { name: "Resume" }).waitFor()],
      ["Needs you", new RegExp(`^Open ${failing}`), () => page.getByText("2026-08-01").first().waitFor()],
      ["Needs you", stuck, () => row(new RegExp(lost))],
      ["Needs you", /^Enable https:\/\/off/, () => page.getByRole("complementary").getByText("KD7").first().waitFor()],
      ["Needs you", /^Open Tenant 70, asynchronous tasks$/, () => row(/EMBEDDING|embedding/i)],
    ];
    await list("Needs you").getByRole("link", { name: stuck }).waitFor();
    const sources = page.getByRole("grid", { name: "Sources in the last hour" });
    await sources
      .getByRole("row", { name: new RegExp(refusing) })
      .getByText("access denied")
      .waitFor();
    const hrefs: (string | null)[] = [];
    for (const [name, link] of places) {
      const found = list(name).getByRole("link", { name: link });
      await found.waitFor();
      hrefs.push(await found.getAttribute("href"));
    }
    for (const [index, [, link, found]] of places.entries()) {
      await page.goto(harvests.millrace.url + hrefs[index]);
      await found().catch((error: unknown) => {
        throw new Error(`${link} leads to ${hrefs[index]}: ${String(error)}`);
      });
    }

    // The filter is shown and removed; the drawer of the table, which no model needs, has the run too.
    await page.goto(harvests.millrace.url + hrefs[0]);
    await page.getByRole("button", { name: "Waiting for table ORDERS:OF_A_MONTH" }).click();
    await row(/waits for a pool/);
    expect(new URL(page.url()).search).toBe("");
    await page.goto(`${harvests.millrace.url}/arrivals?row=ORDERS:OF_A_MONTH&at=20260402`);
    const waiting = page.getByRole("complementary").getByRole("link", { name: "waits for a table 20260402" });
    expect(await waiting.getAttribute("href")).toBe(`/chains/runs/${runId}`);
  });

  test("selects a time range by dragging or by fields, which is then in the address", async () => {
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
    await page.getByRole("button", { name: "Reset to last day" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("");

    // The same without a mouse, in the zone of the page.
    await page.getByLabel("Time range").selectOption("Custom range");
    const from = page.getByLabel("From", { exact: true });
    const before = await from.inputValue();
    const earlier = new Date(Date.parse(`${before}Z`) - 3_600_000).toISOString().slice(0, 16);
    await from.fill(earlier);
    await from.press("Enter");
    const hours = () => {
      const { searchParams: now } = new URL(page.url());
      return Math.round((Date.parse(now.get("to") ?? "") - Date.parse(now.get("from") ?? "")) / 3_600_000);
    };
    await expect.poll(hours).toBe(25);
    expect(await from.inputValue()).toBe(earlier);
    // What no page knows, or cannot be, leaves the address.
    await page.goto(`${new URL(page.url()).origin}/?from=abc&to=def&range=zzz&state=FAILED`);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
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
    await page.getByText(/^Some data is hidden: your key lacks .*harvest:read/).waitFor();
    await page.getByText("Your key lacks the scope harvest:read.").waitFor();
    expect(await page.getByText("No sources yet.").count()).toBe(0);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("anything");
    await page.getByText(/^Some results are hidden: your key lacks .*harvest:read/).waitFor();
  });
});
