import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { OperatorError } from "../../kernel/errors.ts";
import { type NodeType, nodeType } from "./node-type.ts";
import { noop } from "./noop.ts";
import { createRegistry, type RegisteredType } from "./registry.ts";
import { shell } from "./shell.ts";
import { sleep } from "./sleep.ts";

const call = nodeType({
  type: "call",
  summary: "",
  cfg: Type.Object(
    {
      url: Type.String({ minLength: 1 }),
      times: Type.Integer({ minimum: 1, maximum: 10, default: 3 }),
      headers: Type.Optional(Type.Record(Type.String(), Type.String())),
      rules: Type.Optional(
        Type.Array(Type.Object({ name: Type.String({ pattern: "^[a-z]+$" }) }, { additionalProperties: false })),
      ),
      values: Type.Optional(Type.Union([Type.Array(Type.Number(), { minItems: 1 }), Type.Boolean()])),
    },
    { additionalProperties: false },
  ),
  execute: async () => ({}),
});
const registry = createRegistry([noop, sleep, call]);
const check = (cfg: unknown) => registry.check("call", cfg, { templates: false });
const checkTemplates = (cfg: unknown) => registry.check("call", cfg, { templates: true });

function ofSchema(cfg: object, file?: string): RegisteredType {
  const made: NodeType = { type: "made", summary: "", cfg, execute: async () => ({}) };
  return file === undefined ? made : { ...made, file };
}

describe("a registry", () => {
  test("finds its types by name", () => {
    expect(registry.names()).toEqual(["noop", "sleep", "call"]);
    expect(registry.get("sleep")).toBe(sleep);
    expect(registry.get("constructor")).toBeUndefined();
  });

  test("refuses two types of one name and names their files", () => {
    const own = { ...ofSchema({ type: "object" }, "./own.mjs"), type: "noop" };
    expect(() => createRegistry([noop, own])).toThrow(
      new OperatorError(
        "There are two node types `noop`, once built in and once in ./own.mjs. Give one of them another name.",
        2,
      ),
    );
  });

  test("accepts types that another module adds later, and names a built-in duplicate first", () => {
    const own = { ...ofSchema({ type: "object" }, "./own.mjs"), type: "sleep" };
    const later = createRegistry([noop, own]);
    later.add([call]);
    expect(later.names()).toEqual(["noop", "sleep", "call"]);
    expect(later.check("call", {}, { templates: false })).toHaveLength(1);
    expect(() => later.add([sleep])).toThrow("`sleep`, once built in and once in ./own.mjs.");
  });

  test.each([
    ["a misspelt keyword", { type: "object", propertys: {} }],
    ["an unknown type", { type: "object", properties: { a: { type: "strin" } } }],
    ["a default that is never applied", { type: "object", anyOf: [{ properties: { a: { default: 1 } } }] }],
  ])("refuses a type whose schema has %s", (_, cfg) => {
    expect(() => createRegistry([ofSchema(cfg, "./own.mjs")])).toThrow(
      /^The node type `made` \(in \.\/own\.mjs\) has an invalid `cfg` schema: /,
    );
  });
});

describe("the check of a cfg", () => {
  test("accepts a valid one, also without fields that have a default", () => {
    expect(check({ url: "x", headers: { a: "b" }, rules: [{ name: "r" }], values: [1] })).toEqual([]);
    expect(registry.check("noop", undefined, { templates: false })).toEqual([]);
    expect(registry.check("noop", null, { templates: false })).toEqual([]);
  });

  test("reports all problems at once, one sentence for each path", () => {
    const cfg = { ulr: "x", times: 11, headers: { a: 1 }, rules: [{ name: "r" }, { name: 2 }], values: ["x"] };
    expect(check(cfg)).toEqual([
      { path: "url", message: "`cfg.url` is missing. Accepted: text of 1 or more characters." },
      { path: "ulr", message: "`cfg.ulr` is not a field of `call`. Did you mean `url`?" },
      { path: "times", message: "`cfg.times` is 11. Accepted: a whole number from 1 to 10." },
      { path: "headers.a", message: "`cfg.headers.a` is 1. Accepted: text." },
      { path: "rules[1].name", message: "`cfg.rules[1].name` is 2. Accepted: text." },
      {
        path: "values",
        message: "`cfg.values` is a list. Accepted: a list of 1 or more items, each a number or true or false.",
      },
    ]);
  });

  test("lists the known fields if none is similar to the unknown one", () => {
    expect(check({ url: "x", banana: 1 })).toEqual([
      {
        path: "banana",
        message: "`cfg.banana` is not a field of `call`. Known here: url, times, headers, rules, values.",
      },
    ]);
    expect(registry.check("noop", { a: 1 }, { templates: false })[0]?.message).toContain("Known here: nothing.");
  });

  test.each([
    [[], "`cfg` is a list. Accepted: settings url, times, headers, rules, values."],
    ["text", "`cfg` is text. Accepted: settings url, times, headers, rules, values."],
    [{ url: "x", headers: 1 }, "`cfg.headers` is 1. Accepted: named values."],
    [{ url: "x", rules: [{ name: "A" }] }, '`cfg.rules[0].name` must match pattern "^[a-z]+$".'],
  ])("says what is accepted instead of %j", (cfg, message) => {
    expect(check(cfg).map((problem) => problem.message)).toEqual([message]);
  });

  test("does so for a plain JSON Schema too", () => {
    const plain = ofSchema({ type: "object", properties: { a: { type: ["integer", "null"], minimum: 1 } } });
    expect(createRegistry([plain]).check("made", { a: "x" }, { templates: false })).toEqual([
      { path: "a", message: "`cfg.a` is text. Accepted: a whole number of 1 or more or null." },
    ]);
  });

  test("reports a property name that is not allowed", () => {
    const names = ofSchema({ type: "object", propertyNames: { pattern: "^[A-Z]+$" } });
    expect(createRegistry([names]).check("made", { a: 1 }, { templates: false })).toEqual([
      { path: "a", message: '`cfg.a` must match pattern "^[A-Z]+$".' },
    ]);
    expect(registry.check("sleep", { ms: 1, "a/b": 1 }, { templates: false })[0]?.path).toBe("a/b");
  });

  test("does not repeat text, which may be a secret", () => {
    expect(JSON.stringify(check({ url: "x", times: "hunter2" }))).not.toContain("hunter2");
  });

  test("stays short for any input", () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`${index}${"x".repeat(500)}`, 1]));
    const problems = check({ url: "x", ...many });
    expect(problems).toHaveLength(20);
    expect(problems.every(({ message }) => message.length < 200)).toBe(true);
  });

  test("suggests a similar type for an unknown one", () => {
    const message = "There is no node type `slep` here. Did you mean `sleep`?";
    expect(registry.check("slep", {}, { templates: true })).toEqual([{ path: "", message }]);
    expect(registry.complete("slep", {})).toEqual({ problems: [{ path: "", message }] });
  });

  test("checks the names of a command's environment variables", () => {
    const problems = createRegistry([shell]).check(
      "shell",
      { command: "x", env: { "A-B": "1" } },
      { templates: false },
    );
    expect(problems.map(({ path }) => path)).toEqual(["env.A-B"]);
  });
});

describe("templates in a cfg", () => {
  const cfg = { url: "${params.url}", times: "${params.times}", headers: { a: "${x}" }, values: "${nodes.a.artifact}" };

  test("pass the check until they are rendered", () => {
    expect(checkTemplates(cfg)).toEqual([]);
    expect(check(cfg).map(({ path }) => path)).toEqual(["times", "values"]);
  });

  test("pass any alternative of a union, also inside a value", () => {
    expect(checkTemplates({ url: "x", values: ["${params.n}"] })).toEqual([]);
    expect(checkTemplates({ url: "x", values: ["n"] })).toHaveLength(1);
  });

  test("do not hide other problems", () => {
    const problems = checkTemplates({ ...cfg, url: undefined, tmes: 1, headers: { a: "${x}", b: 2 } });
    expect(problems.map(({ path }) => path).sort()).toEqual(["headers.b", "tmes", "url"]);
  });
});

describe("completing a cfg", () => {
  test("adds defaults to a copy", () => {
    const given = Object.freeze({ url: "x" });
    expect(registry.complete("call", given)).toEqual({ cfg: { url: "x", times: 3 } });
    expect(given).toEqual({ url: "x" });
  });

  test("does not accept templates", () => {
    expect(registry.complete("sleep", { ms: "${params.ms}" })).toEqual({
      problems: [{ path: "ms", message: "`cfg.ms` is text. Accepted: a whole number from 0 to 604800000." }],
    });
  });
});
