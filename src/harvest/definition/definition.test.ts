import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { draft } from "../spec/definition.fixture.ts";
import { SEEDED_DICTIONARY } from "../spec/dictionary.ts";
import { checkDefinition } from "./check.ts";
import { parseDefinition } from "./definition.ts";
import { DESCRIPTIONS } from "./descriptions.ts";
import { definitionFields, definitionJsonSchema } from "./json-schema.ts";

function messagesOf(value: unknown): string[] {
  const parsed = parseDefinition(value);
  return "problems" in parsed ? parsed.problems.map(({ message }) => message) : [];
}

describe("a definition", () => {
  test("is completed with defaults, also inside lists, and not changed", () => {
    const written = draft();
    const parsed = parseDefinition(written);
    expect(written).toEqual(draft());
    expect(parsed).toMatchObject({
      definition: {
        endpoints: {
          list: {
            role: "SEARCH",
            method: "GET",
            requiresAuth: false,
            default: true,
            params: [{ name: "genre", location: "QUERY", required: false }],
            outputFields: [{ name: "title", type: "string", required: false }],
          },
          ids: { default: false },
        },
      },
    });
  });

  test("gets no defaults of sections, which belong to the lowest layer", () => {
    const parsed = parseDefinition(draft());
    if (!("definition" in parsed)) throw new Error("it is not valid");
    expect(parsed.definition.endpoints["list"]?.pagination).toEqual({ type: "OFFSET", pageSize: 50, pageSizeMax: 100 });
    expect(parsed.definition.endpoints["list"]).not.toHaveProperty("retry");
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["an unknown field", { nam: "x" }, "`nam` is not a field. Did you mean `name`?"],
    [
      "an unknown field of a section",
      { "endpoints.list.pagination.pageSzie": 5 },
      "`endpoints.list.pagination.pageSzie` is not a field. Did you mean `pageSize`?",
    ],
    [
      "an unknown field of a layer",
      { "endpoints.list.overrides": { retries: 3 } },
      "`endpoints.list.overrides.retries` is not a field. Known here: http, auth, pagination",
    ],
    [
      "an unknown field of the defaults",
      { "defaults.window": { safetyLags: "PT1H" } },
      "`defaults.window.safetyLags` is not a field. Did you mean `safetyLag`?",
    ],
    [
      "an unknown code",
      { "endpoints.list.pagination.type": "OFSET" },
      "`endpoints.list.pagination.type` is `OFSET`. Accepted: one of OFFSET, PAGE, TOKEN, URL, TIME. Did you mean `OFFSET`?",
    ],
    [
      "a code that others use",
      { "endpoints.list.pagination.type": "CURSOR" },
      "`endpoints.list.pagination.type` is `CURSOR`. Accepted: one of OFFSET, PAGE, TOKEN, URL, TIME. Did you mean `TOKEN`?",
    ],
    [
      "what may be a credential instead of a code",
      { "endpoints.list.auth.type": "sk-12345" },
      "`endpoints.list.auth.type` is text. Accepted: one of NONE, API_KEY,",
    ],
    ["a missing field", { baseUrl: undefined }, "`baseUrl` is missing. Accepted: text from 1 to 2048 characters."],
    ["a number beyond its limit", { "endpoints.list.http.readTimeoutMs": 120_001 }, "from 1 to 120000."],
    [
      "the key of a gate with a space",
      { "endpoints.list.rateLimit.keys": ["my books"] },
      "`endpoints.list.rateLimit.keys[0]` must match",
    ],
    [
      "the key of a gate that is too long with its suffix",
      { "endpoints.list.rateLimit.keys": ["k".repeat(197)] },
      "`endpoints.list.rateLimit.keys[0]`",
    ],
    ["a rate that no gate keeps", { "endpoints.list.rateLimit.refillRatePerSec": 0.000001 }, "from 0.00001 to 10000."],
    ["a cost that no gate takes", { "endpoints.list.rateLimit.cost": 2_501 }, "from 1 to 2500."],
    ["no endpoint", { endpoints: {} }, "`endpoints` must not have fewer than 1 field."],
    ["a bad name", { source: "Books" }, "`source` is not acceptable: a name has lower-case letters, digits,"],
    [
      "a bad name of an endpoint",
      { "endpoints.My List": { path: "/" } },
      "`endpoints.My List` is not acceptable: a name has lower-case letters,",
    ],
    [
      "a month as a duration",
      { "endpoints.list.window.granularity": "P1M" },
      "`endpoints.list.window.granularity` is not acceptable: an ISO 8601 duration of days, hours, minutes or seconds",
    ],
    [
      "a credential with its value",
      { "credentials.key": { value: "abc" } },
      "`credentials.key` is a group of settings. Accepted: settings env or settings secret.",
    ],
  ])("with %s is refused", (_, change, message) => {
    expect(messagesOf(draft(change))).toContainEqual(expect.stringContaining(message));
  });

  test.each([
    ["APIKEY", "API_KEY"],
    ["OAUTH", "OAUTH2"],
    ["HEADER", "API_KEY"],
  ])("with what others call %s has one question", (type, meant) => {
    const [message = ""] = messagesOf(draft({ "endpoints.list.auth.type": type }));
    expect(message.match(/Did you mean.*/g)).toEqual([`Did you mean \`${meant}\`?`]);
  });

  test.each([[null], [[]], ["text"], [7]])("is an object, not %j", (value) => {
    expect(messagesOf(value)).toEqual([expect.stringContaining("The definition is")]);
  });

  test("has the path of each problem, to find its line", () => {
    const parsed = parseDefinition(draft({ "endpoints.list.params": [{ name: "a" }, { nam: "b" }] }));
    expect(parsed).toMatchObject({
      problems: [
        { path: ["endpoints", "list", "params", "1", "name"] },
        { path: ["endpoints", "list", "params", "1", "nam"] },
      ],
    });
  });
});

describe("a value of the wrong shape", () => {
  const check = (change: Record<string, unknown>) => {
    const options = { dictionary: SEEDED_DICTIONARY, allowPrivate: [], baseUrl: undefined };
    const checked = checkDefinition(draft(change), options);
    return "problems" in checked ? checked.problems.map(({ path }) => path.join(".")).toSorted() : [];
  };
  const type = { "endpoints.list.pagination.type": "CURSOR" };
  const others = {
    "endpoints.list.http.query.from": "${windw.from}",
    "endpoints.list.window.timezone": "Europe/Berlim",
    schedules: { nightly: { endpoint: "list", cron: "0 25 * * *", timeZone: "Mars/Olympus" } },
  };
  const places = [
    "endpoints.list.http.query.from",
    "endpoints.list.window.timezone",
    "schedules.nightly.cron",
    "schedules.nightly.timeZone",
  ];

  test("hides no other that is wrong by itself, and is no cause of more", () => {
    expect(check(type)).toEqual(["endpoints.list.pagination.type"]);
    expect(check(others)).toEqual(places);
    expect(check({ ...type, ...others })).toEqual([...places, "endpoints.list.pagination.type"].toSorted());
    const both = { ...others, "endpoints.list.window.granularity": "P1M" };
    expect(check(both)).toEqual([...places, "endpoints.list.window.granularity"].toSorted());
  });

  test.each([
    { "endpoints.list.windw": {} },
    { "endpoints.list.params": [{ nam: "genre" }] },
    { "endpoints.List": {} },
    { nmae: "x" },
  ])("is told alone where others refer to it: %j", (change) => {
    expect(check({ ...change, "endpoints.list.window": undefined }).join()).not.toContain("http.query");
  });
});

describe("the JSON Schema for editors", () => {
  test("accepts and refuses what the parser does", () => {
    const validate = new Ajv({ allowUnionTypes: true }).compile(definitionJsonSchema());
    expect(validate(draft())).toBe(true);
    expect(validate(draft({ "endpoints.list.pagination.pageSzie": 5 }))).toBe(false);
    expect(validate(draft({ "endpoints.list.path": undefined }))).toBe(false);
    expect(validate(draft({ "endpoints.list.params": [{ location: "QUERY" }] }))).toBe(false);
  });

  test("describes every field, and no other", () => {
    expect(Object.keys(DESCRIPTIONS).sort()).toEqual(
      definitionFields()
        .map(({ path }) => path)
        .sort(),
    );
    expect(JSON.stringify(definitionJsonSchema())).toContain(DESCRIPTIONS["window.probe.totalPath"]);
  });

  test("is closed everywhere", () => {
    const open: string[] = [];
    visit(definitionJsonSchema(), "");
    // A JSON body may be anything.
    expect(open).toEqual([]);

    function visit(schema: unknown, path: string): void {
      if (typeof schema !== "object" || schema === null) return;
      const { type, additionalProperties, patternProperties } = schema as Record<string, unknown>;
      if (type === "object" && additionalProperties !== false && patternProperties === undefined) open.push(path);
      for (const [key, value] of Object.entries(schema)) visit(value, `${path}/${key}`);
    }
  });
});
