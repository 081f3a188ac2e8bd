/** Defaults of schemas, wherever they stand. */
import { Ajv } from "ajv";
import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { compileWithDefaults } from "./defaults.ts";

const closed = { additionalProperties: false };
const Grain = Type.Object({ grain: Type.String(), offset: Type.Optional(Type.Integer({ default: 0 })) }, closed);

function completed(schema: object, value: unknown): unknown {
  const validate = compileWithDefaults(new Ajv({ useDefaults: true, strict: false }), schema);
  return validate(value) ? value : validate.errors?.map(({ keyword }) => keyword);
}

describe("a default is applied", () => {
  const nullable = Type.Union([Grain, Type.Null()]);
  const complete = { grain: "day", offset: 0 };

  test.each<[string, object, unknown, unknown]>([
    ["in an alternative", Type.Object({ a: nullable }), { a: { grain: "day" } }, { a: complete }],
    ["in an alternative that is the whole", nullable, { grain: "day" }, complete],
    ["in a list of alternatives", Type.Array(nullable), [{ grain: "day" }, null], [complete, null]],
    ["in a map of alternatives", Type.Record(Type.String(), nullable), { x: { grain: "day" } }, { x: complete }],
    [
      "in an alternative of an alternative",
      Type.Union([Type.Object({ a: nullable }, closed), Type.String()]),
      { a: { grain: "day" } },
      { a: complete },
    ],
    [
      "in an alternative of a default",
      { type: "object", properties: { a: { ...nullable, default: { grain: "day" } } } },
      {},
      { a: complete },
    ],
    [
      "of a field that is required, too",
      Type.Union([Type.Object({ kind: Type.Literal("a"), n: Type.Integer({ default: 3 }) }), Type.Null()]),
      { kind: "a" },
      { kind: "a", n: 3 },
    ],
    [
      "through oneOf, allOf and definitions",
      {
        $defs: { half: { type: "object", properties: { n: { default: 1 } }, required: ["n"] } },
        allOf: [
          { oneOf: [{ $ref: "#/$defs/half" }, { type: "null" }, { properties: { m: { default: 2 } }, type: "array" }] },
        ],
      },
      {},
      { n: 1 },
    ],
  ])("%s", (_where, schema, value, expected) => {
    expect(completed(schema, value)).toEqual(expected);
  });

  test("by the member that accepts the value, and by no other", () => {
    const schema = Type.Union([
      Type.Object({ kind: Type.Literal("a"), ofA: Type.Optional(Type.Integer({ default: 1 })) }, closed),
      Type.Object({ kind: Type.Literal("b"), ofB: Type.Optional(Type.Integer({ default: 2 })) }, closed),
    ]);
    expect(completed(schema, { kind: "b" })).toEqual({ kind: "b", ofB: 2 });
  });
});

test("a value that no member accepts is refused as it was sent", () => {
  const value = { a: { offset: "x" } };
  expect(completed(Type.Object({ a: Type.Union([Grain, Type.Null()]) }), value)).toContain("anyOf");
  expect(value).toEqual({ a: { offset: "x" } });
});

test("a value that is given is kept", () => {
  expect(completed(Type.Union([Grain, Type.Null()]), { grain: "day", offset: -1 })).toEqual({
    grain: "day",
    offset: -1,
  });
});
