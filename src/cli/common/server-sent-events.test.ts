/** The format of server-sent events, whole and split at every possible place. */
import { describe, expect, test } from "vitest";
import { createEventReader } from "./server-sent-events.ts";

const read = (...pieces: string[]) => {
  const reader = createEventReader();
  return pieces.flatMap((piece) => reader.push(piece));
};

describe("an event", () => {
  test("has a name and data, and ends with an empty line", () => {
    expect(read('event: run\ndata: {"a":1}\n\n')).toEqual([{ event: "run", data: '{"a":1}' }]);
    expect(read("event: run\ndata: 1\n")).toEqual([]);
  });

  test("without a name is a message, and does not inherit the name of the last one", () => {
    expect(read("event: run\ndata: 1\n\ndata: 2\n\n")).toEqual([
      { event: "run", data: "1" },
      { event: "message", data: "2" },
    ]);
  });

  test("of several lines keeps them apart", () => {
    expect(read("data: a\ndata\ndata:  b\ndata:c\n\n")).toEqual([{ event: "message", data: "a\n\n b\nc" }]);
  });

  test("without data is ignored, and so is its name", () => {
    expect(read("event: run\n\ndata: 1\n\n\n\n")).toEqual([{ event: "message", data: "1" }]);
  });
});

test("comments, unknown fields and a byte order mark are ignored", () => {
  expect(read("\ufeff: hello\n:\nfoo: bar\ndata: 1\n: keep-alive\n\n:\n\n")).toEqual([{ event: "message", data: "1" }]);
});

test("text split anywhere, with any kind of line end, gives the same events", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = [": hi", "event: nodes", "id: 7", "data: [1,", "data: 2]", "", "retry: 50", "data: ä🚚", "", ""].join(
      end,
    );
    const whole = [
      { event: "nodes", data: "[1,\n2]" },
      { event: "message", data: "ä🚚" },
    ];
    expect(read(...text.split(""))).toEqual(whole);
    for (let cut = 0; cut <= text.length; cut += 1) {
      expect(read(text.slice(0, cut), text.slice(cut)), `${JSON.stringify(end)}, cut at ${cut}`).toEqual(whole);
    }
  }
});

test("the last id is that of the last complete event with one", () => {
  const reader = createEventReader();
  reader.push("id: 1\ndata: a\n\n");
  expect(reader.lastId()).toBe("1");
  reader.push("data: b\n\nid: 2\ndata: c\n");
  expect(reader.lastId()).toBe("1");
  reader.push("\nid: a\0b\ndata: d\n\n");
  expect(reader.lastId()).toBe("2");
  reader.push("id\ndata: e\n\n");
  expect(reader.lastId()).toBe("");
});

test("the server may set the retry delay; a value that is not a number is ignored", () => {
  const reader = createEventReader();
  expect(reader.retryMs()).toBeUndefined();
  reader.push("retry: 1500\n");
  reader.push("retry: soon\n");
  expect(reader.retryMs()).toBe(1500);
});

test("an event in many chunks is read in linear time", () => {
  const piece = "x".repeat(16_384);
  const reader = createEventReader();
  reader.push("data: ");
  for (let count = 0; count < 1_000; count += 1) reader.push(piece);
  const [event] = reader.push("\n\n");
  expect(event?.data).toHaveLength(16_384_000);
});

test("an endless event is refused before it fills the memory", () => {
  const reader = createEventReader();
  const piece = "x".repeat(16 * 1024 * 1024);
  const feed = () => {
    for (let count = 0; count < 10; count += 1) reader.push(piece);
  };
  expect(feed).toThrow("The server sends an event that is too long.");
});
