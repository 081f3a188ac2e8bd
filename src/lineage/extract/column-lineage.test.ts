import { describe, expect, test } from "vitest";
import { columnLineageFacet, dataset, type Json, runEvent, symlinksFacet } from "../events.fixture.ts";
import { extractedFrom } from "./extracted.fixture.ts";

const facts = (facets: Json) => extractedFrom(runEvent({ outputs: [dataset("file", "/w/out", facets)] }));
const from = (column: string, source: string) =>
  `COLUMN external|file||/w/out|${column} DERIVES_FROM COLUMN external|file||/w/a|${source}`;

describe("column lineage", () => {
  const ofThree = columnLineageFacet({ a: [["file", "/w/a", "x"]], b: [["file", "/w/b", "x"]] }, [
    ["file", "/w/c", "dt"],
    ["file", "/w/out", "dt"],
  ]);
  const tables = (edges: string[]) => edges.filter((edge) => !edge.includes("COLUMN")).sort();

  test("without inputs tells that the tables of its columns feed the job, as dbt and Dagster mean it", () => {
    expect(tables(facts(ofThree).edges)).toEqual([
      "JOB spark|daily.load OUTPUT_TO TABLE external|file||/w/out",
      ...["a", "b", "c"].map((name) => `TABLE external|file||/w/${name} INPUT_OF JOB spark|daily.load`),
    ]);
  });

  test("beside inputs adds the tables that these leave out, under the name of their symlink", () => {
    const inputs = [dataset("file", "/w/a", symlinksFacet(["hive://m:1", "dw.a"]))];
    const { edges } = extractedFrom(runEvent({ inputs, outputs: [dataset("file", "/w/out", ofThree)] }));
    expect(tables(edges).filter((edge) => edge.includes("INPUT_OF"))).toEqual([
      "TABLE external|file||/w/b INPUT_OF JOB spark|daily.load",
      "TABLE external|file||/w/c INPUT_OF JOB spark|daily.load",
      "TABLE external|hive://m:1|dw|a INPUT_OF JOB spark|daily.load",
    ]);
  });

  test("that no job tells, or that is told of an input, leads from table to table", () => {
    const derived = ["a", "b", "c"].map(
      (name) => `TABLE external|file||/w/out DERIVES_FROM TABLE external|file||/w/${name}`,
    );
    const event = { eventTime: "2026-03-01T10:00:00Z", dataset: dataset("file", "/w/out", ofThree) };
    expect(tables(extractedFrom(event).edges)).toEqual(derived);
    const { edges } = extractedFrom(runEvent({ inputs: [dataset("file", "/w/out", ofThree)] }));
    expect(tables(edges)).toEqual([...derived, "TABLE external|file||/w/out INPUT_OF JOB spark|daily.load"]);
  });

  test.each([
    ["empty texts", { transformationType: "", transformationDescription: "" }],
    ["blanks", { transformationType: " ", transformationDescription: "\n" }],
    ["an empty type alone", { transformationType: "" }],
    ["an empty description alone", { transformationDescription: "" }],
    ["nulls", { transformationType: null, transformationDescription: null }],
    ["something else", { transformationType: 1, transformationDescription: {} }],
  ])("whose deprecated fields are %s does not say how a column comes from another", (_, deprecated) => {
    const input = { namespace: "file", name: "/w/a", field: "x" };
    const blank = { ...input, transformations: [{ type: "", subtype: "" }, { type: " " }] };
    const { transformations } = facts({
      columnLineage: {
        fields: {
          none: { inputFields: [input], ...deprecated },
          listed: { inputFields: [{ ...input, transformations: [] }], ...deprecated },
          blank: { inputFields: [blank], ...deprecated },
        },
      },
    });
    for (const column of ["none", "listed", "blank"]) expect(transformations[from(column, "x")], column).toEqual([]);
  });

  test("of version 1-0 has one transformation for each output column", () => {
    const inputFields = [{ namespace: "file", name: "/w/a", field: "x" }];
    const { transformations } = facts({
      columnLineage: {
        fields: {
          same: { inputFields, transformationType: "IDENTITY", transformationDescription: "x" },
          masked: { inputFields, transformationType: "MASKED" },
          described: { inputFields, transformationDescription: "upper(x)" },
          silent: { inputFields },
        },
      },
    });
    expect(transformations).toEqual({
      "JOB spark|daily.load OUTPUT_TO TABLE external|file||/w/out": [],
      "TABLE external|file||/w/a INPUT_OF JOB spark|daily.load": [],
      [from("same", "x")]: ['{"description":"x","subtype":"IDENTITY","type":"DIRECT"}'],
      [from("masked", "x")]: ['{"masking":true,"subtype":"TRANSFORMATION","type":"DIRECT"}'],
      [from("described", "x")]: ['{"description":"upper(x)","type":"DIRECT"}'],
      [from("silent", "x")]: [],
    });
  });

  test("of version 1-1 has any number of them for each input column, which stand before the old ones", () => {
    const group = { type: "INDIRECT", subtype: "GROUP_BY", description: "", masking: false };
    const identity = { type: "DIRECT", subtype: "IDENTITY" };
    const facet = columnLineageFacet({ a: [["file", "/w/a", "x", [identity, group, identity, { subtype: "NONE" }]]] });
    const lineage = facet["columnLineage"] as { fields: { a: Json } };
    lineage.fields.a["transformationType"] = "MASKED";
    expect(facts(facet).transformations[from("a", "x")]).toEqual([
      '{"subtype":"GROUP_BY","type":"INDIRECT"}',
      '{"subtype":"IDENTITY","type":"DIRECT"}',
    ]);
  });

  test("of version 1-2 also tells on which columns the table as a whole depends", () => {
    const filter = [{ type: "INDIRECT", subtype: "FILTER" }];
    const { transformations } = facts(
      columnLineageFacet({ a: [["file", "/w/a", "x"]] }, [["file", "/w/a", "dt", filter]]),
    );
    expect(transformations["TABLE external|file||/w/out DERIVES_FROM COLUMN external|file||/w/a|dt"]).toEqual([
      '{"subtype":"FILTER","type":"INDIRECT"}',
    ]);
    expect(transformations).toHaveProperty([from("a", "x")]);
  });

  test("that names the same input column twice is one edge with the transformations of both", () => {
    const facet = columnLineageFacet({
      a: [
        ["file", "/w/a", "x", [{ type: "INDIRECT", subtype: "JOIN" }]],
        ["file", "/w/a", "x", [{ type: "DIRECT", subtype: "IDENTITY" }]],
      ],
    });
    expect(facts(facet).transformations[from("a", "x")]).toEqual([
      '{"subtype":"IDENTITY","type":"DIRECT"}',
      '{"subtype":"JOIN","type":"INDIRECT"}',
    ]);
  });

  test("is bounded", () => {
    const many = Array.from({ length: 50_010 }, (_, index) => ["file", "/w/a", `x${index}`] as const);
    const { edges, warnings } = facts(columnLineageFacet({ a: many }));
    expect(edges).toHaveLength(50_002);
    expect(warnings).toEqual(["/outputs/0/facets/columnLineage names more than 50000 columns; the rest was left out."]);
  });
});
