/** The progress of long work, on a terminal and in a log. */
import { expect, test } from "vitest";
import { createProgress } from "./progress.ts";

function watched(isTTY: boolean, isQuiet = false) {
  let written = "";
  let ms = 0;
  const terminal = { isTTY, columns: 11, write: (text: string) => void (written += text) };
  const progress = createProgress({ isQuiet, terminal, now: () => ms });
  return {
    progress,
    pass(gapMs: number) {
      ms += gapMs;
    },
    written: () => written,
  };
}

test("on a terminal one line is redrawn, no wider than the window, and cleared at the end", () => {
  const { progress, pass, written } = watched(true);
  progress.update("too soon to be of interest");
  pass(100);
  progress.update("7 of 9\u001b[2J");
  pass(50);
  progress.update("8 of 9");
  pass(50);
  progress.update("9 of 9");
  progress.end();
  progress.end();
  expect(written()).toBe("\r\u001b[K7 of 9\\u0…\r\u001b[K9 of 9\r\u001b[K");
});

test("otherwise there is a line every few seconds, and none for short work", () => {
  const { progress, pass, written } = watched(false);
  for (let done = 1; done <= 12; done += 1) {
    pass(1_000);
    progress.update(`${done} events`);
  }
  progress.end();
  expect(written()).toBe("5 events\n10 events\n");
});

test("with --json nothing is printed", () => {
  const { progress, pass, written } = watched(true, true);
  pass(10_000);
  progress.update("x");
  progress.end();
  expect(written()).toBe("");
});
