/** Texts of definitions: where a path of the server stands, and what is wrong with the text itself. */
import { describe, expect, test } from "vitest";
import { readText, yamlText } from "./text.ts";

const TEXT = `name: daily
nodes:
  - id: extract
    type: http
    cfg: {url: "https://example.com"}
  - id: load
    type: sqll
    dependsOn: [extract]
`;
const lineOf = (...path: string[]) => readText(TEXT).placeOf({ path }).line;
const marked = (...path: string[]) => {
  const { from, to } = readText(TEXT).placeOf({ path });
  return TEXT.slice(from, to);
};

describe("a path of the server", () => {
  test("is found at its line, also inside of lists and of braces", () => {
    expect(lineOf("name")).toBe(1);
    expect(lineOf("nodes", "1", "type")).toBe(7);
    expect(marked("nodes", "1", "type")).toBe("type: sqll");
    expect(marked("nodes", "0", "cfg", "url")).toBe('url: "https://example.com"');
    expect(marked("nodes", "1", "dependsOn", "0")).toBe("extract");
  });

  test("that does not exist is its nearest parent, and never more than a line", () => {
    expect(lineOf("nodes", "0", "retry", "maxAttempts")).toBe(3);
    expect(marked("nodes", "1")).toBe("id: load");
    expect(lineOf()).toBe(1);
  });

  test("leads through an alias to what it stands for", () => {
    const text = "nodes:\n  - &first\n    id: a\n    cfg: {url: x}\n  - *first\n";
    const lineIn = (...path: string[]) => readText(text).placeOf({ path }).line;
    expect(lineIn("nodes", "1")).toBe(5);
    expect(lineIn("nodes", "1", "cfg", "url")).toBe(4);
  });

  test("is found in JSON as well", () => {
    const json = '{\n  "nodes": [\n    { "id": "a" }\n  ]\n}';
    expect(readText(json).placeOf({ path: ["nodes", "0", "id"] })).toMatchObject({ line: 3, column: 7 });
  });
});

describe("a text", () => {
  test("that is no YAML has its problem at its line, and no value", () => {
    const { value, problems } = readText("name: a\nnodes: [\n");
    expect(value).toBeUndefined();
    expect(problems[0]).toMatchObject({ severity: "error", line: 3 });
  });

  test.each([
    ["- a\n- b\n", /named fields/],
    ["n: .inf\n", /no such number/],
    ["a: &a [1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n", /aliases/],
  ])("%j is refused with a sentence", (text, sentence) => {
    expect(readText(text).problems.map(({ message }) => message)).toEqual([expect.stringMatching(sentence)]);
  });

  test("says whether it has comments, which are not stored", () => {
    expect(readText("a: 1 # one\n").hasComments).toBe(true);
    expect(readText("# first\n\na: 1\n").hasComments).toBe(true);
    expect(readText("sql: |\n  # not a comment\n").hasComments).toBe(false);
  });

  test("of a value is read back as the same value", () => {
    const value = {
      name: "x",
      nodes: [
        { id: "a", dependsOn: ["b", "c"], cfg: { sql: "select 1\nfrom t\n", n: 1.5, s: "20250101", t: "yes: no" } },
      ],
    };
    const text = yamlText(value);
    expect(readText(text).value).toEqual(value);
    expect(text).toContain("dependsOn: [b, c]");
    expect(text).toContain("sql: |\n");
  });
});
