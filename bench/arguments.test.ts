/** The words behind `npm run bench --`. */
import { expect, test } from "vitest";
import { requestOf, unknownPart } from "./arguments.ts";

const SUITES = ["lease", "harvest"];
const USAGE = "Usage: npm run bench -- lease|harvest [PART...] [--rounds 5]";

test("name a suite, some of its parts and the rounds", () => {
  expect(requestOf(["lease"], SUITES)).toEqual({ suite: "lease", parts: [], rounds: 5 });
  const all = ["harvest", "latency", "--rounds", "2", "xml"];
  expect(requestOf(all, SUITES)).toEqual({ suite: "harvest", parts: ["latency", "xml"], rounds: 2 });
});

test.each([
  [["lease", "--round", "3"], "--round is not a flag here. Did you mean `--rounds`?"],
  [["lease", "--part=latency"], "--part is not a flag here."],
  [["lease", "-r"], "-r is not a flag here."],
  [["lease", "--rounds"], "--rounds is ``. Accepted: a whole number from 1 to 1000."],
  [["lease", "--rounds", "0"], "--rounds is `0`. Accepted: a whole number from 1 to 1000."],
  [["lease", "--rounds", "many"], "--rounds is `many`. Accepted: a whole number from 1 to 1000."],
  [["leaes"], "There is no suite `leaes`. Did you mean `lease`?"],
  [["constructor"], "There is no suite `constructor`."],
  [[], "The name of a suite is missing."],
])("%j are answered with a sentence and the usage", (words, sentence) => {
  expect(requestOf(words, SUITES)).toEqual({ problem: `${sentence} ${USAGE}` });
});

test("a part that the suite does not have is answered with those that it has", () => {
  const request = { suite: "harvest", rounds: 5, parts: ["xml", "latncy"] };
  expect(unknownPart(request, ["latency", "xml"])).toBe(
    "The suite harvest has no part `latncy`. Did you mean `latency`? Its parts: latency, xml.",
  );
  expect(unknownPart(request, [])).toBe("The suite harvest has no part `xml`. It has no parts.");
  expect(unknownPart({ ...request, parts: [] }, [])).toBeUndefined();
});
