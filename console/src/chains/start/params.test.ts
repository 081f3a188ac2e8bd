/** The parameters of a chain, and what a person types into their fields. */
import { expect, test } from "vitest";
import { paramsOf, typedText, typedValue } from "./params.ts";

test("parameters are those that templates and conditions read, each once", () => {
  const nodes = [
    { id: "a", type: "http", cfg: { url: "https://x/${params.day}?n=${params.n + 1}", note: "params.none" } },
    { id: "b", type: "noop", if: 'params.region != "none" && params["my key"] > 0' },
    { id: "c", type: "map", cfg: { node: { type: "noop", if: "params.day != ''" }, raw: "$${params.escaped}" } },
  ];
  expect(paramsOf(nodes)).toEqual(["day", "n", "region", "my key"]);
});

test.each([
  ["20250101", 20_250_101],
  ['"20250101"', "20250101"],
  ["true", true],
  ["[1, 2]", [1, 2]],
  ["eu-west", "eu-west"],
])("%s is read as %j, and shown so that it is read as the same", (text, value) => {
  expect(typedValue(text)).toEqual(value);
  expect(typedValue(typedText(value))).toEqual(value);
});
