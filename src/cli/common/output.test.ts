/** Tables, and the escaping of text from outside. */
import { expect, test } from "vitest";
import { clip, displayWidth, printable, table, toSeconds } from "./output.ts";

test("columns are aligned, also with wide characters, and no line ends in spaces", () => {
  const rows = [
    ["orders.csv", 12, "done"],
    ["订单.csv", 3, ""],
    ["cafe\u0301.csv", 4, "new"],
  ];
  expect(table(["FILE", "SHARDS", "STATUS"], rows)).toBe(
    ["FILE        SHARDS  STATUS", "orders.csv  12      done", "订单.csv    3", "cafe\u0301.csv    4       new"].join(
      "\n",
    ),
  );
});

test("a column without any content is left out", () => {
  expect(table(["FILE", "WORKER", "SHARD"], [["a", undefined, 1]])).toBe("FILE  SHARD\na     1");
});

test("control characters and bidirectional marks are escaped", () => {
  expect(printable("a\u001b[31mb\nc\u009bd\u202ee")).toBe("a\\u001b[31mb\\u000ac\\u009bd\\u202ee");
  expect(table(["WORKER"], [["\u001b[2J"]])).toBe("WORKER\n\\u001b[2J");
  expect(printable("naïve 订单 🚚")).toBe("naïve 订单 🚚");
});

test("text is clipped by cells, never inside a character", () => {
  expect(clip("orders", 6)).toBe("orders");
  expect(clip("orders.csv", 6)).toBe("order…");
  expect(clip("订单订单", 6)).toBe("订单…");
  expect(clip("订单订单", 8)).toBe("订单订单");
  expect(clip("cafe\u0301s", 5)).toBe("cafe\u0301s");
  expect(["ab", "订单", "e\u0301e\u0301"].map((text) => clip(text, 1))).toEqual(["…", "…", "…"]);
  expect(clip("ab", 0)).toBe("");
  expect(displayWidth(clip("a订b单c", 4))).toBe(4);
});

test("times are shown to the second", () => {
  expect(toSeconds("2025-01-01T00:00:00.123Z")).toBe("2025-01-01T00:00:00Z");
  expect(toSeconds("2025-01-01T01:00:00.123456+01:00")).toBe("2025-01-01T00:00:00Z");
  expect(toSeconds(undefined)).toBeUndefined();
  expect(toSeconds(null)).toBeUndefined();
});
