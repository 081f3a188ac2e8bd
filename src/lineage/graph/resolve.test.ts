import { describe, expect, test } from "vitest";
import { type AssetName, columnName, keyOf, linkName, schemaName, tableName } from "./names.ts";
import { type Ending, type NameHistory, resolve, resolveAliases } from "./resolve.ts";

const table = (name: string) => tableName("gravitino", "hive", "dw", name);
const [a, b, c] = ["a", "b", "c"].map(table) as [AssetName, AssetName, AssetName];
const file = tableName("external", "file", "", "/w/a");
const dw = schemaName("gravitino", "hive", "dw");

const dropped = (at: number): Ending => ({
  at,
  kind: "dropped",
  to: null,
  columns: null,
  reported: false,
  doubt: null,
});
const renamed = (at: number, to: AssetName): Ending => ({
  at,
  kind: "renamed",
  to,
  columns: null,
  reported: false,
  doubt: null,
});
const replaced = (at: number): Ending => ({
  at,
  kind: "replaced",
  to: null,
  columns: null,
  reported: false,
  doubt: null,
});

function history(endings: [AssetName, Ending[]][] = [], aliases: [AssetName, AssetName][] = []): NameHistory {
  return {
    endings: new Map(endings.map(([name, list]) => [keyOf(name), list])),
    aliases: new Map(aliases.map(([name, to]) => [keyOf(name), to])),
  };
}

describe("a name", () => {
  test("of which nothing is known means itself, at any time", () => {
    expect(resolve(a, 0, history())).toEqual(a);
  });

  test("means nothing before a drop, and itself from that moment on", () => {
    const known = history([[a, [dropped(10)]]]);
    expect(resolve(a, 9, known)).toBeUndefined();
    expect(resolve(a, 10, known)).toEqual(a);
    expect(resolve(a, 11, known)).toEqual(a);
  });

  test("leads to the new one before a rename, and means another asset after it", () => {
    const known = history([[a, [renamed(10, b)]]]);
    expect(resolve(a, 9, known)).toEqual(b);
    expect(resolve(a, 10, known)).toEqual(a);
  });

  test("is followed through all that has become of it since", () => {
    const known = history([
      [a, [renamed(10, b)]],
      [b, [dropped(5), renamed(20, c)]],
      [c, [dropped(15)]],
    ]);
    expect(resolve(a, 1, known), "neither an earlier drop of b nor one of c counts").toEqual(c);
    expect(resolve(b, 1, known)).toBeUndefined();
    expect(resolve(c, 1, known)).toBeUndefined();
  });

  test("that was given to another asset means nothing before that", () => {
    const known = history([
      [a, [renamed(10, b)]],
      [b, [replaced(10)]],
    ]);
    expect(resolve(b, 9, known)).toBeUndefined();
    expect(resolve(a, 9, known)).toEqual(b);
  });

  test("of a column goes with its table, and so does a tag on it", () => {
    const known = history([[a, [renamed(10, b)]]]);
    expect(resolve(columnName(a, "x"), 9, known)).toEqual(columnName(b, "x"));
    expect(resolve(linkName(columnName(a, "x"), "HAS_TAG", "pii"), 9, known)).toEqual(
      linkName(columnName(b, "x"), "HAS_TAG", "pii"),
    );
  });

  test("is gone with the schema that it lay in", () => {
    const known = history([[dw, [dropped(10)]]]);
    expect(resolve(columnName(a, "x"), 9, known)).toBeUndefined();
    expect(resolve(columnName(a, "x"), 10, known)).toEqual(columnName(a, "x"));
  });

  test("is gone when its schema was dropped at the moment of its own rename", () => {
    const known = history([
      [a, [renamed(10, b)]],
      [dw, [dropped(10)]],
    ]);
    expect(resolve(a, 9, known)).toBeUndefined();
  });

  test("that goes round in circles comes to an end", () => {
    const known = history([
      [a, [renamed(10, b), renamed(30, b)]],
      [b, [renamed(20, a)]],
    ]);
    expect(resolve(a, 9, known)).toEqual(b);
  });
});

describe("another name of a table", () => {
  test("stands for the table, with its columns", () => {
    const known = history([], [[file, a]]);
    expect(resolve(file, 0, known)).toEqual(a);
    expect(resolve(columnName(file, "x"), 0, known)).toEqual(columnName(a, "x"));
  });

  test("is followed before and after each rename", () => {
    const known = history(
      [[a, [renamed(10, table("old"))]]],
      [
        [file, a],
        [table("old"), c],
      ],
    );
    expect(resolve(file, 9, known)).toEqual(c);
    expect(resolve(file, 10, known)).toEqual(a);
  });

  test("leads on over others, to the same table wherever a circle is entered", () => {
    const circle = history(
      [],
      [
        [a, b],
        [b, c],
        [c, a],
      ],
    ).aliases;
    const ends = [a, b, c].map((name) => keyOf(resolveAliases(name, circle)));
    expect(new Set(ends).size).toBe(1);
  });

  test("does not concern what is no table", () => {
    const known = history([], [[file, a]]);
    expect(resolve(dw, 0, known)).toBe(dw);
  });
});
