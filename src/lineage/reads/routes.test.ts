import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import type { Http } from "../../kernel/http/server.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createGraph, lakeTable, type TestGraph } from "../graph/graph.fixture.ts";
import { readRoutes } from "./routes.ts";

const database = useDatabase();
let http: TestHttp;
let graph: TestGraph;
let other: TestGraph;
/** Bound to the first tenant. */
let boundKey = "";
const ids: Record<string, string> = {};

beforeAll(async () => {
  http = await startHttp({
    db: database.db,
    routes: (server) =>
      void server.register(async (api) => readRoutes(api as Http, { db: database.db, clock: systemClock }), {
        prefix: "/api/v1/lineage",
      }),
  });
  const created = await database.db.tx((tx) =>
    http.keys.create(tx, { name: "reader", scopes: ["lineage:read"], tenantId: 1 }, "test"),
  );
  boundKey = created.key;
  [graph, other] = [await createGraph(database, "1"), await createGraph(database, "2")];
  ids["raw"] = await graph.table("shop.raw");
  ids["orders"] = await graph.table("shop.orders", {
    description: "All orders",
    owners: [{ name: "team:shop", type: "OWNER" }],
  });
  ids["report"] = await graph.table("shop.report", { description: "=1+1", owners: ["ann", "bob"] });
  ids["load"] = await graph.flow([ids["raw"]], [ids["orders"]], "load");
  ids["build"] = await graph.flow([ids["orders"]], [ids["report"]], "build");
  ids["amount"] = await graph.column("shop.orders.amount", { position: 2, dataType: "decimal" });
  ids["key"] = await graph.column("shop.orders.key", { position: 1 });
  ids["tag"] = await graph.tag("pii");
  await graph.edge(ids["orders"], "HAS_TAG", ids["tag"]);
  await database.query(
    "insert into lineage.execution_count (tenant_id, node_id, executions, last_at) values (1, $1, 3, $2)",
    [ids["build"], Date.parse("2026-01-01T00:00:00Z") * 1_000],
  );
  ids["foreignDropped"] = await other.table("shop.retired");
  await other.drop(ids["foreignDropped"]);
  ids["foreign"] = await other.table("shop.orders", { description: "of the other tenant" });
});
afterAll(() => http.stop());

async function get(path: string, headers: Record<string, string> = {}) {
  const tenant =
    path.includes("tenant=") || path.startsWith("/tenants") ? "" : `${path.includes("?") ? "&" : "?"}tenant=1`;
  return http.send(`/api/v1/lineage${path}${tenant}`, { headers });
}
const bound = () => ({ authorization: `Bearer ${boundKey}` });
/** Whatever its fields are: those that a test looks at are texts. */
type Row = Record<string, string>;
const items = ({ body }: { body: Json }) => body["items"] as Row[];

describe("an asset", () => {
  test("is shown with what lies above and below it, beside it, and with the events that named it", async () => {
    const named = lakeTable("shop.orders");
    await graph.event({ time: "2024-05-01T00:00:00Z", names: [lakeTable("shop.older")], job: "first" });
    await graph.event({ time: "2024-05-02T00:00:00.123456Z", names: [lakeTable("shop.old")], job: "second" });
    await graph.event({ time: "2024-05-03T00:00:00Z", names: [named, lakeTable("shop.raw")], job: "third" });
    await graph.event({ time: "2024-05-04T00:00:00Z", names: [lakeTable("shop.raw")], job: "another" });
    await graph.renamed(lakeTable("shop.older"), lakeTable("shop.old"));
    await graph.renamed(lakeTable("shop.old"), named);
    const { status, body } = await get(`/assets/${ids["orders"]}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: ids["orders"],
      kind: "TABLE",
      name: "orders",
      fullName: "lake.shop.orders",
      description: "All orders",
      parents: [
        { kind: "CATALOG", name: "lake" },
        { kind: "SCHEMA", name: "shop" },
      ],
      tags: [{ id: ids["tag"], name: "pii" }],
      neighbours: { readBy: 1, writtenBy: 1 },
      otherNames: 2,
      executions: 0,
      lastSeenAt: "2024-05-03T00:00:00.000000Z",
    });
    expect((body["columns"] as Row[]).map(({ name }) => name)).toEqual(["key", "amount"]);
    expect((body["history"] as Row[]).map(({ jobName, eventTime }) => `${jobName} ${eventTime}`)).toEqual([
      "third 2024-05-03T00:00:00.000000Z",
      "second 2024-05-02T00:00:00.123456Z",
      "first 2024-05-01T00:00:00.000000Z",
    ]);
  });

  test("that is a column has the history of its table", async () => {
    const { body } = await get(`/assets/${ids["amount"]}`);
    expect((body["history"] as Row[]).map(({ jobName }) => jobName)).toEqual(["third", "second", "first"]);
  });

  test("is found by its whole name, by its own, and within a parent", async () => {
    expect(items(await get("/assets?name=lake.shop.orders")).map(({ id }) => id)).toEqual([ids["orders"]]);
    expect(items(await get("/assets?name=orders&kind=TABLE")).map(({ id }) => id)).toEqual([ids["orders"]]);
    expect(items(await get("/assets?name=orders&kind=COLUMN"))).toEqual([]);
    const [schema] = items(await get("/assets?kind=SCHEMA&name=shop"));
    expect(items(await get(`/assets?parent=${schema?.["id"]}`)).map(({ name }) => name)).toEqual([
      "orders",
      "raw",
      "report",
    ]);
  });

  test("is listed page by page, each once, in the order of kind and name", async () => {
    const seen: string[] = [];
    let cursor = "";
    do {
      const { body } = await get(`/assets?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
      seen.push(...(body["items"] as Row[]).map(({ kind, name }) => `${kind} ${name}`));
      cursor = (body["next"] as string | null) ?? "";
    } while (cursor !== "");
    expect(seen).toEqual([
      "CATALOG lake",
      "COLUMN amount",
      "COLUMN key",
      "SCHEMA shop",
      "SQL build",
      "SQL load",
      "TABLE orders",
      "TABLE raw",
      "TABLE report",
      "TAG pii",
    ]);
  });
});

describe("impact", () => {
  test("lists what is reached, the nearest first, with owner and way", async () => {
    const { body } = await get("/impact?node=lake.shop.raw");
    expect(body).toMatchObject({ start: ids["raw"], partial: false, reason: null });
    expect(items({ body }).map(({ name, distance, owner, via }) => ({ name, distance, owner, via }))).toEqual([
      { name: "load", distance: 1, owner: null, via: [] },
      { name: "orders", distance: 1, owner: "team:shop", via: ["spark/load"] },
      { name: "build", distance: 2, owner: null, via: ["spark/load", "lake.shop.orders"] },
      { name: "report", distance: 2, owner: "ann, bob", via: ["spark/load", "lake.shop.orders", "spark/build"] },
    ]);
  });

  test("as CSV opens in a spreadsheet, and runs nothing there", async () => {
    const { status, headers, body } = await get(`/impact?node=${ids["orders"]}&format=csv`);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(headers.get("x-partial")).toBe("false");
    expect(headers.get("content-disposition")).toBe(`attachment; filename="impact-${ids["orders"]}.csv"`);
    expect(body["text"]).toBe(
      [
        "distance,kind,id,name,owner,via,description,transformations,lastRunAt",
        `1,SQL,${ids["build"]},spark/build,,,,,2026-01-01T00:00:00.000000Z`,
        `1,TABLE,${ids["report"]},lake.shop.report,"ann, bob",spark/build,'=1+1,,2026-01-01T00:00:00.000000Z`,
        "",
      ].join("\r\n"),
    );
  });
});

describe("neighbours", () => {
  test("are what writes a table and what reads it, with their runs", async () => {
    expect(items(await get(`/assets/${ids["orders"]}/neighbours?direction=up`))).toMatchObject([
      { id: ids["load"], relation: "OUTPUT_TO", executions: null, lastRunAt: null },
    ]);
    expect(items(await get(`/assets/${ids["orders"]}/neighbours?direction=down`))).toMatchObject([
      { id: ids["build"], relation: "INPUT_OF", executions: 3, lastRunAt: "2026-01-01T00:00:00.000000Z" },
    ]);
  });

  test("come page by page, each once, and are found by a part of the name", async () => {
    const many = await createGraph(database, "5");
    const hub = await many.table("shop.hub");
    for (let n = 0; n < 12; n += 1) await many.flow([hub], [], `report_${n}`);
    const derived = await many.table("shop.derived");
    await many.edge(derived, "DERIVES_FROM", hub);
    const seen: unknown[] = [];
    let cursor: string | null = null;
    do {
      const at: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { body } = await get(`/assets/${hub}/neighbours?direction=down&limit=5&tenant=5${at}`);
      seen.push(...items({ body }).map(({ name }) => name));
      cursor = body["next"] as string | null;
    } while (cursor !== null);
    expect(seen).toEqual(["derived", ...Array.from({ length: 12 }, (_, n) => `report_${n}`)]);
    const found = await get(`/assets/${hub}/neighbours?direction=down&q=PORT_1&tenant=5`);
    expect(items(found).map(({ name }) => name)).toEqual(["report_1", "report_10", "report_11"]);
    expect(found.body["next"]).toBeNull();
  });
});

describe("paths between two assets", () => {
  test("are found in either direction", async () => {
    const { body } = await get("/paths?from=raw&to=report");
    const way = [ids["raw"], ids["load"], ids["orders"], ids["build"], ids["report"]];
    expect(body).toMatchObject({ direction: "down", pathCount: 1, partial: false, paths: [way] });
    expect(new Set((body["nodes"] as Row[]).map(({ id }) => id))).toEqual(new Set(way));
    expect(body["edges"]).toHaveLength(4);
    expect((await get("/paths?from=report&to=raw")).body).toMatchObject({ direction: "up", paths: [way] });
  });

  test("are told as none, of a column by its table, and of two columns by their own lineage", async () => {
    const alone = await graph.table("shop.alone");
    expect((await get(`/paths?from=raw&to=${alone}`)).body).toMatchObject({ direction: null, pathCount: 0, paths: [] });
    expect((await get(`/paths?from=${ids["amount"]}&to=report`)).body).toMatchObject({ from: ids["orders"] });
    const total = await graph.column("shop.report.total");
    expect((await get(`/paths?from=amount&to=${total}`)).body).toMatchObject({ direction: null });
    await graph.edge(total, "DERIVES_FROM", ids["amount"] ?? "", [{ type: "DIRECT", subtype: "IDENTITY" }]);
    expect((await get(`/paths?from=amount&to=${total}`)).body).toMatchObject({ paths: [[ids["amount"], total]] });
    const [affected] = items(await get("/impact?node=amount"));
    expect(affected).toMatchObject({
      id: total,
      owner: "ann, bob",
      transformations: [{ type: "DIRECT", subtype: "IDENTITY" }],
    });
  });
});

describe("events", () => {
  beforeAll(async () => {
    const run = "0190b7ef-0000-7000-8000-000000000001";
    for (let n = 0; n < 7; n += 1) {
      const type = n === 3 ? "FAIL" : "COMPLETE";
      await other.event({ time: "2024-06-01T00:00:00.000001Z", job: `j${n}`, type, run: n === 2 ? run : null });
    }
    const body = '{ "b": 1.0, "a": [] }';
    await other.event({
      time: "2024-06-02T00:00:00Z",
      kind: "JOB_EVENT",
      type: null,
      state: "DEAD",
      error: "why",
      body,
    });
  });
  const jobs = async (query: string) => {
    const answer = await get(`/events?tenant=2${query}`);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return items(answer).map(({ jobName }) => jobName);
  };

  test("come newest first, page by page, even where many are of the same moment", async () => {
    const seen: unknown[] = [];
    let cursor: string | null = null;
    do {
      const { body } = await get(`/events?tenant=2&limit=3${cursor === null ? "" : `&cursor=${cursor}`}`);
      seen.push(...items({ body }).map(({ jobName }) => jobName));
      cursor = body["next"] as string | null;
    } while (cursor !== null);
    expect(seen).toEqual(["daily", "j6", "j5", "j4", "j3", "j2", "j1", "j0"]);
  });

  test("are narrowed by run, job, kind, type, state and time", async () => {
    expect(await jobs("&run=0190b7ef-0000-7000-8000-000000000001")).toEqual(["j2"]);
    expect(await jobs("&jobNamespace=spark&job=j5")).toEqual(["j5"]);
    expect(await jobs("&kind=JOB_EVENT")).toEqual(["daily"]);
    expect(await jobs("&type=FAIL")).toEqual(["j3"]);
    expect(await jobs("&state=DEAD")).toEqual(["daily"]);
    expect(await jobs("&state=SKIPPED")).toEqual([]);
    expect(await jobs("&from=2024-06-01T12:00:00%2B00:00")).toEqual(["daily"]);
    expect(await jobs("&to=2024-06-01T12:00:00Z&limit=1")).toEqual(["j6"]);
  });

  test("of an asset are those that name it", async () => {
    const { body } = await get(`/events?asset=${ids["orders"]}&limit=2`);
    expect(items({ body }).map(({ jobName }) => jobName)).toEqual(["third", "second"]);
    const second = await get(`/events?asset=${ids["orders"]}&limit=2&cursor=${String(body["next"])}`);
    expect(items(second).map(({ jobName }) => jobName)).toEqual(["first"]);
    expect(second.body["next"]).toBeNull();
  });

  test("that could not be applied are dead letters, shown with the exact text that came", async () => {
    const [dead, ...rest] = items(await get("/dead-letters?tenant=2"));
    expect(rest).toEqual([]);
    expect(dead).toMatchObject({ state: "DEAD", error: "why" });
    const { body } = await get(`/events/${dead?.["id"]}?tenant=2`);
    expect(body).toMatchObject({ kind: "JOB_EVENT", body: '{ "b": 1.0, "a": [] }', event: { b: 1, a: [] } });
  });
});

test("statistics count what there is", async () => {
  await other.event({ time: new Date().toISOString(), job: "now" });
  const { status, body } = await get("/tenants/2/statistics");
  expect(status).toBe(200);
  expect(body).toMatchObject({
    assets: { CATALOG: 1, SCHEMA: 1, TABLE: 1, SQL: 0 },
    edges: 0,
    events: { last24Hours: 1, last7Days: 1, buffered: 0, dead: 1 },
    tasks: [],
  });
  const { byHour } = body["events"] as { byHour: object[] };
  expect(byHour).toHaveLength(168);
  expect(byHour.at(-1)).toMatchObject({ count: 1 });
});

describe("a key that is bound to a tenant", () => {
  test("needs not name it, and reads nothing else", async () => {
    const mine = await http.send("/api/v1/lineage/graph?node=lake.shop.orders&depth=1", { headers: bound() });
    expect((mine.body["nodes"] as Row[]).map(({ name = "" }) => name).sort()).toEqual([
      "build",
      "load",
      "orders",
      "raw",
      "report",
    ]);
    for (const path of READS) {
      const { status, body } = await get(path.includes("?") ? `${path}&tenant=2` : `${path}?tenant=2`, bound());
      expect([status, body["code"]], path).toEqual([404, "TENANT_NOT_FOUND"]);
    }
    expect((await get("/tenants/2/statistics", bound())).body["code"]).toBe("TENANT_NOT_FOUND");
    expect((await get("/tenants/1/statistics", bound())).status).toBe(200);
  });

  test("does not reach another tenant's assets and events by their ids", async () => {
    const [event] = items(await get("/events?tenant=2"));
    const foreign = ids["foreign"] ?? "";
    for (const path of [
      `/assets/${foreign}`,
      `/assets?parent=${foreign}`,
      `/graph?node=${foreign}`,
      `/columns/graph?node=${foreign}`,
      `/impact?node=${foreign}`,
      `/assets/${foreign}/neighbours?direction=up`,
      `/paths?from=orders&to=${foreign}`,
      `/events?asset=${foreign}`,
      `/assets/${ids["foreignDropped"]}`,
      `/events?asset=${ids["foreignDropped"]}`,
      `/events/${event?.["id"]}`,
    ]) {
      expect((await http.send(`/api/v1/lineage${path}`, { headers: bound() })).status, path).toBe(404);
    }
    const { body } = await http.send("/api/v1/lineage/search?q=orders", { headers: bound() });
    expect(items({ body }).map(({ description }) => description)).not.toContain("of the other tenant");
  });
});

const READS = [
  "/search?q=x",
  "/assets",
  "/assets/1",
  "/graph?node=1",
  "/columns/graph?node=1",
  "/impact?node=1",
  "/assets/1/neighbours?direction=up",
  "/paths?from=1&to=2",
  "/events",
  "/events/1",
  "/dead-letters",
];

test("a key without a tenant must name one, and it must be there", async () => {
  for (const path of READS) {
    const { status, body } = await http.send(`/api/v1/lineage${path}`);
    expect([status, body["code"]], path).toEqual([400, "VALIDATION_FAILED"]);
    expect(body["error"], path).toContain("tenant=ID");
    for (const tenant of ["3", "-1", "01", "x", "9999999999999999999"]) {
      const asked = `${path}${path.includes("?") ? "&" : "?"}tenant=${tenant}`;
      expect((await http.send(`/api/v1/lineage${asked}`)).body["code"], asked).toBe("TENANT_NOT_FOUND");
    }
  }
});

test.each([
  ["/search", 400],
  ["/search?q=", 400],
  ["/search?q=x&kind=NONE", 400],
  ["/search?q=x&limit=101", 400],
  ["/search?q=x&mode=semantic", 409],
  ["/search?q=%27%3B--", 200],
  ["/assets?limit=0", 400],
  ["/assets?cursor=junk", 400],
  [`/assets?cursor=${Buffer.from('["a","b","-1"]').toString("base64url")}`, 400],
  [`/assets?cursor=${Buffer.from('["a","\\u0000","1"]').toString("base64url")}`, 400],
  ["/assets?parent=99999", 404],
  ["/assets?parent=x", 404],
  ["/assets?name=%00", 400],
  ["/assets/0", 404],
  ["/assets/x", 404],
  ["/assets/9223372036854775808", 404],
  ["/assets/99999999999999999999999", 404],
  ["/graph", 400],
  ["/graph?node=nothing", 404],
  ["/graph?node=orders&depth=0", 400],
  ["/graph?node=orders&depth=21", 400],
  ["/graph?node=orders&depth=1e9", 400],
  ["/graph?node=orders&maxNodes=2001", 400],
  ["/graph?node=orders&maxEdges=10001", 400],
  ["/graph?node=orders&direction=sideways", 400],
  ["/graph?node=orders&depht=3", 400],
  ["/graph?node=9223372036854775808", 404],
  [`/graph?node=${"a.".repeat(500)}`, 404],
  ["/graph?node=shop", 400],
  ["/columns/graph?node=load", 400],
  ["/columns/graph?node=amount&depth=21", 400],
  ["/graph?node=orders&fanout=0", 400],
  ["/graph?node=orders&fanout=3&expand=1:up,2:down", 200],
  ["/graph?node=orders&expand=x", 400],
  ["/assets/x/neighbours?direction=up", 404],
  ["/assets/1/neighbours", 400],
  ["/assets/1/neighbours?direction=both", 400],
  ["/assets/1/neighbours?direction=up&cursor=x", 400],
  ["/assets/1/neighbours?direction=up&q=%00", 400],
  ["/paths?from=orders", 400],
  ["/paths?from=orders&to=orders", 400],
  ["/paths?from=orders&to=nothing", 404],
  ["/paths?from=orders&to=shop", 400],
  ["/impact?node=shop", 400],
  ["/impact?node=orders&format=xml", 400],
  ["/events?run=x", 400],
  ["/events?job=x", 400],
  ["/events?asset=x", 404],
  ["/events?asset=1&state=DEAD", 400],
  ["/events?state=LOST", 400],
  ["/events?from=yesterday", 400],
  ["/events?cursor=1", 400],
  ["/events?cursor=99999999999999999-1", 200],
  ["/events?cursor=-99999999999999999-1", 200],
  ["/events?cursor=1-9223372036854775808", 400],
  ["/events/x", 404],
  ["/events/9223372036854775808", 404],
  ["/dead-letters?cursor=x", 400],
])("%s is answered with %i and a sentence", async (path, expected) => {
  const { status, body } = await get(path);
  expect(status, JSON.stringify(body)).toBe(expected);
  if (status >= 400) expect(body["error"]).toMatch(/\.$/);
});

test("a walk waits for a connection once: none of its statements asks the pool", async () => {
  let walks = 0;
  const refuse = () => Promise.reject(new Error("a statement of a walk asked the pool"));
  const db = {
    ...database.db,
    read: refuse,
    reading: (work: Parameters<typeof database.db.reading>[0]) => {
      walks += 1;
      return database.db.reading(work);
    },
  } as typeof database.db;
  const strict = await startHttp({
    db: database.db,
    routes: (server) =>
      void server.register(async (api) => readRoutes(api as Http, { db, clock: systemClock }), { prefix: "/l" }),
  });
  const paths = [
    "/graph?node=shop.orders",
    "/columns/graph?node=shop.orders.amount",
    "/paths?from=shop.raw&to=shop.report",
    "/impact?node=shop.raw&format=json",
  ];
  for (const path of paths) expect((await strict.send(`/l${path}&tenant=1`)).status, path).toBe(200);
  expect(walks).toBe(paths.length);
  await strict.stop();
});
