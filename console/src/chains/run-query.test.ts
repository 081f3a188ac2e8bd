import { expect, test } from "vitest";
import { parseRunQuery } from "./run-query.ts";

const ID = "0199f3a2-7c1e-7d2a-9b7e-3f1c5a8b2d40";

test.each([
  [ID, [{ id: ID }]],
  [ID.toUpperCase(), [{ id: ID }]],
  ["0199f3a2", [{ id: "0199f3a2" }]],
  ["0199f3a2-7c1e", [{ id: "0199f3a2-7c1e" }]],
  ["0199f3a", []],
  ["daily", []],
  ["20260401", [{ id: "20260401" }, { opTime: "20260401" }]],
  ["daily 20260401", [{ chain: "daily", opTime: "20260401" }]],
  ["daily load  2026040112", [{ chain: "daily load", opTime: "2026040112" }]],
])("%s asks for %j", (query, expected) => {
  expect(parseRunQuery(query)).toEqual(expected);
});
