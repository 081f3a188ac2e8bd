/** Tabs that share one stream. In a browser, tests show more of them. */
import { expect, onTestFinished, test, vi } from "vitest";
import { openStream, type StreamState } from "./stream.ts";

test("a tab polls while the one that reads is silent, and is live with its next heartbeat", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const page = Object.assign(new EventTarget(), { hidden: false });
  vi.stubGlobal("document", page);
  vi.stubGlobal("navigator", { locks: { request: () => new Promise(() => {}) } });
  const other = new BroadcastChannel("millrace.stream");
  const states: StreamState[] = [];
  const end = openStream(1n, { onChanges: () => {}, onGap: () => {}, onState: (state) => states.push(state) });
  onTestFinished(() => {
    end();
    other.close();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  async function hear(count: number): Promise<void> {
    other.postMessage({ state: "live", rev: "2" });
    // A real channel, whose messages take longer on a busy machine than the second that is waited for otherwise.
    await vi.waitUntil(() => states.length === count, { timeout: 20_000 });
  }
  await hear(1);
  vi.advanceTimersByTime(30_000);
  await hear(2);
  vi.advanceTimersByTime(30_000);
  expect(states).toEqual(["live", "live"]);
  vi.advanceTimersByTime(20_000);
  expect(states.at(-1)).toBe("polling");
  await hear(4);
  expect(states.at(-1)).toBe("live");
  // One that is shown again has no answer to its question.
  for (const hidden of [true, false]) {
    page.hidden = hidden;
    page.dispatchEvent(new Event("visibilitychange"));
  }
  expect(states.at(-1)).toBe("paused");
  vi.advanceTimersByTime(10_000);
  expect(states.at(-1)).toBe("polling");
});
