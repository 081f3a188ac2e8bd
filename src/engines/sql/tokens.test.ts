import fc from "fast-check";
import { expect, test } from "vitest";
import { holdsSeveral, sqlTokens } from "./tokens.ts";

const parametersIn = (sql: string) =>
  [...sqlTokens(sql)].filter(({ kind }) => kind === "parameter").map(({ text }) => text);

test.each([
  ["select $a, $b_2, $größe::int, $1", ["$a", "$b_2", "$größe", "$1"]],
  ["select '$a ''$b' || $c", ["$c"]],
  [String.raw`select e'it\'s $a', E'\\', $b, 'C:\', $c`, ["$b", "$c"]],
  [String.raw`select nameE'$a', "col$a ""$b", $c`, ["$c"]],
  ["select 1 -- $a '\n, $b", ["$b"]],
  ["select /* $a /* $b */ ' $c */ $d", ["$d"]],
  ["select $$ $a ' $$, $tag$ $b $$ $c $tag$, $d", ["$d"]],
  ["select a$b, t1.c$d, $e", ["$e"]],
  ["select '$a", []],
  ['select "$a', []],
  ["select /* $a", []],
  ["select $x$ $a", []],
  ["select $ a, $-1", []],
])("finds the parameters of %s", (sql, parameters) => {
  expect(parametersIn(sql)).toEqual(parameters);
});

test("semicolons count only between statements, and comments and spaces are blank", () => {
  const sql = "a';';b; -- ;\n/* ; */ ;";
  const found = [...sqlTokens(sql)].filter(({ kind }) => kind !== "other").map(({ text }) => text);
  expect(found).toEqual([";", ";", " ", "-- ;", "\n", "/* ; */", " ", ";"]);
});

test("the tokens of any SQL concatenate to the SQL", () => {
  const fragment = fc.constantFrom(
    "$",
    "'",
    '"',
    "\\",
    "e'",
    "--",
    "/*",
    "*/",
    "\n",
    ";",
    "a",
    "$x",
    "$x$",
    "1",
    "é",
    "😀",
  );
  fc.assert(
    fc.property(fc.array(fragment), (fragments) => {
      const sql = fragments.join("");
      expect([...sqlTokens(sql)].map(({ text }) => text).join("")).toBe(sql);
    }),
  );
});

test("a megabyte of SQL is split quickly", () => {
  const sql = `select '${"it''s ".repeat(200_000)}', $a`;
  const started = performance.now();
  expect(parametersIn(sql)).toEqual(["$a"]);
  expect(performance.now() - started).toBeLessThan(2_000);
});

test.each([
  ["select 1", false],
  ["; select ';' -- ;\n; /* ; */ ;", false],
  ["", false],
  ["select 1; select 2", true],
])("tells one statement from several: %s", (sql, several) => {
  expect(holdsSeveral(sql)).toBe(several);
});
