import { expect, test } from "vitest";
import { messageOf } from "./message-of.ts";

test("an error gives its message, anything else its text", () => {
  expect(messageOf(new TypeError("no such file"))).toBe("no such file");
  expect(messageOf("gone")).toBe("gone");
  expect(messageOf(undefined)).toBe("undefined");
});

test("an error around several others gives their messages when it has none of its own", () => {
  const errors = [new Error("refused by ::1"), new Error("refused by 127.0.0.1")];
  expect(messageOf(new AggregateError(errors))).toBe("refused by ::1; refused by 127.0.0.1");
  expect(messageOf(new AggregateError(errors, "both failed"))).toBe("both failed");
});
