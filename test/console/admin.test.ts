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
    await page.getByRole("row", { name: /seven/ }).click();
    const drawer = page.getByRole("complementary");
    await drawer.getByText("of seven").waitFor();
    await drawer.getByText("Last 24 hours").waitFor();
    expect(new URL(page.url()).searchParams.get("row")).toMatch(/^"?7"?$/);
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByRole("row", { name: /of seven .* 7 · seven/ }).waitFor();
    // What is open in one tab is nothing that another one has.
    await page.getByRole("link", { name: "Tenants" }).click();
    await page.getByRole("row", { name: /seven/ }).click();
    await page.getByRole("link", { name: "Audit log" }).click();
    const log = page.getByRole("grid", { name: "Audit log" });
    await log.waitFor();
    expect(new URL(page.url()).search).toBe("?tab=audit");
    // The server filters, so that what is found is all that there is.
    await millrace.api.post("/api/v1/keys", { name: "of another", scopes: ["admin"] });
    await page.getByLabel("What").selectOption("key.create");
    await log
      .getByRole("row", { name: /session\.start/ })
      .first()
      .waitFor({ state: "detached" });
    expect(await log.getByRole("row", { name: /key\.create/ }).count()).toBe(2);
    expect(new URL(page.url()).searchParams.get("action")).toBe("key.create");
    await page.getByRole("searchbox", { name: "Key name" }).fill("nobody");
    await page.getByText("Nothing matches the filters.").waitFor();
    await page.getByRole("button", { name: "My actions only" }).click();
    await log
      .getByRole("row", { name: /key\.create/ })
      .first()
      .waitFor();
    expect(new URL(page.url()).searchParams.get("who")).toBe("me");
    forgive(opened, "400");
  });
});
