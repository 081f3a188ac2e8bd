import { describe, expect, test } from "vitest";
import { airflowEvent, dataset, lifecycleFacet, runEvent, schemaFacet, sparkEvent } from "../events.fixture.ts";
import { extractedFrom } from "./extracted.fixture.ts";
import { sqlHash } from "./sql-text.ts";

const RUN = "0195a000-0000-7000-8000-000000000001";
const JOB = "JOB spark|daily.load";
const OUT = "TABLE external|file||/w/out";

describe("a run of Spark", () => {
  test("reads and writes tables, of which it tells the columns and where they come from", () => {
    const facts = extractedFrom(sparkEvent({ columns: 1 }));
    expect(facts.nodes).toEqual({
      [JOB]: { jobNamespace: "spark", jobName: "daily.load", engine: "spark" },
      "TABLE external|file||/w/a": { namespace: "file", datasetName: "/w/a" },
      "COLUMN external|file||/w/a|c1": { dataType: "string", position: 1 },
      "TABLE external|file||/w/b": { namespace: "file", datasetName: "/w/b" },
      "COLUMN external|file||/w/b|c1": { dataType: "string", position: 1 },
      [OUT]: { producer: expect.stringContaining("spark"), namespace: "file", datasetName: "/w/out" },
      "COLUMN external|file||/w/out|c1": { dataType: "string", position: 1 },
    });
    expect(facts.edges).toEqual([
      `TABLE external|file||/w/a INPUT_OF ${JOB}`,
      `TABLE external|file||/w/b INPUT_OF ${JOB}`,
      "COLUMN external|file||/w/out|c1 DERIVES_FROM COLUMN external|file||/w/a|c1",
      `${JOB} OUTPUT_TO ${OUT}`,
    ]);
    expect(facts.execution).toBe(`${JOB} in ${RUN}`);
    expect(facts.mentions.sort()).toEqual(["TABLE external|file||/w/a", "TABLE external|file||/w/b", OUT]);
    expect(facts.warnings).toEqual([]);
  });

  test.each(["START", "RUNNING", "FAIL", "ABORT", "OTHER", null])(
    "of the type %s makes the same lineage",
    (eventType) => {
      expect(extractedFrom(sparkEvent({ eventType })).edges).toEqual(extractedFrom(sparkEvent()).edges);
    },
  );

  test("that reads and writes nothing says nothing of the graph", () => {
    const { nodes, execution, mentions } = extractedFrom(runEvent());
    expect({ nodes, execution, mentions }).toEqual({ nodes: {}, execution: undefined, mentions: [] });
  });
});

describe("the process", () => {
  test("is the statement where one is told, with its text as it ran", () => {
    const query = "insert into daily select * from orders where dt = '2026-03-01'";
    const facts = extractedFrom(airflowEvent(query));
    const sql = `SQL airflow|dag.task|${sqlHash(query)}`;
    expect(facts.nodes[sql]).toEqual({
      content: query,
      engine: "airflow",
      jobNamespace: "airflow",
      jobName: "dag.task",
    });
    expect(facts.edges).toEqual([
      `TABLE external|postgres://db:5432|shop.public|orders INPUT_OF ${sql}`,
      `${sql} OUTPUT_TO TABLE external|postgres://db:5432|shop.public|daily`,
    ]);
    expect(facts.execution).toBe(`${sql} in ${RUN}`);
  });

  test("is the same statement on the next day", () => {
    const sqlOf = (day: string) => extractedFrom(airflowEvent(`select * from orders where dt = '${day}'`)).execution;
    expect(sqlOf("2026-03-01")).toBe(sqlOf("2026-03-02"));
  });

  test("of a job event is not counted as executed, and a dataset event has none", () => {
    const { run: _, ...jobEvent } = sparkEvent();
    expect(extractedFrom(jobEvent).execution).toBeUndefined();
    expect(extractedFrom(jobEvent).edges).toEqual(extractedFrom(sparkEvent()).edges);
    const datasetEvent = { eventTime: "2026-03-01T10:00:00Z", dataset: dataset("file", "/w/out", schemaFacet(["c1"])) };
    expect(extractedFrom(datasetEvent)).toMatchObject({
      nodes: { [OUT]: {}, "COLUMN external|file||/w/out|c1": {} },
      edges: [],
      execution: undefined,
    });
  });

  test.each([
    ["the run's own facet", { runFacets: { processing_engine: { name: "Flink" } } }, "flink"],
    ["the type of the job", { runFacets: {}, jobFacets: { jobType: { integration: "DBT" } } }, "dbt"],
    ["the producer", { runFacets: {} }, "spark"],
  ])("has its engine from %s", (_, options, engine) => {
    expect(extractedFrom(sparkEvent(options)).nodes[JOB]).toMatchObject({ engine });
  });
});

describe("a table", () => {
  const attributesOf = (facets: Record<string, unknown>) => {
    const { nodes, warnings } = extractedFrom(runEvent({ outputs: [dataset("file", "/w/out", facets)] }));
    return { ...nodes[OUT], warnings };
  };

  test("has what the common facets tell", () => {
    expect(
      attributesOf({
        documentation: { description: "the daily result" },
        ownership: { owners: [{ name: "team:bi", type: "OWNER" }, { name: "ann" }] },
        datasetType: { datasetType: "VIEW" },
        tags: { tags: [{ key: "pii", value: "true", source: "USER", field: "c1" }] },
        catalog: { name: "lake", framework: "iceberg", type: "rest" },
      }),
    ).toMatchObject({
      description: "the daily result",
      owners: [{ name: "team:bi", type: "OWNER" }, { name: "ann" }],
      datasetType: "VIEW",
      tags: [{ key: "pii", value: "true", source: "USER", field: "c1" }],
      catalog: { name: "lake", framework: "iceberg", type: "rest" },
    });
  });

  test("loses what a deleted facet takes away, and a deleted schema facts no column", () => {
    const { warnings: _, ...attributes } = attributesOf({
      documentation: { _deleted: true },
      schema: { _deleted: true },
    });
    expect(attributes).toMatchObject({ description: null });
    const event = runEvent({
      outputs: [dataset("file", "/w/out", { schema: { _deleted: true, fields: [{ name: "a" }] } })],
    });
    expect(Object.keys(extractedFrom(event).nodes)).toEqual([JOB, OUT]);
  });

  test("keeps what is nested in a column with the column", () => {
    const address = {
      name: "address",
      type: "struct",
      fields: [{ name: "city", type: "string", fields: [{ name: "zip" }] }],
    };
    const facts = extractedFrom(
      runEvent({ outputs: [dataset("file", "/w/out", schemaFacet(["id", { ...address, ordinal_position: 7 }]))] }),
    );
    expect(facts.nodes["COLUMN external|file||/w/out|address"]).toEqual({
      dataType: "struct",
      position: 7,
      fields: [{ name: "city", dataType: "string", fields: [{ name: "zip" }] }],
    });
  });

  test("that is broken in one facet keeps the others, with a warning that says where", () => {
    const { warnings, ...attributes } = attributesOf({
      documentation: { description: "kept" },
      schema: { fields: [{ name: "a" }, { type: "int" }, 3] },
      ownership: { owners: "ann" },
      symlinks: { identifiers: [{ namespace: "hive" }] },
      columnLineage: { fields: { a: { inputFields: [{ name: "x" }] }, b: 1 } },
    });
    expect(attributes).toMatchObject({ description: "kept" });
    expect(warnings).toEqual([
      "/outputs/0/facets/symlinks/identifiers/0 has no namespace or no name.",
      "/outputs/0/facets/ownership/owners is not a list.",
      "/outputs/0/facets/schema/fields/1 has no name.",
      "/outputs/0/facets/schema/fields/2 has no name.",
      "/outputs/0/facets/columnLineage/fields/a/inputFields/0 has no namespace, name or field.",
      "/outputs/0/facets/columnLineage/fields/b/inputFields is missing.",
    ]);
  });

  test("has at most 10,000 columns", () => {
    const fields = Array.from({ length: 10_001 }, (_, index) => `c${index}`);
    const facts = extractedFrom(runEvent({ outputs: [dataset("file", "/w/out", schemaFacet(fields))] }));
    expect(Object.keys(facts.nodes)).toHaveLength(10_002);
    expect(facts.warnings).toEqual([
      "/outputs/0/facets/schema/fields has more than 10000 fields; the rest was left out.",
    ]);
  });

  test("bears no text that Postgres refuses", () => {
    const { description } = attributesOf({ documentation: { description: "a\0b\udfff" } }) as { description?: unknown };
    expect(description).toBe("a\uFFFDb\uFFFD");
  });
});

describe("a table that is", () => {
  const changed = (change: string, options = {}, previous?: { namespace: string; name: string }) =>
    extractedFrom(
      runEvent({
        inputs: [dataset("file", "/w/a")],
        outputs: [dataset("file", "/w/out", { ...schemaFacet(["c1"]), ...lifecycleFacet(change, previous) })],
        ...options,
      }),
    );

  test.each(["COMPLETE", null])("dropped ends with the run (%s), and nothing else is claimed of it", (eventType) => {
    const facts = changed("DROP", { eventType });
    expect(facts.endings).toEqual([OUT]);
    expect(facts.edges).toEqual([`TABLE external|file||/w/a INPUT_OF ${JOB}`]);
    expect(Object.keys(facts.nodes)).toEqual([JOB, "TABLE external|file||/w/a"]);
    expect(facts.mentions).toContain(OUT);
  });

  test.each(["START", "RUNNING", "FAIL", "ABORT"])("to be dropped is still there at %s", (eventType) => {
    const facts = changed("DROP", { eventType });
    expect(facts.endings).toEqual([]);
    expect(facts.nodes).toHaveProperty([OUT]);
  });

  test("renamed ends its old name, which goes on as the new one", () => {
    const facts = changed("RENAME", {}, { namespace: "file", name: "/w/old" });
    expect(facts.endings).toEqual([`TABLE external|file||/w/old -> ${OUT}`]);
    expect(facts.nodes).toHaveProperty([OUT]);
    expect(facts.mentions).toContain("TABLE external|file||/w/old");
    expect(changed("RENAME", { eventType: "FAIL" }, { namespace: "file", name: "/w/old" }).endings).toEqual([]);
  });

  test.each(["CREATE", "ALTER", "OVERWRITE", "TRUNCATE", "RENAME"])("changed by %s alone ends nothing", (change) => {
    expect(changed(change).endings).toEqual([]);
    expect(changed(change).edges).toContain(`${JOB} OUTPUT_TO ${OUT}`);
  });
});
