import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DIGITS_MAX, decimalOf, numberOf, TEXT_LENGTH_MAX } from "./exact-value.ts";

describe("a decimal", () => {
  test.each([
    [0, "0"],
    [-0, "0"],
    ["-0.00", "0"],
    ["+007.50", "7.5"],
    [" 5 ", "5"],
    [".5", "0.5"],
    ["5.", "5"],
    ["1e3", "1000"],
    ["1.25E+2", "125"],
    ["-12.5e-3", "-0.0125"],
    [1e21, "1000000000000000000000"],
    [5e-324, `0.${"0".repeat(323)}5`],
    ["9007199254740993", "9007199254740993"],
    ["123456789012345678901234567890.123456789", "123456789012345678901234567890.123456789"],
  ])("%s is %s", (given, text) => {
    expect(decimalOf(given)).toBe(text);
  });

  test.each([
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    ["-Infinity"],
    ["NaN"],
    [""],
    ["."],
    ["e5"],
    ["0x10"],
    ["1_000"],
    ["1,5"],
    ["1 2"],
    [`1e${DIGITS_MAX}`],
    [`1e-${DIGITS_MAX + 1}`],
    ["1e999999999999999999"],
    ["9".repeat(DIGITS_MAX + 1)],
  ])("%s is none", (given) => {
    expect(decimalOf(given)).toBeUndefined();
  });

  test("may end with as many zeros as Postgres writes after the point", () => {
    expect(decimalOf(`0.5${"0".repeat(16_382)}`)).toBe("0.5");
    expect(decimalOf(`0.5${"0".repeat(TEXT_LENGTH_MAX)}`)).toBeUndefined();
  });

  test("has at most so many digits on each side of the point", () => {
    expect(decimalOf(`1e${DIGITS_MAX - 1}`)).toHaveLength(DIGITS_MAX);
    expect(decimalOf(`1e-${DIGITS_MAX}`)).toHaveLength(DIGITS_MAX + 2);
  });
});

describe("a JSON number", () => {
  test.each([
    ["9007199254740993", null],
    ["9007199254740992", 9007199254740992],
    ["0.1", 0.1],
    ["0.30000000000000004", 0.30000000000000004],
    ["0.1234567890123456789", 0.12345678901234568],
    ["0.33333333333333333333", 1 / 3],
    ["-1234567.66666666666666666667", -1234567.6666666667],
    ["9007199254740990.9", 9007199254740991],
    ["9007199254740992.5", null],
    ["12345678901234567.89", null],
    [`0.${"0".repeat(399)}1`, null],
    [`1${"0".repeat(300)}`, 1e300],
    [`1${"0".repeat(399)}`, null],
  ])("of %s is %s", (decimal, number) => {
    expect(numberOf(decimal)).toBe(number);
  });

  test("is the same for every double", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (double) => {
        expect(numberOf(decimalOf(double) ?? "")).toBe(double === 0 ? 0 : double);
      }),
    );
  });

  test("of an integer is never another integer", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (integer) => {
        const number = numberOf(decimalOf(String(integer)) ?? "");
        if (number !== null) expect(decimalOf(number)).toBe(String(integer));
        else expect(BigInt(Number(integer))).not.toBe(integer);
      }),
    );
  });
});
