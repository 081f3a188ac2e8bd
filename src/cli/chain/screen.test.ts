/** Redrawing of frames, checked on a simulated terminal. */
import { expect, test } from "vitest";
import { createScreen } from "./screen.ts";
import { testTerminal } from "./terminal.fixture.ts";

function setUp(columns = 20, rows = 10) {
  const terminal = testTerminal(columns, rows);
  const writes: string[] = [];
  const screen = createScreen((text) => {
    writes.push(text);
    terminal.write(text);
  });
  return { terminal, writes, screen, draw: (...lines: string[]) => screen.draw(lines, terminal.columns) };
}

test("a frame replaces the last one, whether it is longer, shorter or narrower", () => {
  const { terminal, draw } = setUp();
  terminal.write("$ millrace\n");
  for (const frame of [["one", "two"], ["a much longer line", "b", "c"], ["x"], [], ["one", "two", "three", "four"]]) {
    draw(...frame);
    expect(terminal.lines()).toEqual(["$ millrace", ...frame]);
  }
});

test("each frame is one write, and no line is cleared before it is overwritten", () => {
  const { writes, draw } = setUp();
  draw("one", "two");
  draw("three", "four");
  expect(writes).toHaveLength(2);
  expect(writes[1]).toBe("\u001b[2A\rthree\u001b[K\nfour\u001b[K\n\u001b[J");
});

test("the cursor is hidden while frames are drawn and shown again at the end", () => {
  const { terminal, screen, draw } = setUp();
  screen.leave();
  expect(terminal.isCursorHidden()).toBe(false);
  draw("one");
  expect(terminal.isCursorHidden()).toBe(true);
  screen.leave();
  expect(terminal.isCursorHidden()).toBe(false);
  terminal.write("next\n");
  expect(terminal.lines()).toEqual(["one", "next"]);
});

test("in a window that became narrower, wrapped lines are overwritten too", () => {
  const { terminal, draw } = setUp(20);
  terminal.write("before\n");
  draw("\u001b[31m123456789 12345\u001b[39m", "short");
  terminal.resize(10, 10);
  expect(terminal.lines()).toEqual(["before", "123456789 ", "12345", "short"]);
  draw("123456789…", "short");
  expect(terminal.lines()).toEqual(["before", "123456789…", "short"]);
});
