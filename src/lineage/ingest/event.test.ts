import { describe, expect, test } from "vitest";
import { ApiError } from "../../kernel/errors.ts";
import { dataset, type Json, runEvent } from "../events.fixture.ts";
import { parseEvent } from "./event.ts";

const JOB = { namespace: "spark", name: "load" };
const AT = Date.UTC(2026, 2, 1, 10) * 1_000;

function problemsOf(event: unknown): string {
  try {
    parseEvent(event);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).code).toBe("VALIDATION_FAILED");
    return (error as ApiError).message;
  }
  return "none";
}

describe("the kind of an event", () => {
  const eventTime = "2026-03-01T10:00:00Z";
  const named = { namespace: "file", name: "/w/a" };

  test("follows from its structure, whatever its schemaURL says", () => {
    const schemaURL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
    expect(parseEvent({ eventTime, schemaURL, run: { runId: "r" }, job: JOB }).kind).toBe("RUN_EVENT");
    expect(parseEvent({ eventTime, schemaURL, job: JOB }).kind).toBe("JOB_EVENT");
    expect(parseEvent({ eventTime, schemaURL, dataset: named }).kind).toBe("DATASET_EVENT");
    expect(parseEvent({ eventTime, schemaURL, run: { runId: "r" }, job: JOB, dataset: named }).kind).toBe("RUN_EVENT");
  });

  test("must be one: a dataset and a job without a run are refused, and so is none of them", () => {
    expect(problemsOf({ eventTime, job: JOB, dataset: named })).toMatch("both /dataset and /job but no /run");
    expect(problemsOf({ eventTime })).toMatch("neither /run nor /job nor /dataset");
    expect(problemsOf([])).toMatch("not an object");
  });

  test("of a dataset makes it the only output, and it has no job and no run", () => {
    const event = parseEvent({ eventTime, dataset: named, inputs: [named] });
    expect(event).toMatchObject({ job: null, runId: null, inputs: [], outputs: [{ ...named, facets: {} }] });
  });
});

test("an event of a run is read whole", () => {
  const event = runEvent({
    eventType: "start",
    runId: "0195A000-0000-7000-8000-00000000000A",
    jobFacets: { sql: { query: "select 1" } },
    runFacets: { parent: {} },
    inputs: [dataset("file", "/w/a", { schema: {} })],
  });
  expect(parseEvent(event)).toEqual({
    kind: "RUN_EVENT",
    at: AT,
    eventType: "START",
    runId: "0195a000-0000-7000-8000-00000000000a",
    job: { namespace: "spark", name: "daily.load", facets: { sql: { query: "select 1" } } },
    producer: event["producer"],
    inputs: [{ namespace: "file", name: "/w/a", facets: { schema: {} } }],
    outputs: [],
    runFacets: { parent: {} },
  });
});

describe("what real producers leave out or write in their own way is taken", () => {
  test("no schemaURL, no producer, no eventType, no inputs and outputs, no facets", () => {
    const bare = { eventTime: "2026-03-01T10:00:00Z", run: { runId: "r" }, job: JOB, inputs: null, outputs: null };
    expect(parseEvent(bare)).toMatchObject({ producer: null, eventType: null, inputs: [], outputs: [], runFacets: {} });
  });

  test.each([
    ["2026-03-01T10:00:00", AT, "without a zone it is UTC"],
    ["2026-03-01T10:00:00.123456789Z", AT + 123_456, "nanoseconds are cut"],
    ["2026-03-01T10:00:00.5Z", AT + 500_000, "a short fraction"],
    ["2026-03-01T20:00:00.000+10:00", AT, "an offset"],
    ["2026-03-01T06:30:00-0330", AT, "an offset without a colon"],
    ["2026-03-01T11:00:00+01", AT, "an offset of hours"],
    ["2026-03-01T10:00Z", AT, "no seconds, as Java writes a full minute"],
    ["2026-03-01T11:00:00+01:00[Europe/Berlin]", AT, "the zone's name in brackets"],
    ["2026-03-01 10:00:00", AT, "a blank for the T"],
    ["2026-02-28T23:59:60Z", Date.UTC(2026, 2, 1) * 1_000, "a leap second"],
  ])("the time %s", (eventTime, at) => {
    expect(parseEvent(runEvent({ eventTime })).at).toBe(at);
  });

  test("a runId that is no uuid becomes one, always the same", () => {
    const idOf = (runId: unknown) => parseEvent({ ...runEvent(), run: { runId } }).runId;
    expect(idOf("scheduled__2026-03-01")).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    expect(idOf("scheduled__2026-03-01")).toBe(idOf("scheduled__2026-03-01"));
    expect(idOf("scheduled__2026-03-01")).not.toBe(idOf("scheduled__2026-03-02"));
    expect(idOf(17)).toBe(idOf("17"));
  });

  test("an eventType of its own is kept in capitals, within 32 characters", () => {
    expect(parseEvent(runEvent({ eventType: "paused" })).eventType).toBe("PAUSED");
    expect(parseEvent(runEvent({ eventType: "x".repeat(40) })).eventType).toHaveLength(32);
    expect(parseEvent(runEvent({ eventType: "" })).eventType).toBeNull();
  });

  test("a name with what Postgres cannot store is kept without it", () => {
    const { outputs } = parseEvent(runEvent({ outputs: [dataset("fi\0le", "/w/\ud800a")] }));
    expect(outputs[0]).toMatchObject({ namespace: "fi\uFFFDle", name: "/w/\uFFFDa" });
  });
});

describe("an event that cannot be read is refused with the path", () => {
  test.each([
    ["2026-02-30T10:00:00Z"],
    ["2026-13-01T10:00:00Z"],
    ["2026-00-10T10:00:00Z"],
    ["2026-03-01T25:00:00Z"],
    ["1969-12-31T23:59:59Z"],
    ["0099-01-01T00:00:00Z"],
    ["2300-01-01T00:00:00Z"],
    ["{{RUN_START_TIME}}"],
    [1_772_359_200_000],
  ])("the time %s", (eventTime) => {
    expect(problemsOf({ ...runEvent(), eventTime })).toMatch("/eventTime is not a time");
  });

  test.each<[string, Json, string]>([
    ["no time", { eventTime: undefined }, "/eventTime is missing"],
    ["a type that is no text", { eventType: 1 }, "/eventType is not text"],
    ["no runId", { run: {} }, "/run/runId is missing"],
    ["a run that is no object", { run: "r" }, "/run is not an object"],
    ["no job", { job: undefined }, "/job is missing"],
    ["an empty job name", { job: { namespace: "a", name: "" } }, "/job/name is empty"],
    ["a name that is too long", { job: { namespace: "a", name: "n".repeat(4001) } }, "/job/name is longer than 4000"],
    ["inputs that are no list", { inputs: {} }, "/inputs is not a list"],
    ["an input that is no object", { inputs: ["a"] }, "/inputs/0 is not an object"],
    ["an output without a name", { outputs: [{ namespace: "a" }] }, "/outputs/0/name is missing"],
    ["facets that are no object", { outputs: [dataset("a", "b", 1 as never)] }, "/outputs/0/facets is not an object"],
    [
      "too many datasets",
      { inputs: Array.from({ length: 10_001 }, () => 1) },
      "/inputs names more than 10000 datasets",
    ],
  ])("%s", (_, wrong, problem) => {
    expect(problemsOf({ ...runEvent(), ...wrong })).toMatch(problem);
  });

  test("inputs and outputs share one limit", () => {
    const many = Array.from({ length: 5_001 }, (_, index) => dataset("file", `/w/${index}`));
    expect(problemsOf(runEvent({ inputs: many, outputs: many }))).toMatch("more than 10000 datasets");
  });

  test("all that is wrong is told at once, up to ten things", () => {
    const problems = problemsOf({ ...runEvent(), eventTime: "now", job: {}, outputs: [{}] });
    expect(problems.split("; ").map((problem) => problem.split(" ")[0])).toEqual([
      "/eventTime",
      "/job/namespace",
      "/job/name",
      "/outputs/0/namespace",
      "/outputs/0/name",
    ]);
    expect(problemsOf({ ...runEvent(), outputs: Array.from({ length: 20 }, () => ({})) })).toMatch(/; and 30 more\.$/);
  });
});
