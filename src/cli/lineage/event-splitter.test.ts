/** Splitting a text into events. */
import { describe, expect, test } from "vitest";
import { createEventSplitter } from "./event-splitter.ts";

/** In chunks of `size` characters. */
function split(text: string, size: number) {
  const splitter = createEventSplitter("events.json");
  const pieces = text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
  const events = pieces.flatMap((piece) => splitter.push(piece));
  splitter.end();
  return events;
}

const ODD = `{"b": {"c": [1, {"d": "} ] \\\\\\" {"}]},  "a":9007199254740993}`;

describe.each([1, 3, 7, 1_000])("in chunks of %d", (size) => {
  test("one event, an array and JSON lines give the unchanged events", () => {
    const two = `{"x":\n1}`;
    expect(split(`\n${ODD}\n`, size)).toEqual([{ text: ODD, line: 2 }]);
    expect(split(`[${ODD},\n${two} , ${ODD}]`, size).map(({ line }) => line)).toEqual([1, 2, 3]);
    expect(split(`\ufeff${ODD}\r\n${two}\n\n${ODD}`, size)).toEqual([
      { text: ODD, line: 1 },
      { text: two, line: 2 },
      { text: ODD, line: 5 },
    ]);
  });

  test("an empty text has no events", () => {
    expect(split(" \n", size)).toEqual([]);
    expect(split("[ ]", size)).toEqual([]);
  });

  test.each([
    ["x", "events.json:1: an event must begin here with `{`, not `x`."],
    [`{"a":1}\n,{"a":1}`, "events.json:2: an event must begin here with `{`, not `,`."],
    [`[1]`, "events.json:1: an event must begin here with `{`, not `1`."],
    [`{"a":1}\n{"b":{}\n`, "events.json:2: the event that begins here has no end. Is a brace missing?"],
    [`[{"a":1},\n`, "events.json:2: the array has no end. Is the file complete?"],
  ])("%j is refused with the place", (text, sentence) => {
    expect(() => split(text, size)).toThrow(sentence);
  });
});

test("an endless event does not fill the memory", () => {
  const splitter = createEventSplitter("events.json");
  splitter.push('{"a":"');
  const mebibyte = "x".repeat(1_048_576);
  expect(() => {
    for (let i = 0; i < 100; i += 1) splitter.push(mebibyte);
  }).toThrow("no end within 64 MiB");
});
