/** The administration in a browser: tenants with what they have, and the settings in force without their secrets. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";
import { forgive, hasBrowser, useConsole } from "./browser.ts";

const database = useDatabase();
const millrace = useMillrace(database, { env: { MILLRACE_ALLOW_SHELL: "true" } });

describe.runIf(hasBrowser)("in a browser", () => {
  const browser = useConsole(millrace);

  test("settings name their origin and show no secret", async () => {
    const { page } = await browser.open("/admin?tab=settings");
    const row = (name: string) => page.getByRole("row", { name });
    await row("MILLRACE_ALLOW_SHELL").getByText("environment").waitFor();
    expect(await row("MILLRACE_ADMIN_KEY").textContent()).toContain("secret, not shown");
    expect(await page.content()).not.toContain(ADMIN_KEY);
    await page.getByRole("searchbox").fill("lostLimit");
    await row("tracking.lostLimit").getByText("default").waitFor();
    await row("MILLRACE_ALLOW_SHELL").waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("");
    await page.getByRole("button", { name: "Non-default only" }).click();
    await row("tracking.lostLimit").waitFor({ state: "detached" });
    await row("MILLRACE_ALLOW_SHELL").click();
    await page.getByRole("complementary").getByText("Whether chain nodes of type `shell` may run commands").waitFor();
  });

  test("tenants appear live with their state, their keys and what they have", async () => {
    const opened = await browser.open("/admin?tab=tenants");
    const { page } = opened;
    await page.getByRole("row", { name: /ready 0 millrace/ }).waitFor();
    await page.getByRole("button", { name: "New tenant" }).click();
    await page.getByRole("dialog").getByLabel("ID").fill("seven");
    await page.getByRole("dialog").getByLabel("Code").fill("eight");
    await page.getByRole("dialog").getByLabel("Name").fill("Eight");
    await page.getByRole("button", { name: "Create" }).click();
    // What is refused is said in the form, which keeps what was typed.
    await page.getByRole("dialog").getByRole("alert").getByText("VALIDATION_FAILED").waitFor();
    await page.getByRole("dialog").getByLabel("ID").fill("8");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("row", { name: /ready 8 eight Eight/ }).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await millrace.api.post("/api/v1/lineage/tenants", { id: 7, code: "seven", name: "Seven", state: "READY" });
    await page.getByRole("row", { name: /ready 7 seven Seven/ }).waitFor();
    await millrace.api.post("/api/v1/keys", { name: "of seven", scopes: ["lineage:read"], tenantId: 7 });
    await database.query("update kernel.api_key set used_at = now() - interval '125 minutes' where name = 'of seven'");
    // Its hint makes the page read the keys again.
    await millrace.api.post("/api/v1/keys", { name: "of another", scopes: ["admin"] });
    await page.getByRole("row", { name: /seven/ }).click();
    const drawer = page.getByRole("complementary");
    await drawer.getByText("of seven").waitFor();
    await drawer.getByText("Last 24 hours").waitFor();
    expect(new URL(page.url()).searchParams.get("row")).toMatch(/^"?7"?$/);
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByRole("row", { name: /of seven .* 7 · seven .* 2 h 5 m ago/ }).waitFor();
    // What is open in one tab is nothing that another one has.
    await page.getByRole("link", { name: "Tenants" }).click();
    await page.getByRole("row", { name: /seven/ }).click();
    await page.getByRole("link", { name: "Audit log" }).click();
    const log = page.getByRole("grid", { name: "Audit log" });
    await log.waitFor();
    expect(new URL(page.url()).search).toBe("?tab=audit");
    // The server filters, so that what is found is all that there is.
    await page.getByLabel("What").selectOption("key.create");
    await log
      .getByRole("row", { name: /session\.start/ })
      .first()
      .waitFor({ state: "detached" });
    expect(await log.getByRole("row", { name: /key\.create/ }).count()).toBe(2);
    expect(new URL(page.url()).searchParams.get("action")).toBe("key.create");
    await page.getByRole("searchbox", { name: "Key name" }).fill("nobody");
    await page.getByText("Nothing matches the filters.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await log
      .getByRole("row", { name: /session\.start/ })
      .first()
      .waitFor();
    await page.getByLabel("What").selectOption("key.create");
    await page.getByRole("button", { name: "My actions only" }).click();
    await log
      .getByRole("row", { name: /key\.create/ })
      .first()
      .waitFor();
    expect(new URL(page.url()).searchParams.get("who")).toBe("me");
    // A row says what was changed, and from what.
    await millrace.api.send("/api/v1/lineage/tenants/7", {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "Seventh", rateLimitPerMinute: 60 }),
    });
    await page.getByLabel("What").selectOption("tenant.update");
    await log.getByRole("row", { name: /tenant\.update/ }).click();
    const change = drawer.getByRole("listitem").filter({ hasText: "name" });
    expect(await change.innerText()).toMatch(/was Seven\s+becomes Seventh/);
    await drawer.getByText("rateLimitPerMinute").waitFor();
    await page.keyboard.press("Escape");
    await drawer.waitFor({ state: "detached" });
    // The way back does not open it again.
    await page.goBack();
    await log.waitFor();
    expect(await drawer.count()).toBe(0);
    await log.getByRole("link", { name: "7", exact: true }).click();
    await page.getByRole("heading", { name: "Tenants" }).waitFor();
    expect(new URL(page.url()).searchParams.get("id")).toBe("7");
    forgive(opened, "400");
  });
});
