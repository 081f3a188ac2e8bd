import { describe, expect, test } from "vitest";
import { columnLineageFacet, dataset, runEvent, schemaFacet, symlinksFacet } from "../events.fixture.ts";
import { extractedFrom } from "./extracted.fixture.ts";

const PHYSICAL = "TABLE external|hdfs://nn||/w/dw.db/orders";
const HIVE = "TABLE external|hive://m:9083|dw|orders";
const MANAGED = "TABLE gravitino|hive|dw|orders";

const orders = (...identifiers: Parameters<typeof symlinksFacet>) =>
  dataset("hdfs://nn", "/w/dw.db/orders", { ...schemaFacet(["id"]), ...symlinksFacet(...identifiers) });

describe("a dataset with a symlink of the type TABLE", () => {
  test("is that table, and where it lies is another name of it", () => {
    const facts = extractedFrom(runEvent({ outputs: [orders(["hive://m:9083", "dw.orders"])] }));
    expect(facts.nodes[HIVE]).toMatchObject({ namespace: "hive://m:9083", datasetName: "dw.orders" });
    expect(facts.nodes).toHaveProperty(["COLUMN external|hive://m:9083|dw|orders|id"]);
    expect(facts.edges).toEqual([`JOB spark|daily.load OUTPUT_TO ${HIVE}`]);
    expect(facts.aliases).toEqual([`${PHYSICAL} -> ${HIVE}`]);
    expect(facts.mentions.sort()).toEqual([PHYSICAL, HIVE].sort());
  });

  test.each(["gravitino://lake/hive", "gravitino://tenant/7/lake/hive"])(
    "is a table of Gravitino where the job is in one of its catalogs: %s",
    (jobNamespace) => {
      const facts = extractedFrom(runEvent({ jobNamespace, outputs: [orders(["hive://m:9083", "dw.orders"])] }));
      expect(facts.nodes).toHaveProperty([MANAGED]);
      expect(facts.nodes["CATALOG gravitino|hive"]).toEqual({ metalake: "lake" });
      expect(facts.aliases).toEqual([`${PHYSICAL} -> ${MANAGED}`, `${HIVE} -> ${MANAGED}`]);
    },
  );

  test("is external where the job names no catalog, or the name is not that of a schema and table", () => {
    const inTenant = runEvent({
      jobNamespace: "gravitino://tenant/7",
      outputs: [orders(["hive://m:9083", "dw.orders"])],
    });
    expect(extractedFrom(inTenant).nodes).toHaveProperty([HIVE]);
    const path = runEvent({ jobNamespace: "gravitino://lake/hive", outputs: [orders(["s3://b", "w/orders.v1"])] });
    expect(extractedFrom(path).nodes).toHaveProperty(["TABLE external|s3://b||w/orders.v1"]);
  });

  test("and several of them is the same table in whatever order they are listed", () => {
    const glue = ["arn:aws:glue:eu:1", "table/dw/orders"] as const;
    const path = ["file:/w", "dw.orders"] as const;
    const hive = ["hive://m:9083", "dw.orders"] as const;
    for (const identifiers of [
      [path, hive, glue],
      [glue, hive, path],
      [hive, path, glue],
    ]) {
      const facts = extractedFrom(runEvent({ outputs: [orders(...identifiers)] }));
      expect(facts.nodes).toHaveProperty(["TABLE external|arn:aws:glue:eu:1|dw|orders"]);
      expect(facts.aliases).toHaveLength(3);
    }
  });

  test("stays the table that Gravitino itself names, and the symlink is another name of it", () => {
    const named = (namespace: string, jobNamespace: string) => {
      const output = dataset(namespace, "dw.orders", symlinksFacet(["hive://m:9083", "dw.orders"]));
      return extractedFrom(runEvent({ jobNamespace, outputs: [output] }));
    };
    for (const jobNamespace of ["spark", "gravitino://lake/hive"]) {
      expect(named("gravitino://lake/hive", jobNamespace).aliases).toEqual([`${HIVE} -> ${MANAGED}`]);
    }
    const other = named("gravitino://lake/lakehouse", "gravitino://lake/hive");
    expect(other.nodes).toHaveProperty(["TABLE gravitino|lakehouse|dw|orders"]);
    expect(other.aliases).toEqual([`${HIVE} -> TABLE gravitino|lakehouse|dw|orders`]);
  });

  test("of two that Gravitino names is the same whichever is its own", () => {
    const [one, other] = ["gravitino://lake/a", "gravitino://lake/b"];
    for (const [own, symlink] of [
      [one, other],
      [other, one],
    ] as [string, string][]) {
      const facts = extractedFrom(runEvent({ outputs: [dataset(own, "dw.t", symlinksFacet([symlink, "dw.t"]))] }));
      expect(facts.aliases).toEqual(["TABLE gravitino|b|dw|t -> TABLE gravitino|a|dw|t"]);
    }
  });

  test("that is its own name has no other", () => {
    const facts = extractedFrom(
      runEvent({ outputs: [dataset("hive://m:9083", "dw.orders", symlinksFacet(["hive://m:9083", "dw.orders"]))] }),
    );
    expect(facts.aliases).toEqual([]);
  });
});

test("a symlink of the type LOCATION is another name of the dataset", () => {
  const facts = extractedFrom(
    runEvent({
      outputs: [dataset("hive://m:9083", "dw.orders", symlinksFacet(["hdfs://nn", "/w/dw.db/orders", "LOCATION"]))],
    }),
  );
  expect(facts.nodes).toHaveProperty([HIVE]);
  expect(facts.aliases).toEqual([`${PHYSICAL} -> ${HIVE}`]);
});

describe("column lineage finds a table", () => {
  const facts = (namespace: string, name: string) =>
    extractedFrom(
      runEvent({
        inputs: [orders(["hive://m:9083", "dw.orders"])],
        outputs: [dataset("file", "/w/out", columnLineageFacet({ id: [[namespace, name, "id"]] }))],
      }),
    );
  const from = "COLUMN external|file||/w/out|id DERIVES_FROM COLUMN";

  test.each([
    ["hdfs://nn", "/w/dw.db/orders"],
    ["hive://m:9083", "dw.orders"],
  ])("by its own name and by its symlink: %s %s", (namespace, name) => {
    expect(facts(namespace, name).edges).toContain(`${from} external|hive://m:9083|dw|orders|id`);
  });

  test("of Gravitino by its symlink, which alone does not tell that it is one", () => {
    const { edges } = extractedFrom(
      runEvent({
        jobNamespace: "gravitino://lake/hive",
        inputs: [orders(["hive://m:9083", "dw.orders"])],
        outputs: [dataset("file", "/w/out", columnLineageFacet({ id: [["hive://m:9083", "dw.orders", "id"]] }))],
      }),
    );
    expect(edges).toContain(`${from} gravitino|hive|dw|orders|id`);
  });

  test("that the event does not list, under the name it uses", () => {
    const { edges, mentions, nodes } = facts("s3://bucket", "raw.parquet");
    expect(edges).toContain(`${from} external|s3://bucket||raw.parquet|id`);
    expect(mentions).toContain("TABLE external|s3://bucket||raw.parquet");
    expect(nodes).not.toHaveProperty(["TABLE external|s3://bucket||raw.parquet"]);
  });
});

test("a table of Gravitino is known by its namespace, in each of its forms", () => {
  for (const namespace of ["gravitino://lake/hive", "gravitino://tenant/7/lake/hive"]) {
    const facts = extractedFrom(runEvent({ outputs: [dataset(namespace, "dw.orders")] }));
    expect(facts.nodes[MANAGED]).not.toHaveProperty("namespace");
    expect(facts.nodes["CATALOG gravitino|hive"]).toEqual({ metalake: "lake" });
  }
});
