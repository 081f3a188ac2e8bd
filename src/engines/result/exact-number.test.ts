import { expect, test } from "vitest";
import { exactNumber } from "./exact-number.ts";

test.each([
  ["0", 0],
  ["-12", -12],
  ["9007199254740991", 9007199254740991],
  ["1000000000000000.00", 1000000000000000],
  ["1.50", 1.5],
  ["-0.1", -0.1],
  ["123456789012.345", 123456789012.345],
  ["0.000000000000000000012", 1.2e-20],
])("%s is a number", (text, number) => {
  expect(exactNumber(text)).toBe(number);
});

test.each(["9007199254740992", "-9007199254740993", "9007199254740993.00", "1234567890123.456", "NaN", "-Infinity"])(
  "%s stays text",
  (text) => {
    expect(exactNumber(text)).toBe(text);
  },
);
