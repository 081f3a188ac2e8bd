import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { createOutput } from "./output.ts";

function terminal(isTTY: boolean) {
  const written: string[] = [];
  return { isTTY, columns: 40, write: (text: string) => void written.push(text), written };
}

const ESC = "\u001b";
const UP = new RegExp(`${ESC}\\[(\\d+)A`);

/** What a person sees: each cursor movement up removes the lines below. */
function seen(written: readonly string[]): string[] {
  let rows: string[] = [];
  for (const text of written) {
    const up = UP.exec(text)?.[1];
    if (up !== undefined) rows = rows.slice(0, -Number(up));
    const plain = stripVTControlCharacters(text).replaceAll("\r", "");
    rows.push(...plain.split("\n").filter((row) => row !== ""));
  }
  return rows;
}

test("lines that are redrawn stay below those that are printed, until they are removed", () => {
  const window = terminal(true);
  const output = createOutput(window, {});
  output.draw?.(["crossref 1", "arxiv 0"]);
  output.print("a model runs");
  output.draw?.(["crossref 2", "arxiv 1"]);
  expect(seen(window.written)).toEqual(["a model runs", "crossref 2", "arxiv 1"]);
  output.draw?.([]);
  output.print("done");
  expect(seen(window.written)).toEqual(["a model runs", "done"]);
});

test("nothing is redrawn, and no line is broken, where there is no terminal", () => {
  expect(createOutput(terminal(false), {}).columns()).toBe(Number.POSITIVE_INFINITY);
  expect(createOutput(terminal(false), {}).draw).toBeUndefined();
  expect(createOutput(terminal(true), { TERM: "dumb" }).draw).toBeUndefined();
});
