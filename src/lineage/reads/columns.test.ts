import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createGraph, type TestGraph } from "../graph/graph.fixture.ts";
import { columnGraph } from "./graph-reply.ts";

const database = useDatabase();
const WIDE = { direction: "both", depth: 20, nodesMax: 500, edgesMax: 5_000 } as const;
const IDENTITY = { subtype: "IDENTITY", type: "DIRECT" };
const FILTER = { subtype: "FILTER", type: "INDIRECT" };
const HASHED = { masking: true, subtype: "TRANSFORMATION", type: "DIRECT" };

let graph: TestGraph;
const ids: Record<string, string> = {};

async function look(column: string, direction: "up" | "down" | "both" = "both") {
  const asked = { ...WIDE, node: ids[column] ?? "", direction };
  const answer = await columnGraph(database.db, graph.tenantId, asked, () => performance.now());
  const marks = answer.nodes.map(
    ({ name, isDirect, isMasked }) => `${name}${isDirect ? "" : " indirect"}${isMasked ? " masked" : ""}`,
  );
  return { ...answer, marks: marks.sort() };
}

/** email -> hashed -> report; email -> copy -> leak; country filters report. */
describe("what becomes of a column", () => {
  beforeAll(async () => {
    graph = await createGraph(database, "1");
    for (const name of ["email", "hashed", "report", "copy", "leak", "country"]) {
      ids[name] = await graph.column(`shop.t_${name}.${name}`);
    }
    const { email = "", hashed = "", report = "", copy = "", leak = "", country = "" } = ids;
    await graph.edge(hashed, "DERIVES_FROM", email, [HASHED, FILTER]);
    await graph.edge(report, "DERIVES_FROM", hashed, [IDENTITY]);
    await graph.edge(copy, "DERIVES_FROM", email);
    await graph.edge(leak, "DERIVES_FROM", copy, [IDENTITY]);
    await graph.edge(report, "DERIVES_FROM", country, [FILTER]);
  });

  test("downwards: masked on every way, or in the clear on one", async () => {
    expect((await look("email", "down")).marks).toEqual(["copy", "email", "hashed masked", "leak", "report masked"]);
    const { copy = "", report = "" } = ids;
    await graph.edge(report, "DERIVES_FROM", copy, [FILTER]);
    // One way masks what it lets through, and the other masks nothing but lets nothing through.
    expect((await look("email", "down")).marks).toEqual(["copy", "email", "hashed masked", "leak", "report masked"]);
  });

  test("upwards: what only decides which rows there are is indirect", async () => {
    expect((await look("report", "up")).marks).toEqual([
      "copy indirect",
      "country indirect",
      "email masked",
      "hashed",
      "report",
    ]);
  });

  test("edges carry their transformations, from where values come to where they go", async () => {
    const { edges } = await look("hashed", "up");
    expect(edges).toEqual([
      { from: ids["email"], to: ids["hashed"], kind: "DERIVES_FROM", transformations: [HASHED, FILTER] },
    ]);
  });

  test("metrics that measure a column depend on it, those that filter by it do so indirectly", async () => {
    const [revenue, share] = [await graph.metric("revenue"), await graph.metric("share")];
    await graph.edge(revenue, "MEASURES", ids["leak"] ?? "");
    await graph.edge(share, "FILTERS_BY", ids["leak"] ?? "");
    expect((await look("leak", "down")).marks).toEqual(["leak", "revenue", "share indirect"]);
  });

  test("a table begins with all its columns, each with its own lineage", async () => {
    const [id, total] = [await graph.column("shop.fact.id"), await graph.column("shop.fact.total")];
    await graph.edge(total, "DERIVES_FROM", ids["copy"] ?? "", [IDENTITY]);
    const table = await graph.table("shop.fact");
    const asked = { ...WIDE, node: table, direction: "up", fanout: 5 } as const;
    const { nodes, start } = await columnGraph(database.db, graph.tenantId, asked, () => performance.now());
    expect(start).toBe(table);
    const distances = new Map(nodes.map((node) => [node.id, node.distance]));
    expect([table, id, total, ids["copy"] ?? "", ids["email"] ?? ""].map((one) => distances.get(one))).toEqual([
      0, 0, 0, 1, 2,
    ]);
    // The copy has a child that is not above the table.
    expect(nodes.find((node) => node.id === ids["copy"])).toMatchObject({ isDirect: true, moreUp: 0, moreDown: 2 });
  });

  test("columns in a circle are found once", async () => {
    await graph.edge(ids["email"] ?? "", "DERIVES_FROM", ids["leak"] ?? "", [IDENTITY]);
    const { nodes, edges } = await look("email");
    expect(nodes.map(({ id }) => id)).toEqual([...new Set(nodes.map(({ id }) => id))]);
    const keys = edges.map(({ from, to }) => `${from} ${to}`);
    expect(keys).toEqual([...new Set(keys)]);
  });
});
