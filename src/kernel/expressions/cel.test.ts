import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileExpression, ExpressionError, functionNames, functionSet } from "./cel.ts";

const VARIABLES = ["params", "nodes", "secrets", "opTime"];

const VALUES = {
  params: {
    three: 3,
    half: 0.5,
    zero: 0,
    text: "abc",
    nothing: null,
    list: [1, 2, 3],
    mixed: [1, "a", null],
    map: { "a-b": 1, c: "d" },
  },
  nodes: { load: { artifact: { rows: 7 } }, "load-2": { artifact: null } },
  secrets: { TOKEN: "hunter2(" },
  opTime: "2024-02-28T00:00:00Z",
};

function evaluate(source: string, values: Record<string, unknown> = VALUES): unknown {
  return compileExpression(source, VARIABLES).evaluate(values);
}

function compile(source: string): () => unknown {
  return () => compileExpression(source, VARIABLES);
}

describe("numbers", () => {
  test.each<[string, unknown]>([
    ["params.three * 2", 6],
    ["2 * params.three", 6],
    ["params.three + 1 == 4", true],
    ["params.three - 1", 2],
    ["1 - params.half", 0.5],
    ["params.three / 2", 1.5],
    ["3 / params.half", 6],
    ["params.three / params.half", 6],
    ["params.three % 2", 1],
    ["7 % params.three", 1],
    ["params.three % params.half", 0],
    ["-params.three", -3],
    ["params.three > 2 && 2 < params.three", true],
    ["params.three == 3 && 3 == params.three", true],
    ["params.three != 3", false],
    ["params.three in [1, 2, 3]", true],
    ["2 in params.list", true],
    ["params.list == [1, 2, 3]", true],
    ["params.map == {'a-b': 1, 'c': 'd'}", true],
    ["params.list[params.three - 1]", 3],
    ["params.list.map(n, n * 2 + 1)", [3, 5, 7]],
    ["size(params.list) * params.half", 1.5],
    ["1.5 + 1", 2.5],
    ["1 == 1.0", true],
    ["2 != 2.5", true],
  ])("from JSON and of literals mix: %s", (source, result) => {
    expect(evaluate(source)).toEqual(result);
  });

  test("of literals alone follow CEL, where whole numbers divide to whole numbers", () => {
    expect(evaluate("3 / 2")).toBe(1);
    expect(evaluate("3.0 / 2.0")).toBe(1.5);
  });

  test("compute as JavaScript does, whatever the numbers", () => {
    const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e100, max: 1e100 }));
    const mixed = compileExpression(
      "[params.a + params.b, params.a - 2, 3 * params.b, params.a < params.b, params.a == params.b]",
      VARIABLES,
    );
    fc.assert(
      fc.property(number, number, (a, b) => {
        expect(mixed.evaluate({ params: { a, b } })).toEqual([a + b, a - 2, 3 * b, a < b, a === b]);
      }),
    );
  });
});

describe("results are plain JSON", () => {
  test.each<[string, unknown]>([
    ["[1, 'a', null, {'k': 2.5}]", [1, "a", null, { k: 2.5 }]],
    ["{'a': {'b': size('abc')}}", { a: { b: 3 } }],
    ["5u", 5],
    ["timestamp(opTime) + duration('48h')", "2024-03-01T00:00:00.000Z"],
    ["nodes['load-2'].artifact", null],
    ["'a' in params.mixed", true],
    ["'a' == params.three", false],
    ["params.nothing == null", true],
    ["has(params.absent)", false],
    ["params.list.filter(n, n > 1).size()", 2],
    ["cel.bind(n, params.three, n * n)", 9],
    ["params.text.matches('^a.c$')", true],
  ])("%s", (source, result) => {
    expect(evaluate(source)).toStrictEqual(result);
  });

  test.each([
    ["9007199254740992", "its result is a whole number beyond 2^53, which JSON cannot hold exactly"],
    ["1.0 / 0.0", "its result is not a finite number (divided by zero?)"],
    ["[duration('1h')]", "its result contains something that is not JSON, such as a duration, bytes or a type"],
    ["b'abc'", "its result contains something that is not JSON, such as a duration, bytes or a type"],
    ["type(1)", "its result contains something that is not JSON, such as a duration, bytes or a type"],
  ])("or an error: %s", (source, reason) => {
    expect(() => evaluate(source)).toThrow(new ExpressionError(`\`${source}\` failed: ${reason}.`));
  });

  test("that share nothing with the input, and every JSON value passes unchanged", () => {
    const expression = compileExpression("params", VARIABLES);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(expression.evaluate({ params: value })).toEqual(value);
      }),
    );
    const list: unknown[] = [];
    expect(expression.evaluate({ params: list })).not.toBe(list);
  });
});

describe("a failure names the expression and what was wrong", () => {
  test.each([
    ["params.absent * 2", "there is no `params.absent`"],
    ["params.absent.deeper", "there is no `params.absent`"],
    ["nodes['load-2'].artifact.rows > 1", "there is no `nodes['load-2'].artifact.rows`"],
    ["params.list[9]", "there is no `params.list[9]`"],
    ["params.three / params.zero > 1", "division by zero"],
    ["params.three / 0", "division by zero"],
    ["1 / 0", "division by zero"],
    ["1 % params.zero", "division by zero"],
    ["params.text + params.three", "no such overload: string + double"],
    ["params.list < 3", "no such overload: list<double> < int"],
    ["params.three && true", "logical operator requires bool operands, got 'double'"],
    ["timestamp(opTime).getHours('Nowhere')", "a function was given a value that it cannot take"],
    ["9223372036854775807 + 1", "a whole number is beyond 64 bits"],
  ])("%s", (source, reason) => {
    expect(() => evaluate(source)).toThrow(new ExpressionError(`\`${source}\` failed: ${reason}.`));
  });

  test("but never a value, which may be a secret", () => {
    for (const source of [
      "bool(secrets.TOKEN)",
      "duration(secrets.TOKEN)",
      "int(secrets.TOKEN)",
      "timestamp(secrets.TOKEN)",
      "'a'.matches(secrets.TOKEN)",
      "params[secrets.TOKEN]",
      "bytes(secrets.TOKEN).json()",
      "timestamp(opTime).getHours(secrets.TOKEN)",
    ]) {
      expect(() => evaluate(source)).toThrow(ExpressionError);
      expect(() => evaluate(source)).not.toThrow(/hunter2/);
    }
  });

  test("also when a variable has no value", () => {
    expect(() => evaluate("params.a", {})).toThrow(new ExpressionError("`params.a` failed: there is no `params`."));
  });
});

describe("what cannot be compiled is refused in one sentence", () => {
  test.each([
    ["", "The expression is empty."],
    [" \n", "The expression is empty."],
    ["params.a +", "`params.a +` is not valid at column 11: unexpected token: EOF."],
    ["params.a ==\n  'b", "`params.a == 'b` is not valid at line 2, column 3: unterminated string."],
    ["'a' + 1", "`'a' + 1` is not valid at column 1: no such overload: string + int."],
    ["size()", "`size()` is not valid at column 1: found no matching overload for 'size()'."],
    [
      "true ? 1 : 'a'",
      "`true ? 1 : 'a'` is not valid at column 1: ternary branches must have the same type, got 'int' and 'string'; " +
        "dyn(...) around one of them allows it.",
    ],
  ])("%j", (source, sentence) => {
    expect(compile(source)).toThrow(new ExpressionError(sentence));
  });

  test.each(["1 + sice(params.list)", "1 + params.list.sice()"])(
    "%s: the functions that there are, and the nearest",
    (source) => {
      const names = [...functionNames(functionSet({}))].map((name) => `\`${name}\``).join(", ");
      const sentence = `\`${source}\` calls \`sice\` at column 5, which is not a function; known are: ${names}. Did you mean \`size\`?`;
      expect(compile(source)).toThrow(new ExpressionError(sentence));
    },
  );

  test("and has the unknown name in its own field", () => {
    const sentence =
      "`1 + parms.a` uses `parms` at column 5, which is not known here; " +
      "known are: `params`, `nodes`, `secrets`, `opTime`. Did you mean `params`?";
    expect(compile("1 + parms.a")).toThrow(new ExpressionError(sentence, "parms"));
  });

  test("with the source cut short when it is long", () => {
    const source = "params.a + ".repeat(20);
    expect(compile(source)).toThrow(/^`(params\.a \+ ){7}\.\.\.` is not valid at column 221: unexpected token: EOF\.$/);
  });

  test("when no variable is known at all", () => {
    expect(() => compileExpression("a", [])).toThrow("known are: none.");
  });

  test("when a name is used outside the macro that binds it", () => {
    expect(compile("params.list.all(n, n > 1) && n > 1")).toThrow("uses `n` at column 30");
    expect(compile("cel.bind(n, n, 1)")).toThrow("uses `n` at column 13");
  });

  test("whatever the text: the only error is an ExpressionError", () => {
    const word = fc.constantFrom(
      ..."params . [ ] ( ) { } : ? , ' \" + - * / % ! && in map n 1 2.5 u null r\\".split(" "),
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(word).map((words) => words.join(" ")),
    );
    fc.assert(
      fc.property(text, (source) => {
        try {
          evaluate(source);
        } catch (error) {
          expect(error).toBeInstanceOf(ExpressionError);
          expect((error as Error).message).not.toContain("\n");
        }
      }),
    );
  });
});

describe("limits", () => {
  test("on the length of the source", () => {
    const longest = `'${"a".repeat(4_094)}'`;
    expect(evaluate(longest)).toHaveLength(4_094);
    expect(compile(` ${longest}`)).toThrow(/^An expression has at most 4096 characters; `'a+\.\.\.` has 4097\.$/);
  });

  test.each([
    ["parentheses", `${"(".repeat(2_000)}1${")".repeat(2_000)}`],
    ["signs", `${"!".repeat(4_000)}true`],
  ])("on nesting of %s", (_, source) => {
    expect(compile(source)).toThrow(ExpressionError);
  });

  test.each([
    ["a pattern that backtracks without end", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a+)+b')"],
    ["loops in loops", `${"params.list.all(a, ".repeat(30)}true${")".repeat(30)}`],
  ])("on the time taken by %s", (_, source) => {
    expect(() => evaluate(source)).toThrow("failed: it took longer than 250 ms.");
  });

  test("on a list that doubles, which ends by time or, on a fast machine, by length", () => {
    const source = `[[1]]${".map(a, a + a)".repeat(40)}.size()`;
    expect(() => evaluate(source)).toThrow(
      /failed: it (took longer than 250 ms|is nested too deeply, or grows too large)/,
    );
  });

  test("on the size of the result", () => {
    expect(() => evaluate(`['a']${".map(a, a + a)".repeat(25)}`)).toThrow("larger than 16000000 characters");
    expect(() => evaluate(`['a']${".map(a, a + a)".repeat(35)}`)).toThrow("nested too deeply, or grows too large");
  });
});

describe("prototypes cannot be reached", () => {
  test.each([
    "params.__proto__",
    "params['constructor']",
    "''.constructor",
    "opTime.prototype",
    "{'__proto__': params}",
  ])("%s is refused", (source) => {
    expect(compile(source)).toThrow(/uses `\w+` at column \d+, which is not allowed as a name\.$/);
  });

  test.each(["params['__pro' + 'to__']", "params['to' + 'String']", "opTime['len' + 'gth']", "params.toString"])(
    "%s finds nothing",
    (source) => {
      expect(() => evaluate(source)).toThrow("failed: there is no `");
    },
  );

  test("members that the library finds on a timestamp are never returned", () => {
    const proto = "['__pro' + 'to__']";
    expect(evaluate(`timestamp(opTime)${proto}${proto}`)).not.toBe(Object.prototype);
    expect(() => evaluate(`timestamp(opTime)${proto}['get' + 'Time']`)).toThrow("unsupported type: function");
  });

  test("a key named __proto__ in the data stays a key", () => {
    const result = evaluate("params", { params: JSON.parse('{"__proto__": {"a": 1}}') });
    expect(JSON.stringify(result)).toBe('{"__proto__":{"a":1}}');
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  });
});

describe("what an expression uses", () => {
  function usage(source: string) {
    const { references, membersOf } = compileExpression(source, VARIABLES);
    const members = membersOf("nodes");
    return { references: [...references], nodes: members && [...members] };
  }

  test.each<[string, string[]]>([
    ["params.a", []],
    ["nodes.a.artifact.rows[0].n > 0 || nodes['b-c'].status == 'SUCCESS'", ["a.artifact.rows", "b-c.status"]],
    ["nodes.a.artifact.artifacts['deep one'].n", ["a.artifact.artifacts.deep one.n"]],
    ["nodes.a.artifact.items.map(x, x.n + nodes.b.artifact)", ["a.artifact.items", "b.artifact"]],
    ["nodes.a.artifact[params.which].n", ["a.artifact"]],
    ["has(nodes.a.artifact.artifacts.b)", ["a.artifact.artifacts.b"]],
    ["size(nodes)", [""]],
    ["nodes[params.which].artifact", [""]],
    ["cel.bind(n, nodes.a.artifact, n.rows)", ["a.artifact"]],
    ["params.list.map(nodes, nodes.a.b)", []],
    ["(nodes.a.artifact).rows", ["a.artifact.rows"]],
  ])("%s reads these paths", (source, paths) => {
    const read = compileExpression(source, VARIABLES).pathsOf("nodes");
    expect(read.map((path) => path.join("."))).toEqual(paths);
  });

  test.each<[string, string[], string[] | undefined]>([
    ["1 + 1", [], []],
    ["params.a", ["params"], []],
    ["nodes.a.artifact.rows > 0 || nodes['b-c'].artifact == nodes.a.status", ["nodes"], ["a", "b-c"]],
    ["has(nodes.a) && size(nodes.b.artifact) > 0", ["nodes"], ["a", "b"]],
    ["{'x': [nodes.a, params[nodes.b.artifact]]}", ["nodes", "params"], ["a", "b"]],
    ["!nodes.a.artifact.ok ? -nodes.b.artifact : nodes.c.artifact", ["nodes"], ["a", "b", "c"]],
    ["nodes.a.artifact.list.map(x, x + nodes.b.artifact)", ["nodes"], ["a", "b"]],
    ["size(nodes)", ["nodes"], undefined],
    ["nodes[params.which]", ["nodes", "params"], undefined],
    ["nodes.all(id, nodes[id].status == 'SUCCESS')", ["nodes"], undefined],
    ["params.list.map(nodes, nodes.a)", ["params"], []],
    ["params.list.map(x, params.list.map(nodes, nodes.a + x))", ["params"], []],
    ["cel.bind(nodes, nodes.a, nodes.b)", ["nodes"], ["a"]],
    ["int(opTime) == 3 && type(params) == map", ["opTime", "params"], []],
  ])("%s", (source, references, nodes) => {
    expect(usage(source)).toEqual({ references, nodes });
  });
});

describe("the functions of an expression", () => {
  test.each([
    ["1 + 2 * 3", []],
    ["has(params.a) && size(params.a) > 0", ["has", "size"]],
    ["params.list.filter(x, x.startsWith('a')).map(x, string(x))", ["filter", "map", "startsWith", "string"]],
    ["cel.bind(x, params.a, x)", ["bind"]],
  ])("%s calls these", (source, calls) => {
    expect([...compileExpression(source, VARIABLES).calls].sort()).toEqual(calls);
  });

  const functions = functionSet({
    "twice(dyn): dyn": (value) => {
      if (typeof value !== "string") throw new ExpressionError("twice() takes text");
      return value + value;
    },
  });

  test("may be more than those of CEL", () => {
    expect(compileExpression("twice(params.a)", VARIABLES, functions).evaluate({ params: { a: "xy" } })).toBe("xyxy");
    expect(functionNames(functions)).toContain("twice");
    expect(functionNames(functions)).toContain("startsWith");
  });

  test("are not known to expressions of another kind", () => {
    expect(() => compileExpression("twice(params.a)", VARIABLES)).toThrow("twice");
  });

  test("are listed as far as they should be used", () => {
    const some = functionSet({ "twice(dyn): dyn": (value) => value }, ["twice"]);
    expect(() => compileExpression("other(params.a)", VARIABLES, some)).toThrow(/known are: `twice`\.$/);
    expect(compileExpression("size(params.a)", VARIABLES, some).calls).toContain("size");
  });

  test("say why they failed", () => {
    const expression = compileExpression("twice(params.a)", VARIABLES, functions);
    expect(() => expression.evaluate({ params: { a: 1 } })).toThrow("`twice(params.a)` failed: twice() takes text.");
  });
});
