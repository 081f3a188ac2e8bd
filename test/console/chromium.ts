/** The browser of tests, screenshots and benchmarks of the console. */
import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium } from "playwright-core";

/** The shell has the same engine without the windows of the browser: opening six pages takes 0.6 s of CPU time instead of 2.9 s. */
const PATHS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const executablePath = PATHS.find((path) => existsSync(path));
export const hasChromium = executablePath !== undefined;
if (!hasChromium) console.warn(`No page is looked at: there is no browser at ${PATHS.join(" or ")}.`);

export const DESKTOP = { width: 1_280, height: 800 };
export const PHONE = { width: 390, height: 844 };

const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
];

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ ...(executablePath === undefined ? {} : { executablePath }), args: ARGS });
}

/** Opens a session, whose cookie all pages of the context send. */
export async function signIn(context: BrowserContext, url: string, key: string): Promise<void> {
  const answer = await context.request.post(`${url}/api/v1/session`, {
    data: { key },
    headers: { origin: url, "x-millrace-console": "1" },
  });
  if (!answer.ok()) throw new Error(`The sign-in failed: ${await answer.text()}`);
}
