/** Which answers confirm. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { isConfirmed } from "./confirm.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";

test.each([
  ["y\r", true],
  [" YES \r", true],
  ["\r", false],
  ["no\r", false],
  ["yesterday\r", false],
  [CTRL_C, false],
  [`y${CTRL_C}`, false],
  [CTRL_D, false],
])("%j typed at a terminal is %s", async (typed, expected) => {
  const input = new PassThrough();
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const answer = isConfirmed("Apply?", input, output);
  input.write(typed);
  expect(await answer).toBe(expected);
  expect(String(output.read())).toContain("Apply? [y/N] ");
});

test("an input that ends is a no", async () => {
  const input = new PassThrough();
  const answer = isConfirmed("Apply?", input, new PassThrough());
  input.end();
  expect(await answer).toBe(false);
});
