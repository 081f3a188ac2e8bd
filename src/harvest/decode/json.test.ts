import { describe, expect, test } from "vitest";
import { DecodeError } from "./decode-error.ts";
import { decodeJson, parseRecord } from "./json.ts";
import { jsonText } from "./numbers.ts";

const decode = (body: string | Buffer, contentType = "application/json") =>
  decodeJson(Buffer.from(body as string), contentType);

describe("the characters of a body", () => {
  const value = { title: "Köln" };
  const json = JSON.stringify(value);

  test.each([
    ["UTF-8", Buffer.from(json), undefined],
    ["UTF-8 with a mark", Buffer.from(`\uFEFF${json}`), undefined],
    ["UTF-8, although the header says otherwise", Buffer.from(json), "application/json; charset=ISO-8859-1"],
    ["Latin-1, as the header says", Buffer.from(json, "latin1"), 'application/json; charset="iso-8859-1"'],
    ["UTF-16 with a mark", Buffer.from(`\uFEFF${json}`, "utf16le"), undefined],
    ["UTF-16 without a mark", Buffer.from(json, "utf16le"), undefined],
    ["UTF-16, big end first", Buffer.from(json, "utf16le").swap16(), undefined],
  ])("are read as %s", (_, body, contentType) => {
    expect(decodeJson(body, contentType)).toEqual({ document: value, warnings: [] });
  });

  test.each(["application/json", "application/json; charset=utf-8", "application/json; charset=unknown"])(
    "are replaced where they are not UTF-8 and %s names no other encoding, with a warning",
    (contentType) => {
      const { document, warnings } = decodeJson(Buffer.from(json, "latin1"), contentType);
      expect(document).toEqual({ title: "K\uFFFDln" });
      expect(warnings).toHaveLength(1);
    },
  );
});

describe("a raw line break inside of a string", () => {
  test("is tolerated, with a warning", () => {
    expect(decode('{"ERROR": "Exception:\n\t\'retstart\' \\"x\\" ",\n "n": 1}')).toEqual({
      document: { ERROR: "Exception:\n\t'retstart' \"x\" ", n: 1 },
      warnings: ["line breaks inside of strings were escaped"],
    });
  });

  test("does not make JSON of what is none", () => {
    expect(() => decode('{"a": "b\n"')).toThrow(DecodeError);
  });
});

describe("a body is refused", () => {
  test.each([
    ["HTML", "<html></html>"],
    ["nothing", ""],
    ["half of a document", '{"a": [1, 2'],
    ["two documents", "{} {}"],
  ])("that is %s", (_, body) => {
    expect(() => decode(body)).toThrow(DecodeError);
  });

  test("that is nested eight million levels deep", () => {
    expect(() => decode("[".repeat(8_000_000))).toThrow("The body is nested more than 256 levels deep.");
  });

  test("that has more values than a page can have", () => {
    expect(() => decode(`[${"1,".repeat(5_000_001)}1]`)).toThrow("has more than 5000000 values");
  });

  test("without quoting it", () => {
    expect(() => decode('{"key": secret}')).toThrow(/^The body is not JSON/);
    expect(() => decode('{"key": secret}')).not.toThrow(/secret/);
  });
});

describe("a whole number beyond 2^53", () => {
  const json = '{"id":9007199254740993,"list":[-123456789012345678901234567890,1e400,1.5],"text":": 9007199254740993"}';

  test("is stored as it was sent", () => {
    expect(jsonText(decode(json).document)).toBe(json);
    expect(jsonText(parseRecord(json))).toBe(json);
  });

  test("cannot be forged by a text", () => {
    const forged = { a: "\0#1", b: '"\\u0000#2"', c: "\\u0000#3" };
    const { document } = decode(JSON.stringify(forged));
    expect(JSON.parse(jsonText(document))).toEqual({ ...forged, a: "\uFFFD#1" });
  });

  test("is not made of digits with a leading zero, which are no JSON", () => {
    expect(() => decode('{"a": 00000000000000000001}')).toThrow(DecodeError);
  });
});

test("text that Postgres cannot store is replaced", () => {
  const { document } = decode('{"a":"\\u0000 \\\\u0000 \\ud800 \\\\ud800 \\ud83d\\ude00"}');
  expect(JSON.parse(jsonText(document))).toEqual({ a: "\uFFFD \\u0000 \uFFFD \\ud800 😀" });
});

test("a member called __proto__ stays a member", () => {
  const { document } = decode('{"__proto__": {"polluted": true}}');
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  expect(jsonText(document)).toBe('{"__proto__":{"polluted":true}}');
});
