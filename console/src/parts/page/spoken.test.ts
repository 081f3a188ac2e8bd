import { expect, onTestFinished, test, vi } from "vitest";
import { createSpeech } from "./spoken.ts";

test("a text that changes every second is spoken at once, and then every five seconds as it is by then", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const spoken: string[] = [];
  const speech = createSpeech((text) => spoken.push(text), Date.now);
  for (let second = 0; second < 12; second += 1) {
    speech.set(`${second} new`);
    vi.advanceTimersByTime(1_000);
  }
  expect(spoken).toEqual(["0 new", "4 new", "9 new"]);
  speech.set("9 new"); // It was spoken already.
  vi.advanceTimersByTime(10_000);
  expect(spoken).toHaveLength(3);
  speech.set("1 new");
  vi.advanceTimersByTime(1_000);
  speech.set("");
  vi.advanceTimersByTime(1_000);
  speech.set("1 new");
  vi.advanceTimersByTime(1_000);
  expect(spoken.slice(3)).toEqual(["1 new", ""]);
  vi.advanceTimersByTime(2_000);
  expect(spoken.at(-1)).toBe("1 new");
});
