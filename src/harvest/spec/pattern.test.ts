import { describe, expect, test } from "vitest";
import { compilePattern, wrongPattern } from "./pattern.ts";

describe("a pattern", () => {
  test.each([
    ["[a-z]+", "abc", true],
    ["[a-z]+", "abc1", false],
    ["a|b", "ab", false],
    ["a|b", "b", true],
    ["[a-z]+", "abc\n", false],
    ["[^\\s@]{1,64}@[^\\s@]{1,190}", "a@example.org", true],
    ["(?:a{1,100}){1}x*y*z*", "aaxyz", true],
  ])("%s of %j: %s", (pattern, text, isMatch) => {
    expect(compilePattern(pattern)(text)).toBe(isMatch);
  });

  test.each(["(a+)+", "(a|b*)*", "((a+)b)*", "(a{2,})+", "(?:x+y)*"])("%s repeats a repetition", (pattern) => {
    expect(wrongPattern(pattern)).toContain("would take for ever");
  });

  test.each(["(ab)+", "[+*]+(x)", "\\(a+\\)+", "(a+)b", "(a+)?", "[(a+)]+"])("%s does not", (pattern) => {
    expect(wrongPattern(pattern)).toBeUndefined();
  });

  test.each([
    ["[a-z", "unterminated character class"],
    ["(a", "unterminated group"],
    ["a{2,1}", "numbers out of order in {} quantifier"],
    ["a)|(b", "unmatched ')'"],
    ["*/: x", "nothing to repeat"],
  ])("%s is none: %s", (pattern, reason) => {
    expect(wrongPattern(pattern)).toBe(`\`${pattern}\` is not a regular expression: ${reason}.`);
  });

  test("that would take for ever is given up", () => {
    expect(compilePattern("a*a*a*a*a*a*a*a*b")("a".repeat(4_000))).toBeUndefined();
  });
});
