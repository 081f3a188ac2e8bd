import { expect, test } from "vitest";
import { csvOf } from "./csv.ts";

test.each([
  ["plain", "plain"],
  ['say "hi", now', '"say ""hi"", now"'],
  ["two\nlines", '"two\nlines"'],
  ["=1+1", "'=1+1"],
  ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
  ["+1", "'+1"],
  ["-1", "'-1"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\t=1", "'\t=1"],
  ["\r=1", '"\'\r=1"'],
  ["  =1", "'  =1"],
  ["＝1", "'＝1"],
  ["a=b", "a=b"],
  [" spaced ", '" spaced "'],
])("the text %j becomes the cell %j", (text, cell) => {
  expect(csvOf(["h"], [[text]])).toBe(`h\r\n${cell}\r\n`);
});

test("numbers are numbers and nothing is nothing", () => {
  expect(csvOf(["a", "b"], [[-1, null]])).toBe("a,b\r\n-1,\r\n");
});
