import { describe, expect, test } from "vitest";
import { Definition } from "../definition/definition.ts";
import { DICTIONARY } from "./dictionary.ts";

describe("the dictionary", () => {
  test("has every code that a definition may have", () => {
    const known = Object.values<{ codes: readonly string[] }>(DICTIONARY).map(({ codes }) =>
      codes.toSorted().join(" "),
    );
    const enums = new Set<string>();
    visit(Definition);
    expect([...enums].filter((codes) => !known.includes(codes))).toEqual([]);
    expect(enums.size).toBeGreaterThan(15);

    function visit(schema: unknown): void {
      if (typeof schema !== "object" || schema === null) return;
      const codes = (schema as { enum?: unknown }).enum;
      if (Array.isArray(codes)) enums.add((codes as string[]).toSorted().join(" "));
      for (const value of Object.values(schema)) visit(value);
    }
  });

  test("describes each type, and has no code twice", () => {
    for (const { description, codes } of Object.values(DICTIONARY)) {
      expect(description).not.toBe("");
      expect(new Set(codes).size).toBe(codes.length);
    }
  });
});
