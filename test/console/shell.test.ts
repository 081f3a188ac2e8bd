/** The console as a person meets it: signing in, live pages, two tabs, two languages, light and dark. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { createServer } from "vite";
import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../database.ts";
import { sendHint } from "../hints.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";
import { signal } from "../until.ts";
import { accessibilityFaults, faultsInBothThemes, forgive, hasBrowser, PHONE, useConsole } from "./browser.ts";
import { NODES, textOf, write } from "./chain-texts.ts";

/** As a browser has them on a page that is not a secure context. */
function insecure(): void {
  Reflect.deleteProperty(Navigator.prototype, "locks");
  Reflect.deleteProperty(Navigator.prototype, "clipboard");
  Reflect.deleteProperty(Crypto.prototype, "randomUUID");
}

/** As if the person looked at another tab, or came back. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperties(document, {
      hidden: { configurable: true, get: () => hidden },
      visibilityState: { configurable: true, get: () => (hidden ? "hidden" : "visible") },
    });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  }, isHidden);
}

describe.runIf(hasBrowser)("the console", () => {
  const database = useDatabase();
  const millrace = useMillrace(database);
  const console = useConsole(millrace);

  async function addKey(name: string): Promise<void> {
    expect((await millrace.api.post("/api/v1/keys", { name, scopes: ["kpi:read"] })).status).toBe(200);
  }
  async function rename(from: string, to: string): Promise<void> {
    await database.query("update kernel.api_key set name = $2 where name = $1", [from, to]);
  }
  /** Ends the connection by which the server learns of changes. */
  async function loseHints(): Promise<void> {
    await database.query(
      "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and application_name = 'millrace pulse'",
    );
  }

  test("asks for a key, says what is wrong with one, and opens the overview", async () => {
    const { page } = await console.open("/", { key: null });
    expect(await faultsInBothThemes(page)).toEqual([]);
    await page.getByLabel("API key").fill("not a key");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").filter({ hasText: "SIGN_IN_REFUSED" }).waitFor();
    await page.getByLabel("API key").fill(ADMIN_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  test("is opened by a link once", async () => {
    const { body } = await millrace.api.post<{ code: string }>("/api/v1/session/links");
    const link = `/login#${body.code}`;
    const first = await console.open(link, { key: null });
    await first.page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(new URL(first.page.url()).hash).toBe("");
    const second = await console.open(link, { key: null });
    await second.page.getByText("This link has already been used").waitFor();
  });

  test("keeps the code of a link while the server is away, and follows it to pages of its own only", async () => {
    const opened = await console.open("/", { key: null });
    const { page } = opened;
    let isAway = true;
    await page.route("**/api/v1/session", (route) => (isAway ? route.abort() : route.continue()));
    for (const [to, path] of [
      ["/admin?tab=doctor", "/admin?tab=doctor"],
      ["https://elsewhere.example/", "/"],
      ["//elsewhere.example/", "/"],
    ] as const) {
      isAway = true;
      await page.context().clearCookies();
      const { body } = await millrace.api.post<{ code: string }>("/api/v1/session/links");
      await page.goto(`${millrace.url}/login?to=${encodeURIComponent(to)}#${body.code}`);
      await page.getByText("The server is not responding. Retrying.").waitFor();
      isAway = false;
      await page.getByRole("link", { name: "Millrace" }).waitFor();
      expect(page.url()).toBe(millrace.url + path);
    }
    forgive(opened, "ERR_FAILED");
  });

  test("shows a change by somebody else without being asked, and what changed while hints were missed", async () => {
    const { page } = await console.open("/admin");
    await page.getByText("Live", { exact: true }).waitFor();
    await addKey("a new key");
    await page.getByText("a new key").waitFor();
    // As by a process that ends before it sends its hint.
    await rename("a new key", "renamed without a hint");
    await loseHints();
    await page.getByText("renamed without a hint").waitFor();
  });

  test("reads one stream for two tabs, nothing for one that is hidden, and goes on in the next one", async () => {
    const first = await console.open("/admin");
    await first.page.getByText("Live", { exact: true }).waitFor();
    let streams = 0;
    first.page.context().on("request", (request) => {
      if (request.url().includes("/api/v1/events")) streams += 1;
    });
    const second = await console.open("/admin", { beside: first });
    await second.page.getByText("Live", { exact: true }).waitFor();
    await addKey("for both");
    for (const { page } of [first, second]) await page.getByText("for both").waitFor();
    expect(streams).toBe(0);

    let readWhileHidden = 0;
    first.page.on("request", () => (readWhileHidden += 1));
    await setHidden(first.page, true);
    await expect.poll(() => streams).toBe(1);
    for (const name of ["while it is hidden", "and once more"]) {
      await addKey(name);
      await second.page.getByText(name).waitFor();
    }
    expect(readWhileHidden).toBe(0);
    await rename("and once more", "renamed while it was hidden");
    await setHidden(first.page, false);
    for (const name of ["while it is hidden", "renamed while it was hidden"])
      await first.page.getByText(name).waitFor();
    await first.page.getByText("Live", { exact: true }).waitFor();
    expect(streams).toBe(1);
    await second.page.close();
    await expect.poll(() => streams).toBe(2);
    await addKey("after the other was closed");
    await first.page.getByText("after the other was closed").waitFor();
  });

  test("opens, is live, starts runs and copies over plain HTTP, where browsers lack locks, ids and the clipboard", async () => {
    const { page } = await console.open("/admin", { script: insecure });
    await page.getByText("Live", { exact: true }).waitFor();
    await millrace.api.post("/api/v1/keys", { name: "seen over plain HTTP", scopes: ["kpi:read"] });
    await page.getByText("seen over plain HTTP").waitFor();
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name").fill("copied in a dialog");
    await page.getByLabel("run:read").check();
    await page.getByRole("button", { name: "Create" }).click();
    const key = (await page.getByRole("dialog").locator("code").textContent()) ?? "";
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByText("Copied", { exact: true }).waitFor();

    const made = await millrace.api.post<{ chainId: string }>("/api/v1/chains", {
      name: "over plain HTTP",
      dagJson: { nodes: [{ id: "only", type: "noop" }] },
    });
    await page.goto(`${millrace.url}/chains/${made.body.chainId}`);
    await page.getByRole("button", { name: "Start" }).click();
    const form = page.getByRole("complementary");
    await form.getByLabel("Further").focus();
    await page.keyboard.press("Control+v");
    expect(await form.getByLabel("Further").inputValue()).toBe(key);
    await form.getByLabel("Further").fill("");
    await form.getByRole("button", { name: "Start" }).click();
    await page.waitForURL(/\/chains\/runs\//);
  });

  test("moves no row under the focus or the pointer: new ones wait, and Enter opens the row that has the focus", async () => {
    const define = (name: string) =>
      millrace.api.post("/api/v1/chains", { name, dagJson: { nodes: [{ id: "only", type: "noop" }] } });
    const remove = async (name: string) => {
      const { body } = await millrace.api.get<{ items: { chainId: string }[] }>(`/api/v1/chains?keyword=${name}`);
      await millrace.api.delete(`/api/v1/chains/${body.items[0]?.chainId}`);
    };
    await define("row m");
    const { page } = await console.open("/chains?q=row");
    const row = (name: string) => page.getByRole("row", { name });
    const waiting = page.getByRole("button", { name: "1 new" });
    await page.getByText("Live", { exact: true }).waitFor();
    await row("row m").focus();
    await define("row a");
    await waiting.waitFor();
    await page.getByRole("status").getByText("1 new").waitFor();
    expect(await row("row a").count()).toBe(0);
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "row m" }).waitFor();

    await page.goBack();
    await row("row a").hover();
    await define("row b");
    await waiting.waitFor();
    expect(await row("row b").count()).toBe(0);
    await page.mouse.move(0, 0);
    await row("row b").waitFor();

    await row("row b").focus();
    await remove("row a");
    await define("row 1");
    await waiting.waitFor();
    await row("No longer in the list: row a").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await waiting.press("Enter");
    await row("row 1").and(page.locator(":focus")).waitFor();
    expect(await row("row a").count()).toBe(0);
  });

  test("filters when the person pauses, and follows an address that something else has changed", async () => {
    await millrace.api.post("/api/v1/chains", {
      name: "not filtered",
      dagJson: { nodes: [{ id: "only", type: "noop" }] },
    });
    const { page } = await console.open("/chains");
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("keyword=")) asked.push(request.url());
    });
    const filter = page.getByRole("searchbox");
    await filter.pressSequentially("no such chain");
    await page.waitForURL(/q=no/);
    await page.getByText("Nothing matches").waitFor();
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.length).toBeLessThan("no such chain".length / 2);
    const pages = page.getByRole("navigation", { name: "Pages" });
    await pages.getByRole("link", { name: "Admin" }).click();
    await page.getByRole("heading", { name: "Admin" }).waitFor();
    await pages.getByRole("link", { name: "Chains" }).click();
    await page.waitForURL(/q=no/);
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.getByRole("heading", { name: "Admin" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("c");
    await page.waitForURL(/q=no/);
    await page.getByText("Nothing matches").waitFor();
    await pages.getByRole("link", { name: "Chains" }).click();
    await page.getByRole("row", { name: /not filtered/ }).waitFor();
    expect(await filter.inputValue()).toBe("");
    await page.goBack();
    await page.waitForURL(/q=no/);
    await expect.poll(() => filter.inputValue()).toBe("no such chain");
  });

  test("says that the doctor has failed instead of that nothing needs anybody", async () => {
    const opened = await console.open("/admin");
    await opened.page.route("**/api/v1/doctor*", (route) =>
      route.fulfill({ status: 409, json: { error: "The doctor has failed.", code: "BROKEN" } }),
    );
    await opened.page.getByRole("navigation").getByRole("link", { name: "Overview" }).click();
    await opened.page.getByRole("alert").filter({ hasText: "The doctor has failed." }).waitFor();
    expect(await opened.page.getByText("Nothing needs you.").count()).toBe(0);
    forgive(opened, "409");
  });

  test("creates a key that is shown once, and revokes it after a question", async () => {
    const tenant = { id: 7, code: "acme", name: "Acme" };
    expect((await millrace.api.post("/api/v1/lineage/tenants", tenant)).status).toBe(201);
    const opened = await console.open("/admin");
    const { page } = opened;
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name").fill("made by hand");
    await page.getByLabel("lineage:write").check();
    await page.getByRole("dialog").getByLabel("Tenant").selectOption("7 · acme");
    await page.getByRole("dialog").getByLabel("Event source").selectOption("catalog (Gravitino)");
    await page.getByRole("button", { name: "Create" }).dblclick();
    await page.getByText("Copy this key now. It is not shown again.").waitFor();
    expect(await page.getByRole("dialog").locator("code").textContent()).toMatch(/^mlr_[\w-]{43}$/);
    await page.getByRole("button", { name: "Close" }).click();
    const row = page.getByRole("row", { name: /made by hand/ });
    // A server that refuses because it is busy has done nothing, so the action can be repeated where the error is shown.
    const problem = { error: "The server is busy.", code: "OVERLOADED" };
    await page.route("**/api/v1/keys/*", (route) => route.fulfill({ status: 503, json: problem }), { times: 1 });
    await row.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    const toast = page.getByRole("status").filter({ hasText: "The server is busy. OVERLOADED" });
    await toast.getByRole("button", { name: "Retry" }).click();
    await row.getByText("revoked").waitFor();
    expect(await toast.count()).toBe(0);
    forgive(opened, "503");
    // The second click of the person has not made another one.
    const { body } = await millrace.api.get<{ items: { name: string; revokedAt?: string }[] }>("/api/v1/keys");
    expect(body.items.filter(({ name }) => name === "made by hand")).toMatchObject([
      { revokedAt: expect.any(String) as string, tenantId: 7, source: "GRAVITINO" },
    ]);
    // What the audit log is about is one click away.
    await page.getByRole("link", { name: "Audit log" }).click();
    await page
      .getByRole("row", { name: /tenant\.create/ })
      .getByRole("link", { name: "7", exact: true })
      .click();
    await page.getByRole("complementary", { name: /acme/ }).waitFor();
  });

  test("keeps the page and the draft when the session ends, and goes on after signing in", async () => {
    const { page } = await console.open("/admin?tab=audit");
    await page.getByRole("grid", { name: "Audit log" }).waitFor();
    await page.mouse.move(0, 0);
    // The log sends no hints.
    const made = () => page.getByRole("gridcell", { name: "key.create" }).count();
    const before = await made();
    await addKey("in the audit log");
    await expect.poll(made, { timeout: 15_000 }).toBe(before + 1);
    const endSession = async () => {
      await database.query("delete from kernel.console_session");
      await page.context().clearCookies();
    };
    const signInAgain = async () => {
      await page.getByText("Your session has expired.").waitFor();
      await page.getByLabel("API key").fill(ADMIN_KEY);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await endSession();
    // The search finds nothing any more, and does not cover the form.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("doctor");
    await signInAgain();
    await page.getByRole("link", { name: "Doctor" }).click();
    await page.getByRole("grid", { name: "Doctor" }).waitFor();
    expect(new URL(page.url()).search).toBe("?tab=doctor");

    const { body } = await millrace.api.post<{ chainId: string }>("/api/v1/chains", {
      name: "drafted",
      dagJson: { nodes: NODES },
    });
    await page.goto(`${millrace.url}/chains/${body.chainId}?tab=definition`);
    await write(page, textOf("drafted", "noop"));
    await page.getByText("1 node added: report").waitFor();
    await endSession();
    // The page reads the chain, and is refused.
    await sendHint(database, "chain", body.chainId);
    await signInAgain();
    await page.getByText("1 node added: report").waitFor();
    // What is typed while it is saved is a change of what was saved.
    const release = signal();
    await page.route(`**/chains/${body.chainId}`, async (route) => {
      await release.promise;
      await route.fallback();
    });
    await page.getByRole("button", { name: "Save" }).click();
    await write(page, `${textOf("drafted", "noop")}# kept\n`);
    release.resolve();
    await page.getByText("Saved as version 2.").waitFor();
    await page.getByRole("textbox").getByText("# kept").waitFor();

    // A draft that is kept is left without a question, and one for which the browser has no room is not.
    const admin = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Admin" });
    await page.getByText("Your changes are kept in this browser.").waitFor();
    await admin.click();
    await page.getByRole("heading", { name: "Admin" }).waitFor();
    await page.goBack();
    await page.evaluate(() => {
      const { setItem } = Storage.prototype;
      Storage.prototype.setItem = function (this: Storage, ...item) {
        if (this === localStorage) throw new DOMException("full", "QuotaExceededError");
        setItem.apply(this, item);
      };
    });
    await write(page, `${textOf("drafted", "noop")}# not kept\n`);
    await page.getByText("The text is too large to keep in this browser.").waitFor();
    const asked: string[] = [];
    page.on("dialog", (dialog) => {
      asked.push(dialog.type());
      void dialog.dismiss();
    });
    await page.close({ runBeforeUnload: true });
    await expect.poll(() => asked).toEqual(["beforeunload"]);
    await admin.click();
    const question = page.getByRole("dialog", { name: "Leave without saving?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("The text is too large to keep in this browser.").waitFor();
    await admin.click();
    await question.getByRole("button", { name: "Leave and lose changes" }).click();
    await page.getByRole("heading", { name: "Admin" }).waitFor();
  });

  test("is found by keys, in Chinese too, and says when an address has no page", async () => {
    const { page } = await console.open("/");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("adm");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Admin" }).waitFor();
    expect(await page.title()).toBe("Admin · Millrace");
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("button", { name: "Language, theme and time zone" }).click();
    await page.getByLabel("Language", { exact: true }).selectOption("zh");
    await page.getByRole("heading", { name: "总览" }).waitFor();
    expect(await page.evaluate(() => document.documentElement.lang)).toBe("zh-CN");
    await page.goto(`${millrace.url}/no-such-page`);
    await page.getByRole("heading", { name: "页面不存在。" }).waitFor();
  });

  test("enters the first list by j or k, moves in it, opens a row by Enter, and lists its keys by ?", async () => {
    const { page } = await console.open("/admin?tab=settings");
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-rowindex"));
    await page.getByRole("grid", { name: "Settings" }).waitFor();
    for (const [key, row] of [
      ["k", "2"],
      ["j", "3"],
      ["j", "4"],
      ["k", "3"],
    ] as const) {
      await page.keyboard.press(key);
      await expect.poll(focused).toBe(row);
    }
    const name = await page.locator("[aria-rowindex='3'] [role=gridcell]").first().innerText();
    await page.keyboard.press("Enter");
    const drawer = page.getByRole("complementary");
    await drawer.getByRole("heading", { name }).waitFor();
    // From the list and from nowhere, too, but not out of the filter.
    for (const goThere of [() => page.keyboard.press("j"), () => page.getByRole("heading", { level: 1 }).click()]) {
      await goThere();
      await page.keyboard.press("/");
      await page.keyboard.press("Escape");
      await drawer.waitFor();
      await goThere();
      await page.keyboard.press("Escape");
      await drawer.waitFor({ state: "detached" });
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await drawer.waitFor();
    }
    await page.keyboard.press("Escape");
    await drawer.waitFor({ state: "detached" });
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await help.getByText("next or previous row").waitFor();
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
  });

  test("is served with hot reload beside a running server, which takes its writes", async () => {
    const cacheDir = mkdtempSync(join(tmpdir(), "millrace-vite-"));
    onTestFinished(() => rmSync(cacheDir, { recursive: true, force: true }));
    process.env["MILLRACE_URL"] = millrace.url; // The configuration reads it.
    const dev = await createServer({
      configFile: "console/vite.config.ts",
      logLevel: "error",
      cacheDir,
      optimizeDeps: { noDiscovery: true }, // No browser asks for the libraries.
      server: { port: 0 },
    });
    delete process.env["MILLRACE_URL"];
    onTestFinished(() => dev.close());
    await dev.listen();
    const url = dev.resolvedUrls?.local[0]?.replace(/\/$/, "") ?? "";
    const page = await (await fetch(url)).text();
    expect(page).toContain('src="/@vite/client"');
    const [, script] = /<script type="module" src="(\/src\/[^"]+)"/.exec(page) ?? [];
    expect(await (await fetch(`${url}${script}`)).text()).toContain("createRoot");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const headers = { "content-type": "application/json", "x-millrace-console": "1", origin: url };
    const body = JSON.stringify({ key: ADMIN_KEY });
    const signedIn = await fetch(`${url}/api/v1/session`, { method: "POST", headers, body });
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    const asSession = { ...headers, cookie };
    const made = await fetch(`${url}/api/v1/session/links`, { method: "POST", headers: asSession, body: "{}" });
    expect([made.status, await made.json()]).toEqual([200, expect.objectContaining({ code: expect.any(String) })]);
  });

  test("has its pages in a menu on a phone, and follows the chosen theme and time zone", async () => {
    const { page } = await console.open("/", { viewport: PHONE });
    const pages = page.getByRole("navigation", { name: "Pages" });
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await pages.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Menu" }).click();
    await pages.getByRole("link", { name: "Admin" }).click();
    await page.getByRole("heading", { name: "Admin" }).waitFor();
    expect(await pages.isVisible()).toBe(false);

    await page.getByRole("link", { name: "Audit log" }).click();
    const time = page.getByRole("grid", { name: "Audit log" }).locator("time").first();
    const hour = new Date((await time.getAttribute("datetime")) ?? "").getUTCHours();
    const shown = async () => Number(/(\d\d):\d\d/.exec(await time.innerText())?.[1]);
    expect(await shown()).toBe(hour);
    await page.getByRole("button", { name: "Language, theme and time zone" }).click();
    const zone = page.getByRole("combobox", { name: "Time zone" });
    await zone.fill("sao paulo");
    await page.getByRole("option", { name: "America/Sao_Paulo" }).waitFor();
    await zone.fill("kolkata");
    await page.getByRole("option", { name: "Asia/Kolkata" }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await zone.fill("shanghai");
    await page.getByRole("option", { name: "Asia/Shanghai" }).click();
    expect(await shown()).toBe((hour + 8) % 24);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.getByLabel("Theme", { exact: true }).selectOption("dark");
    expect(await ground()).not.toBe(light);
    await page.reload();
    await time.waitFor();
    expect([await shown(), (await ground()) === light]).toEqual([(hour + 8) % 24, false]);
  });
});
