/** The pages of harvest in a browser: why a source is slow or failed, gaps, plans before and while they run, gates. */
import { describe, expect, test } from "vitest";
import { endOf, plan } from "../../src/harvest/harvest.fixture.ts";
import { correct, itemsOf, type Script, useScripted } from "../../src/harvest/run/scripted.fixture.ts";
import { useDatabase } from "../database.ts";
import { accessibilityFaults, hasBrowser, PHONE, useConsole } from "./browser.ts";

const database = useDatabase();
const harvests = useScripted(database);
const DAYS = ["2026-08-01", "2026-08-02", "2026-08-03"];
const items = DAYS.flatMap((day) => itemsOf(15, day));
/** The second day is refused. */
const refusing: Script = (asked) =>
  asked.query.get("from") === DAYS[1] ? { status: 400, body: { error: "bad day" } } : correct(items)(asked);

describe.runIf(hasBrowser)("in a browser", () => {
  const browser = useConsole({
    get url() {
      return harvests.millrace.url;
    },
  });

  test("whether the source is slow or we throttle is one click from the list of sources", async () => {
    const source = await harvests.source(correct(items));
    await harvests.harvest(source, 3);
    // As a run of 30 s that waited for its limit: a rate that is slow enough for any machine would take as long.
    await database.query(
      "update harvest.ing_task_run set stats = stats || '{\"waitTotalMs\": 30000}' where provenance_code = $1",
      [source],
    );
    const { page, clicks } = await browser.open("/harvest");
    const row = page.getByRole("row", { name: new RegExp(`${source} `) });
    await row.getByText("not scheduled").first().waitFor();
    await row.getByRole("link", { name: source, exact: true }).click();
    await page.getByText(/We throttle: \d+% of run time was spent waiting at our rate gate/).waitFor();
    expect(await clicks()).toBe(1);
    await page
      .getByRole("figure", { name: "Where the time goes" })
      .getByText(/waiting at our rate gate \d+%/)
      .waitFor();
  });

  test("a gap is drawn with its reason, and the watermark passes it once it is accepted", async () => {
    const source = await harvests.source(refusing);
    await harvests.harvest(source, 3);
    const list = await browser.open("/harvest?q=no-such-source", { colorScheme: "dark" });
    await list.page.getByRole("main").getByRole("button", { name: "Clear filters" }).click();
    const row = list.page.getByRole("row", { name: new RegExp(`${source} `) });
    await row.getByText(/1 gap: 1 of 3 slices are not complete.*answered 400/).waitFor();
    await row.getByRole("link", { name: source, exact: true }).click();
    await list.page.getByRole("link", { name: "Cursors" }).click();
    const { page } = list;
    const axis = page.getByRole("figure", { name: "Harvest coverage of items over time" });
    await axis.getByRole("button", { name: "gap: 2026-08-02 to 2026-08-03" }).click();
    const drawer = page.getByRole("complementary");
    await drawer.getByText(/answered 400/).waitFor();
    await drawer.getByLabel("Why this gap is acceptable").fill("The source has lost that day.");
    await drawer.getByRole("button", { name: "Accept the gap" }).click();
    await page.getByText("Gap accepted.").waitFor();
    await axis.getByRole("button", { name: "gap accepted: 2026-08-02 to 2026-08-03" }).waitFor();
    // The history moves without a reload.
    await page
      .getByRole("grid", { name: "History of the watermark" })
      .getByRole("row", { name: /advanced 2026-08-04/ })
      .waitFor();
  });

  test("a plan is shown before it is made, runs live, and leads from its failure to the request that failed", async () => {
    const source = await harvests.source(refusing);
    const { page, clicks } = await browser.open(`/harvest/${source}?tab=plan&from=2026-08-01&to=2026-08-04`);
    await page.getByText("Creates 3 slices: 2026-08-01 – 2026-08-04").waitFor();
    // A backfill of the same window is another operation, and starts no more than that.
    await page.getByLabel("Operation").selectOption("backfill");
    await page.waitForURL(/plans=BACKFILL/);
    await page.getByLabel("Operation").selectOption("harvest");
    await page.getByText("Creates 3 slices: 2026-08-01 – 2026-08-04").waitFor();
    await page.getByRole("button", { name: "Start plan" }).click();
    await page.getByText(/1 of 3 slices are not complete/).waitFor();
    await page.getByText("2 of 3 slices").waitFor();
    const slices = page.getByRole("grid", { name: "Slices" });
    await slices.getByRole("row", { name: /2 \d+ failed.*answered 400/ }).click();
    const drawer = page.getByRole("complementary");
    await drawer.getByRole("button", { name: /failed Run 1/ }).click();
    await drawer.getByText("No pages committed.").waitFor();
    expect(await clicks()).toBe(3);
    // The way back leads to the plan, and from there keys lead to any run.
    await page.goBack();
    await drawer.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Show 1 failed" }).waitFor();
    const runs = page.getByRole("figure", { name: /^Runs over time/ }).getByRole("button");
    expect(await runs.evaluateAll((all) => all.filter(({ tabIndex }) => tabIndex === 0).length)).toBe(1);
    await runs.last().focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`run=${await runs.nth(1).getAttribute("data-run")}$`));
    await drawer.getByRole("button", { name: "Close" }).click();
    await slices.getByRole("row", { name: /1 \d+ complete/ }).click();
    await drawer.getByRole("button", { name: /succeeded Run 1/ }).click();
    await drawer.getByRole("cell", { name: /GET .*offset=10/ }).waitFor();
    // The same on a phone, by its address.
    const phone = await browser.open(new URL(page.url()).pathname + new URL(page.url()).search, {
      viewport: PHONE,
      colorScheme: "dark",
    });
    await phone.page.getByRole("cell", { name: /GET .*offset=10/ }).waitFor();
    expect(await accessibilityFaults(phone.page)).toEqual([]);
    // What failed is harvested again before anybody accepts that it is missing.
    await slices.getByRole("row", { name: /2 \d+ failed/ }).click();
    await expect
      .poll(() => drawer.getByRole("button", { name: /Harvest again|Accept the gap/ }).allInnerTexts())
      .toEqual(["Harvest again", "Accept the gap"]);
    await drawer.getByRole("button", { name: "Harvest again" }).click();
    await page.getByText(/1 of 1 slices are not complete/).waitFor();
  });

  test("records are updated by their ids, and the cursors of all three operations are shown with their history", async () => {
    const bad = { id: "bad-kind", updated: "2026-08-03T01:00:00.000Z", kind: "brick" };
    const answer: Script = (asked) => {
      if (asked.path !== "/byid") return correct([...items, bad])(asked);
      const ids = asked.query.get("ids")?.split(",") ?? [];
      const found = [...items, bad].filter(({ id }) => ids.includes(id));
      return { body: { items: found.map((item) => ({ ...item, text: "new", kind: "book" })) } };
    };
    const outputFields = [{ name: "kind", path: "$.kind", enum: ["book"] }];
    const source = await harvests.source(answer, { outputFields });
    const byid = {
      role: "DETAIL",
      path: "/byid",
      http: { query: { ids: '${ids.join(",")}' } },
      response: { itemsPath: "$.items", idPath: "$.id", updatedAtPath: "$.updated" },
    };
    await harvests.applyEndpoints(source, { detail: "byid", outputFields }, { byid });
    const { planId: harvested } = await harvests.harvest(source, 3);
    for (const more of [
      { operation: "BACKFILL", window: { from: "2026-07-30", to: "2026-08-01" } },
      { operation: "UPDATE" },
    ]) {
      const { planId } = await plan(harvests.api, { source, ...more });
      expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
    }

    const { page } = await browser.open(`/harvest/${source}?tab=plan`);
    await page.getByLabel("Operation").selectOption("update known records");
    await page.getByLabel("Records").selectOption("Records by ID");
    await page.getByText("Enter record IDs to see the slices.").waitFor();
    await page.getByLabel("IDs (one per line)").fill(`${items[0]?.id}\n${items[1]?.id}\n`);
    await page.getByText("Creates 1 slice").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Start plan" }).click();
    await page.getByText("1 of 1 slice").waitFor();
    await page.getByText("updated 2").waitFor();
    await page.getByText("update known records").waitFor();

    await page.getByRole("link", { name: source, exact: true }).click();
    await page.getByRole("link", { name: "Plans" }).click();
    await page.getByRole("row", { name: /complete 2026-07-30 – 2026-08-01 backfill items/ }).waitFor();
    await page.getByRole("link", { name: "Cursors" }).click();
    const panel = (operation: string) => page.locator("section").filter({ hasText: new RegExp(`^items${operation}`) });
    await panel("harvest").getByText("2026-08-04", { exact: true }).first().waitFor();
    await panel("backfill").getByText("Watermark2026-07-30", { exact: true }).waitFor();
    await panel("backfill").getByRole("figure", { name: "Harvest coverage of items over time" }).waitFor();
    await panel("update known records").getByText("All records checked since").waitFor();
    await panel("update known records").getByRole("button", { name: "Show history" }).click();
    await page.getByRole("heading", { name: "History of items, update known records" }).waitFor();
    await page
      .getByRole("grid", { name: "History of the watermark" })
      .getByRole("row", { name: /advanced beginning/ })
      .waitFor();

    // The count of what was quarantined leads to the error, its record, and the preview of the update that asks for it again.
    await page.goto(new URL(`/harvest/plans/${harvested}`, page.url()).href);
    await page.getByRole("link", { name: "quarantined 1" }).click();
    await page
      .getByRole("grid", { name: "Errors" })
      .getByRole("row", { name: /^invalid value \$\.kind 1 / })
      .waitFor();
    await page
      .getByRole("grid", { name: "Records" })
      .getByRole("row", { name: /^bad-kind/ })
      .click();
    await page
      .getByRole("complementary")
      .getByText(/^\{"id":"bad-kind".*"brick"/)
      .waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.goBack();
    await page.getByRole("complementary").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Request quarantined records again" }).click();
    await page.getByText("1 record quarantined is asked for.").waitFor();
    await page.getByText("Creates 1 slice").waitFor();
    await page.goBack();
    await page.getByRole("row", { name: /^bad-kind/ }).waitFor();
    await plan(harvests.api, { source, operation: "UPDATE", quarantined: true });
    await page.getByText("No quarantined records.").waitFor();
  });

  test("an endpoint whose access is refused is paused by Millrace on each page of it, and resumed on that of its plan", async () => {
    const schedules = { schedules: { yearly: { cron: "0 0 1 1 *" } } };
    const source = await harvests.source(() => ({ status: 401, body: {} }), {}, schedules);
    const planId = await harvests.plan(source, 2);
    const { page } = await browser.open("/harvest");
    await page.getByRole("row", { name: new RegExp(`^paused ${source} by Millrace: access denied`) }).waitFor();
    await page.goto(new URL(`/harvest/${source}?tab=plans`, page.url()).href);
    await page.getByRole("row", { name: /^paused.*answered 401/ }).waitFor();
    await page.goto(new URL(`/harvest/${source}`, page.url()).href);
    await page.getByText("on hold until the source is resumed").waitFor();
    await page
      .getByRole("listitem")
      .filter({ hasText: /items.*by Millrace: access denied.*answered 401/ })
      .waitFor();
    await page.goto(new URL(`/harvest/plans/${planId}`, page.url()).href);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Resumed.").waitFor();
  });

  test("a source that asks for a pause says so at its gate, a person can pause it too, its slice says why it waits, and its plan can be cancelled", async () => {
    const source = await harvests.source(() => ({ status: 429, headers: { "retry-after": "900" }, body: {} }));
    const planId = await harvests.plan(source, 1);
    await harvests.waits(planId);
    const { page } = await browser.open(`/harvest/${source}?tab=gates`);
    await page.getByText("The service asked for a pause. No requests are sent until it ends.").waitFor();
    await page.getByRole("link", { name: "Plans" }).click();
    await page.getByRole("row", { name: /in progress/ }).click();
    await page.getByText(`the source asked for a pause of ${source}`).waitFor();
    const planUrl = page.url();
    await page.getByRole("link", { name: source, exact: true }).click();
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^Reason/).fill("maintenance until noon");
    expect(await accessibilityFaults(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Pause", exact: true }).click();
    await page
      .getByRole("listitem")
      .filter({ hasText: /paused.*by .*maintenance until noon/ })
      .waitFor();
    await page.goto(planUrl);
    await page
      .getByRole("grid", { name: "Slices" })
      .getByRole("row", { name: /1 \d+ waiting/ })
      .click();
    const why = page.getByRole("region", { name: "Why it is not finished" }).getByRole("listitem");
    await why.first().filter({ hasText: "maintenance until noon" }).waitFor();
    await why.filter({ hasText: `Waiting for rate gate ${source}` }).waitFor();
    await page.getByRole("link", { name: source, exact: true }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Resumed.").waitFor();
    await page.getByRole("button", { name: "Resume" }).waitFor({ state: "detached" });
    await page.goto(planUrl);
    await page.getByRole("button", { name: "Cancel the plan" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the plan" }).click();
    await page.getByText("Plan cancelled.").waitFor();
    await page
      .getByRole("grid", { name: "Slices" })
      .getByRole("row", { name: /1 \d+ cancelled/ })
      .waitFor();
    expect((await harvests.api.get(`/api/v1/harvest/plans/${planId}`)).body["status"]).toBe("CANCELLED");
  });

  test("a slice and a task of a plan are cancelled after a question, each alone", async () => {
    const source = await harvests.source(() => ({ status: 429, headers: { "retry-after": "900" }, body: {} }));
    const planId = await harvests.plan(source, 3);
    await harvests.waits(planId);
    const { page } = await browser.open(`/harvest/plans/${planId}`);
    const row = (name: RegExp) => page.getByRole("grid", { name: "Slices" }).getByRole("row", { name });
    const drawer = page.getByRole("complementary");
    const states = async () => (await harvests.slices(planId)).map(({ status }) => status);
    await row(/^1 \d+ waiting/).click();
    await drawer.getByRole("button", { name: "Cancel the slice" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Keep it" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await states()).toEqual(["READY", "READY", "READY"]);
    await drawer.getByRole("button", { name: "Cancel the slice" }).click();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the slice" }).click();
    await row(/^1 \d+ cancelled/).waitFor();
    expect(await states()).toEqual(["CANCELLED", "READY", "READY"]);

    await row(/^2 \d+ waiting/).click();
    await drawer.getByRole("heading", { name: /^Slice 2 \(id \d+\)$/ }).waitFor();
    await drawer.getByRole("button", { name: "Cancel the task" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the task" }).click();
    await row(/^2 \d+ cancelled/).waitFor();
    await drawer.getByRole("button", { name: "Cancel the task" }).waitFor({ state: "detached" });
    await row(/^3 \d+ waiting/).waitFor();
    expect(await states()).toEqual(["CANCELLED", "CANCELLED", "READY"]);
  });

  test("a cursor is rewound only after a preview of that time, and a connection is checked line by line", async () => {
    const source = await harvests.source(correct(items));
    await harvests.harvest(source, 3);
    const watermark = async () => {
      const { body } = await harvests.api.get<{ items: { watermark: string }[] }>(
        `/api/v1/harvest/sources/${source}/coverage`,
      );
      return body.items[0]?.watermark.slice(0, 10);
    };
    const before = await watermark();
    expect(before).toBe("2026-08-04");
    const { page } = await browser.open(`/harvest/${source}?tab=cursors`);
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Rewind" }).click();
    await dialog.getByLabel(/^Back to/).fill("2026-08-02");
    await dialog.getByLabel("Why it is harvested again").fill("the source has mended its records");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("From 2026-08-04 back to 2026-08-02: 2 complete slices").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await watermark()).toBe(before);
    // Another time needs another preview.
    await dialog.getByLabel(/^Back to/).fill("2026-08-03");
    expect(await dialog.getByRole("button", { name: "Rewind" }).count()).toBe(0);
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("From 2026-08-04 back to 2026-08-03: 1 complete slice ").waitFor();
    await dialog.getByRole("button", { name: "Rewind" }).click();
    await page
      .getByRole("grid", { name: "History of the watermark" })
      .getByRole("row", { name: /rewound 2026-08-04 2026-08-03 .*the source has mended its records/ })
      .waitFor();
    expect(await watermark()).toBe("2026-08-03");

    // The check reads a page of yesterday.
    harvests.server.on(source, (asked) => correct(itemsOf(12, asked.query.get("from") ?? ""))(asked));
    await page.getByRole("button", { name: "Check connection" }).click();
    const line = (name: string) => dialog.locator("dl > div").filter({ has: page.locator("dt", { hasText: name }) });
    await line("Page")
      .getByText(/^10 records of .*, a total of 12\.$/)
      .waitFor();
    await line("Page").getByText("OK", { exact: true }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    harvests.server.on(source, () => ({ status: 500, body: {} }));
    await dialog.getByRole("button", { name: "Check again" }).click();
    await line("Page")
      .getByText(/^No page was read: /)
      .waitFor();
    await line("Page").getByText("failed", { exact: true }).waitFor();
    await line("Connection")
      .getByText(/^The source answered 500 /)
      .waitFor();
  });

  test("an edited definition is tested by one click, with the problem at its line, and applied when it is mended", async () => {
    const source = await harvests.source(correct(items));
    const { page, clicks } = await browser.open(`/harvest/${source}?tab=definition`);
    const editor = page.getByRole("textbox", { name: `Definition of ${source}` });
    const type = async (text: string) => {
      await editor.focus();
      await page.keyboard.press("Control+Home");
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    };
    await type("descripton: Mended");
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByText("The definition has 1 problem.").waitFor();
    expect(await clicks()).toBe(1);
    await page.getByRole("button", { name: /line 1 .*descripton/ }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    // The draft survives a reload.
    await page.reload();
    await page.getByText("The definition has 1 problem.").waitFor();
    await page.getByRole("button", { name: "Discard my changes" }).click();
    await type("description: Mended by hand");
    await page.getByText("becomes Mended by hand").waitFor();
    // A text that was checked before can be applied again, too.
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("my_");
    await page.getByText("The definition has 1 problem.").waitFor();
    for (const _ of "my_") await page.keyboard.press("Backspace");
    await page.getByText("becomes Mended by hand").waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText(`Applied ${source} as revision 2.`).waitFor();
    const { body } = await harvests.api.get(`/api/v1/harvest/registry/sources/${source}`);
    expect(body).toMatchObject({ revision: 2, description: "Mended by hand" });
    // The address of the simulator stays.
    expect(body["baseUrlOverride"]).toBe(`${harvests.server.origin}/${source}`);
  });

  test("a new source is added as text, and one that exists is not replaced", async () => {
    await harvests.source(correct(items));
    const { page } = await browser.open("/harvest?tab=new", { colorScheme: "dark" });
    await page.getByText("Adds a new source.").waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Added shop.").waitFor();
    await page.getByRole("heading", { level: 1, name: "shop" }).waitFor();
    await page.goto(`${harvests.millrace.url}/harvest?tab=new`);
    await page.getByText("Source shop already exists. Edit it on its own page.").waitFor();
  });

  test("the search finds a source by its name and a plan by its id", async () => {
    const source = await harvests.source(correct(items));
    const { planId } = await harvests.harvest(source, 1);
    const { page } = await browser.open("/");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill(planId.slice(0, 13));
    await page.getByRole("option", { name: new RegExp(planId) }).waitFor();
    await page.getByRole("dialog").getByRole("combobox").fill(source);
    await page
      .getByRole("option", { name: new RegExp(source) })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: source }).waitFor();
  });
});
