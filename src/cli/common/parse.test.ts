/** Parsing of command lines. */
import { describe, expect, test } from "vitest";
import { OperatorError } from "../../kernel/errors.ts";
import type { Command } from "./command.ts";
import { parse } from "./parse.ts";

const command: Command = {
  summary: "For the test",
  args: "STAGE FILE [SHARD]",
  flags: [
    { usage: "--worker <name>", description: "" },
    { usage: "--fence <fence>", description: "" },
    { usage: "--error <text>", description: "" },
    { usage: "--json", description: "" },
    { usage: "--help", description: "" },
  ],
  examples: [],
  run: async () => 0,
};
const needy: Command = { ...command, flags: [{ usage: "--worker <name>", description: "", required: true }] };
const listing: Command = {
  ...command,
  args: "",
  flags: [{ usage: "--param <name=value>", description: "", repeatable: true }],
};
const greedy: Command = { ...command, args: "STAGE FILE..." };
const runner: Command = { ...command, args: "STAGE", takesCommandLine: true };

const refuse = (problem: string) => new OperatorError(problem, 2);
function given(words: string[], of = command) {
  const result = parse(of, words, refuse);
  if (result === undefined) throw new Error("help was asked for");
  return result;
}

describe("values", () => {
  test("stay text, even if they look like numbers", () => {
    const words = ["s", "0123.csv", "--fence", "900719925474099399", "--worker", "007", "--error", "1e5"];
    expect(given(words).flags).toEqual({ fence: "900719925474099399", worker: "007", error: "1e5" });
    expect(given(words).text("FILE")).toBe("0123.csv");
  });

  test("of a flag that may be given several times are all kept, in their order", () => {
    expect(given(["--param", "a=1", "--param=b=2", "--param", "a=3"], listing).texts("--param")).toEqual([
      "a=1",
      "b=2",
      "a=3",
    ]);
    expect(given([], listing).texts("--param")).toEqual([]);
  });

  test("may be empty or begin with a dash", () => {
    expect(given(["s", "f", "--error", "", "--worker=", "--json"]).flags).toEqual({ error: "", worker: "" });
    expect(given(["s", "f", "--error", "--- no such table ---"]).text("--error")).toBe("--- no such table ---");
    expect(given(["s", "f", "--error", "-h"]).text("--error")).toBe("-h");
  });

  test("that are flags of the command mean that the value is missing", () => {
    expect(() => given(["s", "f", "--worker", "--json"])).toThrow("--worker has no value: `--worker <name>`.");
    expect(() => given(["s", "f", "--worker", "--fence=1"])).toThrow("--worker has no value");
    expect(() => given(["s", "f", "--worker"])).toThrow("--worker has no value");
    expect(given(["s", "f", "--worker=--json"]).text("--worker")).toBe("--json");
  });

  test("become numbers only if the command reads a number", () => {
    expect(given(["s", "f", "12"]).number("SHARD")).toBe(12);
    expect(given(["s", "f"]).maybeNumber("SHARD")).toBeUndefined();
    expect(() => given(["s", "f", "1.5"]).number("SHARD")).toThrow("SHARD is `1.5`. Accepted: a whole number.");
    expect(() => given(["s", "f", "99999999999999999999"]).number("SHARD")).toThrow("Accepted: a whole number.");
  });
});

describe("arguments", () => {
  test("are assigned by position, also between flags", () => {
    const input = given(["--json", "s", "--worker", "w", "f", "3"]);
    expect([input.text("STAGE"), input.text("FILE"), input.text("SHARD"), input.isOn("--json")]).toEqual([
      "s",
      "f",
      "3",
      true,
    ]);
  });

  test("after `--` may begin with a dash", () => {
    expect(given(["s", "--json", "--", "-f"]).text("FILE")).toBe("-f");
  });

  test("too few or too many are refused by name", () => {
    expect(() => given(["s"])).toThrow("FILE is missing.");
    expect(() => given(["s", "f", "1", "2"])).toThrow("`2` is one argument too many.");
  });

  test("the last one may take all remaining values", () => {
    const input = given(["s", "a", "--json", "-", "b"], greedy);
    expect([input.text("STAGE"), input.texts("FILE"), input.text("FILE")]).toEqual(["s", ["a", "-", "b"], "a"]);
    expect(() => given(["s"], greedy)).toThrow("FILE is missing.");
    expect(given(["s", "f"]).texts("SHARD")).toEqual([]);
  });

  test("a command line begins after `--` and keeps its own flags", () => {
    const input = given(["s", "--json", "--", "sh", "-c", "--", "--help"], runner);
    expect(input.commandLine).toEqual(["sh", "-c", "--", "--help"]);
    expect(() => given(["s"], runner)).toThrow("The command to run is missing: write it after `--`.");
    expect(() => given(["s", "./load.sh"], runner)).toThrow("The command to run comes after `--`.");
  });
});

describe("flags", () => {
  test("that do not exist are refused with the most similar one", () => {
    expect(() => given(["s", "f", "--wroker", "w"])).toThrow("--wroker is not a flag here. Did you mean `--worker`?");
    expect(() => given(["s", "f", "-x"])).toThrow("-x is not a flag here.");
    expect(() => given(["s", "f", "-1"])).toThrow("-1 is not a flag here.");
  });

  test("for a secret are refused with the variable to set", () => {
    expect(() => given(["s", "f", "--key", "mlr_x"])).toThrow(
      "--key is not a flag: set MILLRACE_KEY in the environment",
    );
    expect(() => given(["--database-url", "x"])).toThrow("set DATABASE_URL in the environment");
  });

  test("given twice, or a switch with a value, are refused", () => {
    expect(() => given(["s", "f", "--worker", "a", "--worker", "b"])).toThrow("--worker is given twice.");
    expect(() => given(["s", "f", "--json", "--json"])).toThrow("--json is given twice.");
    expect(() => given(["s", "f", "--json=yes"])).toThrow("--json takes no value.");
  });

  test("that are required must be given", () => {
    expect(() => given(["s", "f"], needy)).toThrow("`--worker <name>` is missing.");
  });

  test("--help works even if something is wrong or missing", () => {
    expect(parse(command, ["--help"], refuse)).toBeUndefined();
    expect(parse(command, ["a", "b", "c", "d", "-h"], refuse)).toBeUndefined();
  });
});
