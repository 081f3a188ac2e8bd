/** What is likely to be done about an entry of the overview. */
import { expect, test } from "vitest";
import type { Need } from "./api.ts";
import { actionOf } from "./targets.ts";

test("the likely action is that of the entry's kind and state; a source is resumed only where it is paused", () => {
  const of = (kind: string, state: Need["state"] = "failed", id = "1") =>
    actionOf({ about: { kind, id }, state }, new Set(["paused"]));
  expect(of("run")).toBe("retry");
  expect([of("model"), of("model", "asking"), of("model", "late")]).toEqual(["runAgain", "runAgain", "openWhy"]);
  expect([of("source", "failed", "paused"), of("source", "failed", "other")]).toEqual(["resume", "open"]);
  expect([of("receiver", "disabled"), of("receiver")]).toEqual(["enable", "open"]);
  expect([of("subscription", "disabled"), of("subscription")]).toEqual(["enable", "open"]);
  expect([of("delivery"), of("failed-stage"), of("dead-letter")]).toEqual(["redeliver", "retry", "replay"]);
  expect(of("something new")).toBe("open");
});
