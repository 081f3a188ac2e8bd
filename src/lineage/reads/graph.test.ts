import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createGraph, type TestGraph } from "../graph/graph.fixture.ts";
import { type GraphAsked, tableGraph } from "./graph-reply.ts";

const database = useDatabase();
const now = () => performance.now();
let tenants = 0;
let graph: TestGraph;

async function fresh(): Promise<TestGraph> {
  tenants += 1;
  return createGraph(database, String(tenants));
}

const WIDE = { direction: "both", depth: 20, nodesMax: 500, edgesMax: 5_000 } as const;
async function look(node: string, asked: Partial<GraphAsked> = {}, of = graph) {
  const answer = await tableGraph(database.db, of.tenantId, { ...WIDE, ...asked, node }, now);
  const names = new Map(answer.nodes.map(({ id, name }) => [id, name]));
  return {
    ...answer,
    names: answer.nodes.map(({ name }) => name),
    arrows: answer.edges.map(({ from, to }) => `${names.get(from)} -> ${names.get(to)}`).sort(),
  };
}

describe("a chain of four tables with a branch", () => {
  const ids: Record<string, string> = {};
  beforeAll(async () => {
    graph = await fresh();
    for (const name of ["a", "b", "c", "d", "side"]) ids[name] = await graph.table(`shop.${name}`);
    const { a = "", b = "", c = "", d = "", side = "" } = ids;
    await graph.flow([a], [b], "ab");
    await graph.flow([b, side], [c], "bc");
    await graph.flow([c], [d], "cd");
  });

  test("is walked down, with the statements in between, and no way back up again", async () => {
    const { names, arrows, partial, reason, depthReached } = await look("lake.shop.b", { direction: "down" });
    expect(names).toEqual(["b", "bc", "c", "cd", "d"]);
    expect(arrows).toEqual(["b -> bc", "bc -> c", "c -> cd", "cd -> d"]);
    expect({ partial, reason, depthReached }).toEqual({ partial: false, reason: null, depthReached: 2 });
  });

  test("is walked up to everything that a table comes from", async () => {
    const { names } = await look(ids["d"] ?? "", { direction: "up" });
    expect(names.sort()).toEqual(["a", "ab", "b", "bc", "c", "cd", "d", "side"]);
  });

  test("depth counts hops from table to table", async () => {
    const { nodes, depthReached } = await look(ids["b"] ?? "", { depth: 1 });
    expect(nodes.map(({ name, distance }) => `${name} ${distance}`).sort()).toEqual([
      "a 1",
      "ab 1",
      "b 0",
      "bc 1",
      "c 1",
    ]);
    expect(depthReached).toBe(1);
  });

  test("begins at a statement as well, and of a column at its table", async () => {
    const column = await graph.column("shop.b.amount");
    expect((await look("bc", { depth: 1 })).names.sort()).toEqual(["b", "bc", "c", "side"]);
    expect((await look(column, { depth: 1 })).start).toBe(ids["b"]);
  });

  test("does not begin at a catalog", async () => {
    await expect(look("lake")).rejects.toMatchObject({ code: "VALIDATION_FAILED" });
  });

  test("ends where a statement in the middle, or a table, is gone", async () => {
    const of = await fresh();
    const [x, y, z] = [await of.table("shop.x"), await of.table("shop.y"), await of.table("shop.z")];
    const xy = await of.flow([x], [y], "xy");
    await of.flow([y], [z], "yz");
    await of.drop(y);
    expect((await look(x, { direction: "down" }, of)).names).toEqual(["x", "xy"]);
    expect((await look(z, { direction: "up" }, of)).names).toEqual(["z", "yz"]);
    await of.drop(xy);
    expect((await look(x, {}, of)).names).toEqual(["x"]);
    await expect(look(y, {}, of)).rejects.toMatchObject({ code: "ASSET_NOT_FOUND" });
  });
});

test("tables that feed each other are found once, with every edge once", async () => {
  graph = await fresh();
  const [a, b] = [await graph.table("shop.a"), await graph.table("shop.b")];
  await graph.flow([a], [b], "there");
  await graph.flow([b], [a], "back");
  await graph.flow([a], [a], "itself");
  const { names, arrows, partial } = await look(a);
  expect(names.sort()).toEqual(["a", "b", "back", "itself", "there"]);
  expect(arrows).toEqual(["a -> itself", "a -> there", "b -> back", "back -> a", "itself -> a", "there -> b"]);
  expect(partial).toBe(false);
});

test("what feeds a table and is fed by it is walked both ways", async () => {
  graph = await fresh();
  const [a, b, d] = [await graph.table("shop.a"), await graph.table("shop.b"), await graph.table("shop.d")];
  await graph.flow([a], [b], "there");
  await graph.flow([b], [a], "back");
  await graph.flow([b], [d], "on");
  expect((await look(a)).names.sort()).toEqual(["a", "b", "back", "d", "on", "there"]);
});

test("a level with far more edges than assets is not cut as if each led to a new one", async () => {
  graph = await fresh();
  const start = await graph.table("shop.start");
  const targets = [await graph.table("shop.x"), await graph.table("shop.y"), await graph.table("shop.z")];
  await database.query(
    `with made as (
       insert into lineage.node (tenant_id, kind, key, path, name)
       select $1, 'SQL', gen_random_uuid(), array['spark', 'j' || n, 'h'], 'j' || n from generate_series(1, 400) n returning id
     )
     insert into lineage.edge (tenant_id, src, kind, dst, first_at)
     select $1, $2, 'INPUT_OF', id, 1 from made union all
     select $1, id, 'OUTPUT_TO', t, 1 from made cross join unnest($3::int8[]) t`,
    [graph.tenantId, start, targets],
  );
  const { nodes, edges, partial } = await look(start, { nodesMax: 801 });
  expect({ nodes: nodes.length, edges: edges.length, partial }).toEqual({ nodes: 404, edges: 1_600, partial: false });
});

test("metrics depend on the tables of their columns and on other metrics, both ways", async () => {
  graph = await fresh();
  const [raw, orders] = [await graph.table("shop.raw"), await graph.table("shop.orders")];
  await graph.flow([raw], [orders], "load");
  const amount = await graph.column("shop.orders.amount");
  const [revenue, margin] = [await graph.metric("revenue"), await graph.metric("margin")];
  await graph.edge(revenue, "MEASURES", amount);
  await graph.edge(margin, "DERIVED_FROM", revenue);
  const down = await look(raw, { direction: "down" });
  expect(down.arrows).toEqual(["load -> orders", "orders -> revenue", "raw -> load", "revenue -> margin"]);
  expect(down.edges.find(({ kind }) => kind === "MEASURES")).toMatchObject({
    from: orders,
    to: revenue,
    via: "amount",
  });
  expect((await look(margin, { direction: "up" })).arrows).toEqual(down.arrows);
  await graph.drop(amount);
  expect((await look(raw, { direction: "down" })).names).toEqual(["raw", "load", "orders"]);
});

test("a table that tells itself what it comes from needs no job, and a job may follow another without a table", async () => {
  graph = await fresh();
  const [first, second] = [
    await graph.asset({ kind: "JOB", path: ["airflow", "first"] }),
    await graph.asset({ kind: "JOB", path: ["airflow", "second"] }),
  ];
  await graph.edge(second, "DERIVES_FROM", first);
  const [x, y] = [await graph.table("shop.x"), await graph.table("shop.y")];
  await graph.edge(x, "INPUT_OF", first);
  await graph.edge(second, "OUTPUT_TO", y);
  const arrows = ["first -> second", "second -> y", "x -> first"];
  expect((await look(x, { direction: "down" })).arrows).toEqual(arrows);
  expect((await look(y, { direction: "up" })).arrows).toEqual(arrows);
  const [a, b] = [await graph.table("shop.a"), await graph.table("shop.b")];
  await graph.edge(b, "DERIVES_FROM", a);
  expect((await look(a, { direction: "down" })).arrows).toEqual(["a -> b"]);
  expect((await look(b, { direction: "up" })).arrows).toEqual(["a -> b"]);
});

describe("a hub that three hundred statements read", () => {
  let hub = "";
  beforeAll(async () => {
    graph = await fresh();
    hub = await graph.table("shop.hub");
    for (let n = 0; n < 300; n += 1) await graph.flow([hub], [await graph.table(`shop.t${n}`)], `j${n}`);
  });

  test("is shown whole where the limits allow it", async () => {
    const { nodes, edges, partial } = await look(hub, { nodesMax: 601 });
    expect({ nodes: nodes.length, edges: edges.length, partial }).toEqual({ nodes: 601, edges: 600, partial: false });
  });

  test("is cut at the limit of nodes, says so, shows statements with what they write, and the same ones each time", async () => {
    const first = await look(hub, { nodesMax: 100 });
    expect(first).toMatchObject({ partial: true, reason: "NODES", depthReached: 1 });
    expect(first.nodes).toHaveLength(100);
    expect(first.nodes.filter(({ kind }) => kind === "TABLE").length).toBeGreaterThan(40);
    expect((await look(hub, { nodesMax: 100 })).names).toEqual(first.names);
  });

  test("is cut at the limit of edges, which the statement itself knows", async () => {
    const { edges, reason, partial } = await look(hub, { nodesMax: 2_000, edgesMax: 50 });
    expect({ edges: edges.length, reason, partial }).toEqual({ edges: 50, reason: "EDGES", partial: true });
  });

  test("is followed to a few with a fan-out, and tells of each asset how many neighbours are left out", async () => {
    const { nodes, partial } = await look(hub, { depth: 1, fanout: 10 });
    expect(partial).toBe(false);
    expect(nodes).toHaveLength(21);
    const [first, ...others] = nodes.map(({ moreUp, moreDown }) => `${moreUp} ${moreDown}`);
    expect([first, new Set(others)]).toEqual(["0 290", new Set(["0 0"])]);
    expect((await look(hub, { nodesMax: 10 })).nodes[0]).not.toHaveProperty("moreDown");
  });

  test("is cut when the time is over", async () => {
    let ticks = 0;
    const slow = () => {
      ticks += 3_000;
      return ticks;
    };
    const asked = { ...WIDE, node: hub };
    const { reason, nodes } = await tableGraph(database.db, graph.tenantId, asked, slow);
    expect(reason).toBe("TIME");
    expect(nodes).toHaveLength(1);
  });
});

test("a graph goes one hop further where it is expanded, also from what an expansion has brought", async () => {
  graph = await fresh();
  const tables: string[] = [];
  for (const name of ["a", "b", "c", "d"]) tables.push(await graph.table(`shop.${name}`));
  const [a = "", b = "", c = "", d = ""] = tables;
  await graph.flow([a], [b], "ab");
  await graph.flow([b], [c], "bc");
  await graph.flow([c], [d], "cd");
  const side = await graph.table("shop.side");
  const bc = await graph.sql("bc");
  await graph.edge(side, "INPUT_OF", bc);
  const near = { direction: "down", depth: 1, fanout: 10 } as const;
  const begin = await look(a, near);
  expect(begin.nodes.map(({ name, moreUp, moreDown }) => `${name} ${moreUp} ${moreDown}`)).toEqual([
    "a 0 0",
    "ab 0 0",
    "b 0 1",
  ]);
  const down = (id: string) => ({ id, direction: "down" as const });
  const opened = await look(a, { ...near, expand: [down(b), down(c), { id: bc, direction: "up" }, down("999999")] });
  expect(opened.names).toEqual(["a", "ab", "b", "bc", "c", "cd", "d", "side"]);
  expect(opened.nodes.map(({ distance }) => distance)).toEqual([0, 1, 1, 2, 2, 3, 3, 3]);
  // What was not found when its turn came is left alone.
  expect((await look(a, { ...near, expand: [down(c), down(b)] })).names).toEqual(["a", "ab", "b", "bc", "c"]);
});

test("two tenants with the same names see each their own", async () => {
  const [one, two] = [await fresh(), await fresh()];
  for (const of of [one, two]) {
    const target = await of.table(`shop.only_of_${of.tenantId}`);
    await of.flow([await of.table("shop.orders")], [target], "same");
  }
  const { names } = await look("lake.shop.orders", {}, one);
  expect(names.sort()).toEqual([`only_of_${one.tenantId}`, "orders", "same"]);
  const id = await two.table("shop.orders");
  await expect(look(id, {}, one)).rejects.toMatchObject({ code: "ASSET_NOT_FOUND" });
});
