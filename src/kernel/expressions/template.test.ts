import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ExpressionError } from "./cel.ts";
import { compileTemplate, holdsTemplate, type Template } from "./template.ts";

const VARIABLES = ["params", "nodes", "opTime"];

const VALUES = {
  params: { name: "Ada", n: 2, yes: true, list: [1, "a"], map: { k: null }, nothing: null, quote: 'a "b"' },
  nodes: { load: { artifact: { rows: 7 } } },
  opTime: "2024-02-28T00:00:00Z",
};

function compile(value: unknown): Template {
  const compiled = compileTemplate(value, VARIABLES);
  if ("problems" in compiled) throw new Error(JSON.stringify(compiled.problems));
  return compiled.template;
}

function render(value: unknown): unknown {
  return compile(value).render(VALUES);
}

function problems(value: unknown): unknown {
  const compiled = compileTemplate(value, VARIABLES);
  return "problems" in compiled ? compiled.problems : [];
}

describe("a string that is one expression becomes the value", () => {
  test.each<[string, unknown]>([
    ["${params.n}", 2],
    ["${params.n * 2 + 1}", 5],
    ["${params.yes}", true],
    ["${params.nothing}", null],
    ["${params.list}", [1, "a"]],
    ["${ params.map }", { k: null }],
    ["${\n  nodes.load.artifact.rows // how many\n}", 7],
  ])("%j", (text, value) => {
    expect(render(text)).toStrictEqual(value);
  });
});

describe("inside other text the value is inserted as text", () => {
  test.each<[string, string]>([
    ["Hello ${params.name}!", "Hello Ada!"],
    ["${params.name}${params.n}", "Ada2"],
    [" ${params.n}", " 2"],
    ["n=${params.n / 4}, yes=${params.yes}", "n=0.5, yes=true"],
    ["list=${params.list}", 'list=[1,"a"]'],
    ["map=${params.map}", 'map={"k":null}'],
    ["${params.quote} stays", 'a "b" stays'],
  ])("%s", (text, result) => {
    expect(render(text)).toBe(result);
  });

  test("except null, which fails with advice", () => {
    expect(() => render("where day = '${params.nothing}'")).toThrow(
      new ExpressionError(
        '`params.nothing` is null, which cannot be inserted into text. Give a default, as in `x == null ? "none" : x`.',
      ),
    );
    expect(render("day ${params.nothing == null ? 'none' : params.nothing}")).toBe("day none");
  });
});

describe("the end of an expression is found after", () => {
  test.each<[string, string, unknown]>([
    ["a map", '${ {"a": 1}["a"] }', 1],
    ["maps in maps", '${ {"a": {"b": {}}} }', { a: { b: {} } }],
    ["a brace in a string", '${"}"}', "}"],
    ["an opening brace in a string", "${'{'}", "{"],
    ["`${` in a string", '${"${"}', "${"],
    ["the other quote in a string", `\${"'"}`, "'"],
    ["an escaped quote", String.raw`<${"$"}{"\"}"}>`, '<"}>'],
    ["an escaped backslash", String.raw`<${"$"}{"\\"}>`, "<\\>"],
    ["a raw string", String.raw`<${"$"}{r"\d}"}>`, "<\\d}>"],
    ["a long string", `<\${"""a"}" b"""}>`, '<a"}" b>'],
    ["an empty string", "<${''}>", "<>"],
    ["a comment", "<${1 // }\n}>", "<1>"],
  ])("%s", (_, text, value) => {
    expect(render(text)).toStrictEqual(value);
  });
});

describe("text that is not an expression is not changed", () => {
  test.each([
    ["$${params.n}", "${params.n}"],
    ["$${ and ${params.n}", "${ and 2"],
    ["${params.n}$${params.n}", "2${params.n}"],
    ["$$${params.n}", "$${params.n}"],
    ["$${$${", "${${"],
    ["$5 {a} $ {b} }", "$5 {a} $ {b} }"],
    ["$", "$"],
    ["", ""],
  ])("%s", (text, result) => {
    expect(render(text)).toBe(result);
  });

  test("text without `${` is never changed", () => {
    const text = fc
      .oneof(fc.string({ unit: "binary" }), fc.string({ unit: fc.constantFrom("$", "{", "}", "'", "\\", "a") }))
      .filter((candidate) => !candidate.includes("${"));
    fc.assert(
      fc.property(text, (candidate) => {
        expect(render(candidate)).toBe(candidate);
        expect(holdsTemplate(candidate)).toBe(false);
      }),
    );
  });

  test("any text with its `${` escaped as `$${` renders to itself", () => {
    const text = fc.string({ unit: fc.constantFrom("${", "$", "{", "}", "'", "a") });
    // A `$` right before `${` would read as one more escape.
    const candidates = text.filter((candidate) => !candidate.includes("$${"));
    fc.assert(
      fc.property(candidates, (candidate) => {
        expect(render(candidate.replaceAll("${", "$$${"))).toBe(candidate);
      }),
    );
  });
});

describe("JSON of any shape", () => {
  test("is rendered in all its strings but not in its keys", () => {
    const value = { "${params.n}": ["${params.n}", { deep: "n is ${params.n}" }], other: [1, null, false] };
    expect(render(value)).toStrictEqual({ "${params.n}": [2, { deep: "n is 2" }], other: [1, null, false] });
  });

  test("without expressions is constant and renders to itself", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        fc.pre(!JSON.stringify(value).includes("${"));
        const template = compile(value);
        expect(template.isConstant).toBe(true);
        expect(template.references.size).toBe(0);
        expect(template.render({})).toEqual(value);
      }),
    );
  });

  test("keeps a key named __proto__", () => {
    const value: unknown = JSON.parse('{"__proto__": {"a": "${params.n}"}}');
    expect(JSON.stringify(render(value))).toBe('{"__proto__":{"a":2}}');
  });

  test("renders to a new value each time", () => {
    const template = compile({ list: [{}] });
    expect(template.render({})).toEqual(template.render({}));
    expect(template.render({})).not.toBe(template.render({}));
  });
});

describe("problems", () => {
  test("are reported together, each with its path", () => {
    const value = {
      url: "http://${parms.host}/${params.}",
      headers: { "x-a": ["ok", "${"], "a.b": "${}" },
      fine: "${params.n}",
      "": { a: ["${'}"] },
    };
    expect(problems(value)).toEqual([
      {
        path: "url",
        message:
          "`parms.host` uses `parms` at column 1, which is not known here; " +
          "known are: `params`, `nodes`, `opTime`. Did you mean `params`?",
      },
      { path: "url", message: "`params.` is not valid at column 8: expected IDENTIFIER, got EOF." },
      { path: "headers.x-a[1]", message: unclosed(1) },
      { path: 'headers["a.b"]', message: "The expression is empty." },
      { path: '[""].a[0]', message: unclosed(1) },
    ]);
  });

  test("have an empty path when the value itself is the string", () => {
    expect(problems("abc ${ {} ")).toEqual([{ path: "", message: unclosed(5) }]);
  });

  test("include too deep nesting", () => {
    const value: unknown = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);
    expect(problems(value)).toEqual([{ path: "[0]".repeat(256), message: "This is nested deeper than 256 levels." }]);
  });

  test("at rendering are ExpressionErrors", () => {
    expect(() => render({ a: "${params.absent}" })).toThrow(
      new ExpressionError("`params.absent` failed: there is no `params.absent`."),
    );
  });

  function unclosed(column: number): string {
    return `The \`\${\` at column ${column} is not closed: a \`}\` is missing, or a quote is left open. Write \`$\${\` for a literal \`\${\`.`;
  }
});

describe("what a template uses", () => {
  test("is what its expressions use together", () => {
    const template = compile({ a: "${nodes.x.artifact}", b: ["-${nodes['y-z'].artifact + params.n}-"] });
    expect(template.isConstant).toBe(false);
    expect(template.references).toEqual(new Set(["nodes", "params"]));
    expect(template.membersOf("nodes")).toEqual(new Set(["x", "y-z"]));
    expect(template.membersOf("opTime")).toEqual(new Set());
  });

  test("is unknown if one of them is known only at run time", () => {
    expect(compile(["${nodes.x}", "${size(nodes)}"]).membersOf("nodes")).toBeUndefined();
  });
});

test.each([
  ["${a}", true],
  ["x ${", true],
  ["$${a} ${b}", true],
  ["$${a}", false],
  ["$a {b}", false],
])("holdsTemplate(%j) is %j", (text, expected) => {
  expect(holdsTemplate(text)).toBe(expected);
});

describe("a secret", () => {
  const secrets = new Map([["TOKEN", "open sesame"]]);
  const templateOf = (value: unknown): Template => {
    const compiled = compileTemplate(value, VARIABLES);
    if ("problems" in compiled) throw new Error(JSON.stringify(compiled.problems));
    return compiled.template;
  };

  test("is inserted where it is named, alone or in other text", () => {
    const template = templateOf({ a: "${secrets.TOKEN}", b: ["Bearer ${ secrets.TOKEN }!"], c: "$${secrets.TOKEN}" });
    expect(template.secrets).toEqual(new Set(["TOKEN"]));
    expect(template.isConstant).toBe(false);
    expect(template.references).toEqual(new Set());
    expect(template.render({ secrets })).toEqual({
      a: "open sesame",
      b: ["Bearer open sesame!"],
      c: "${secrets.TOKEN}",
    });
  });

  test("that does not exist fails, also if its name is a member of every object", () => {
    expect(() => templateOf("${secrets.constructor}").render({ secrets })).toThrow("There is no secret `constructor`.");
  });

  test.each(["'x' + secrets.TOKEN", "secrets['TOKEN']", "size(secrets)", "secrets.TOKEN.a", "secrets", "secrets.a-b"])(
    "cannot be computed with: %s",
    (source) => {
      const message = `\`${source}\` computes with a secret, which can only be inserted: \`\${secrets.NAME}\`, with a name of letters, digits and \`_\`.`;
      expect(compileTemplate(`\${${source}}`, VARIABLES)).toEqual({ problems: [{ path: "", message }] });
    },
  );

  test.each([
    ["${secret.TOKEN}", / A secret is written `\$\{secrets\.NAME\}`\.$/],
    ["${env.TOKEN}", / A secret is written `\$\{secrets\.NAME\}`\.$/],
    ["echo ${HOME}", / A plain `\$\{HOME\}` is written `\$\$\{HOME\}`\.$/],
  ])("is suggested for similar syntax: %s", (text, hint) => {
    expect(compileTemplate(text, VARIABLES)).toMatchObject({ problems: [{ message: expect.stringMatching(hint) }] });
  });
});

test("values inserted into text are encoded, the text around them is not", () => {
  const compiled = compileTemplate("/a b/${params.x}", VARIABLES, { encode: encodeURIComponent });
  if (!("template" in compiled)) throw new Error("it does not compile");
  expect(compiled.template.render({ params: { x: "1/2 3" } })).toBe("/a b/1%2F2%203");
});
