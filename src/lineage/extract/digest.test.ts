import { describe, expect, test } from "vitest";
import {
  airflowEvent,
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  lifecycleFacet,
  runEvent,
  sparkEvent,
} from "../events.fixture.ts";
import { parseEvent } from "../ingest/event.ts";
import { digestOf, factsOf } from "./index.ts";

const digest = (event: Json) => digestOf(parseEvent(event), "COMPUTE_ENGINE");
const ofGravitino = (event: Json) => digestOf(parseEvent(event), "GRAVITINO");
const statement = (query: string, dialect: string) => airflowEvent("", { jobFacets: { sql: { query, dialect } } });
const output = (facets: Json) => runEvent({ outputs: [dataset("file", "/w/out", facets)] });

test("it is a uuid", () => {
  expect(digest(sparkEvent())).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
});

describe("it is the same for events that say the same", () => {
  test.each<[string, Json]>([
    ["at another time", sparkEvent({ eventTime: "2026-04-01T00:00:00Z" })],
    ["in another run", sparkEvent({ runId: "0195a000-0000-7000-8000-00000000000f" })],
    ["when it starts", sparkEvent({ eventType: "START" })],
    ["when it has failed", sparkEvent({ eventType: "FAIL" })],
    [
      "with facets that are not read",
      sparkEvent({
        runFacets: { processing_engine: { name: "spark", version: "4" }, "spark.logicalPlan": { plan: [1] } },
      }),
    ],
  ])("%s", (_, event) => {
    expect(digest(event)).toBe(digest(sparkEvent()));
  });

  test("with other literals in the statement: what they claim differs in its content alone", () => {
    const daily = (dt: string) => parseEvent(airflowEvent(`insert into daily select * from orders where dt = '${dt}'`));
    const [one, other] = [daily("2026-01-01"), daily("2026-01-02")];
    expect(digestOf(one, "COMPUTE_ENGINE")).toBe(digestOf(other, "COMPUTE_ENGINE"));
    const [first, second] = [one, other].map((event) => factsOf(event, "COMPUTE_ENGINE"));
    expect(first).not.toEqual(second);
    expect(JSON.stringify(first).replaceAll("2026-01-01", "2026-01-02")).toBe(JSON.stringify(second));
    const contents = first?.nodes.flatMap(({ attributes: { content } }) => content ?? []);
    expect(contents).toEqual(["insert into daily select * from orders where dt = '2026-01-01'"]);
  });

  test("with statistics and versions of what was written", () => {
    const event = sparkEvent();
    const [out] = event["outputs"] as Json[];
    (out as { facets: Json }).facets["version"] = { datasetVersion: "17" };
    (out as Json)["outputFacets"] = { outputStatistics: { rowCount: 5 } };
    expect(digest(event)).toBe(digest(sparkEvent()));
  });

  test("where a table is created, overwritten or cut short", () => {
    expect(digest(output(lifecycleFacet("CREATE")))).toBe(digest(output(lifecycleFacet("OVERWRITE"))));
  });
});

describe("it differs when what is said differs", () => {
  test.each<[string, Json, Json]>([
    ["another job", sparkEvent(), sparkEvent({ jobName: "other" })],
    ["another table", sparkEvent(), sparkEvent({ to: "/w/other" })],
    ["another column", sparkEvent({ columns: 3 }), sparkEvent({ columns: 4 })],
    ["another column lineage", sparkEvent({ from: ["/w/a", "/w/b"] }), sparkEvent({ from: ["/w/b", "/w/a"] })],
    ["another engine", sparkEvent(), sparkEvent({ runFacets: { processing_engine: { name: "flink" } } })],
    ["another statement", airflowEvent("select a"), airflowEvent("select b")],
    ["no statement", airflowEvent("select a"), airflowEvent("")],
    ["another dialect", statement("select a", "trino"), statement("select a", "hive")],
    [
      "another description",
      output({ documentation: { description: "a" } }),
      output({ documentation: { description: "b" } }),
    ],
    ["no run at all", sparkEvent(), { ...sparkEvent(), run: undefined }],
    ["a drop", output({}), output(lifecycleFacet("DROP"))],
    [
      "a drop that has not happened",
      output(lifecycleFacet("DROP")),
      { ...output(lifecycleFacet("DROP")), eventType: "FAIL" },
    ],
    [
      "a rename from another name",
      output(lifecycleFacet("RENAME", { namespace: "file", name: "/w/a" })),
      output(lifecycleFacet("RENAME", { namespace: "file", name: "/w/b" })),
    ],
    [
      "an input instead of an output",
      runEvent({ inputs: [dataset("a", "b")] }),
      runEvent({ outputs: [dataset("a", "b")] }),
    ],
  ])("%s", (_, one, other) => {
    expect(digest(one)).not.toBe(digest(other));
  });

  test("from Gravitino, an operation that has failed, or has other changes, or comes from someone else", () => {
    const facets = (newName: string) => gravitinoFacet({ changes: [{ type: "RENAME_TABLE", newName }] });
    const event = gravitinoEvent("alter_table", { facets: facets("x") });
    expect(ofGravitino({ ...event, eventType: "FAIL" })).not.toBe(ofGravitino(event));
    expect(ofGravitino(gravitinoEvent("alter_table", { facets: facets("y") }))).not.toBe(ofGravitino(event));
    expect(digest(event)).not.toBe(ofGravitino(event));
    expect(ofGravitino({ ...event, eventTime: "2026-04-01T00:00:00Z" })).toBe(ofGravitino(event));
  });
});
