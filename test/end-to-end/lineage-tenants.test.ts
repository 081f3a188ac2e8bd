/** Tenants with the same names never touch: not in the graph, not by SQL, and not by any route with a key of another. */
import { beforeAll, describe, expect, test } from "vitest";
import {
  columnLineageFacet,
  dataset,
  gravitinoEvent,
  lifecycleFacet,
  runEvent,
  schemaFacet,
} from "../../src/lineage/events.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import { type Api, api, type Json } from "../client.ts";
import { useDatabase } from "../database.ts";
import { makeTenant, postEvent, type TestTenant } from "../lineage-process.ts";
import { useMillrace } from "../millrace.ts";
import { example, type Operation, operationsOf, pathOf, readDocument } from "./operations.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const lineage = testLineage(database);
let [mine, theirs]: TestTenant[] = [];
let own: Api;

const SECRET = "secretcolumn";
const HIVE = (id: number) => `gravitino://tenant/${id}/lake/hive`;

/** The same tables and jobs for each tenant; one has a column that the other must never hear of. */
async function tellOf({ id, keys }: TestTenant, columns: readonly string[]): Promise<void> {
  const table = gravitinoEvent("create_table", { tenantId: id, name: "dw.orders", facets: schemaFacet(columns) });
  const [column = ""] = columns;
  const copy = runEvent({
    inputs: [dataset(HIVE(id), "dw.orders")],
    outputs: [dataset(HIVE(id), "dw.daily", columnLineageFacet({ [column]: [[HIVE(id), "dw.orders", column]] }))],
  });
  for (const [key, event] of [
    [keys.GRAVITINO, table],
    [keys.COMPUTE_ENGINE, copy],
  ] as const) {
    expect((await postEvent(millrace.url, key, event)).status).toBe(201);
  }
}

const idOf = async (tenantId: number, kind: string, name: string): Promise<string> => {
  const [row] = await database.query<{ id: string }>(
    "select id::text from lineage.node where tenant_id = $1 and kind = $2 and name = $3",
    [tenantId, kind, name],
  );
  return row?.id ?? "";
};

beforeAll(async () => {
  mine = await makeTenant(millrace.api, 1);
  theirs = await makeTenant(millrace.api, 2);
  own = api(millrace.url, mine.keys.COMPUTE_ENGINE);
  await tellOf(mine, ["id"]);
  await tellOf(theirs, [SECRET]);
  const model = { embedding: { provider: "builtin", model: "hash-v1" } };
  expect((await millrace.api.put("/api/v1/lineage/tenants/2/model", model)).status).toBe(200);
});

describe("two tenants with the same names", () => {
  test("have a graph each, and no edge leads from one to the other", async () => {
    const [one, two] = await Promise.all(["1", "2"].map((id) => lineage.graph(id)));
    const renamed = JSON.stringify(two).replaceAll(SECRET, "id");
    expect(JSON.parse(renamed)).toEqual(one);
    const crossing = await database.query(
      `select 1 from lineage.edge e join lineage.node s on s.id = e.src join lineage.node d on d.id = e.dst
       where s.tenant_id <> e.tenant_id or d.tenant_id <> e.tenant_id`,
    );
    expect(crossing).toEqual([]);
  });

  test("do not notice what becomes of the other's tables", async () => {
    const before = await lineage.graph("2");
    const third = await makeTenant(millrace.api, 3);
    await tellOf(third, [SECRET]);
    const eventTime = "2026-03-01T11:00:00Z";
    const drop = gravitinoEvent("drop_schema", { tenantId: 3, name: "dw", eventTime, facets: lifecycleFacet("DROP") });
    expect((await postEvent(millrace.url, third.keys.GRAVITINO, drop)).status).toBe(201);
    expect(Object.keys((await lineage.graph("3")).nodes)).toEqual(["CATALOG gravitino/hive", "JOB spark/daily.load"]);
    expect(await lineage.graph("2")).toEqual(before);
  });
});

describe("SQL", () => {
  test("cannot make an edge, a child or anything else between two tenants", async () => {
    const [ours, other] = [await idOf(1, "TABLE", "orders"), await idOf(2, "TABLE", "orders")];
    const foreign = { code: "23503" };
    const edge = "insert into lineage.edge (tenant_id, src, kind, dst, first_at) values ($1, $2, 'INPUT_OF', $3, 0)";
    for (const [tenantId, src, dst] of [
      [1, ours, other],
      [2, ours, other],
      [1, other, ours],
      [2, other, ours],
    ]) {
      await expect(database.query(edge, [tenantId, src, dst])).rejects.toMatchObject(foreign);
    }
    const child = "update lineage.node set parent_id = $3 where tenant_id = $1 and id = $2";
    await expect(database.query(child, [1, ours, other])).rejects.toMatchObject(foreign);
    const summary = `insert into lineage.summary (tenant_id, node_id, model_fingerprint, content_hash, summary)
                     values (1, $1, '', '', '')`;
    await expect(database.query(summary, [other])).rejects.toMatchObject(foreign);
    const count = "insert into lineage.execution_count (tenant_id, node_id, executions, last_at) values (1, $1, 1, 0)";
    await expect(database.query(count, [other])).rejects.toMatchObject(foreign);
  });
});

describe("a key that is bound to a tenant", () => {
  /** All that belongs to lineage, in sums. */
  async function everything(): Promise<unknown> {
    const tables = await database.query<{ name: string }>(
      "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'lineage' order by 1",
    );
    return Promise.all(
      tables.map(async ({ name }) => [
        name,
        await database.query(`select md5(string_agg(t::text, '|' order by t::text)) as sum from ${name} t`),
      ]),
    );
  }

  const isList = ({ method, path }: Operation) => method === "GET" && path === "/api/v1/lineage/tenants";

  /** Every lineage route, aimed at the other tenant in each way that it has. */
  async function aimed(): Promise<{ what: string; method: string; path: string; body?: string }[]> {
    const { id: eventId } = (
      await database.query<{ id: string }>("select max(id)::text as id from lineage.lineage_events where tenant_id = 2")
    )[0] ?? { id: "" };
    const [task] = await database.query<{ id: string }>(
      "select id::text from lineage.ol_async_task where tenant_id = 2",
    );
    const asset = await idOf(2, "COLUMN", SECRET);
    const known = { tenantId: "2", eventId, taskId: task?.id ?? "", id: asset };
    const operations = operationsOf(await readDocument(millrace.url), known).filter(
      ({ path }) => path.startsWith("/api/v1/lineage") || path === "/api/openlineage",
    );
    const table = await idOf(2, "TABLE", "orders");
    const values: Record<string, string> = { tenant: "2", node: asset, q: SECRET, asset, parent: asset };
    const ends: Record<string, string> = { from: asset, to: table, direction: "up" };
    const event = gravitinoEvent("drop_table", { tenantId: 2, name: "dw.orders", facets: lifecycleFacet("DROP") });
    return operations
      .filter((operation) => !isList(operation))
      .flatMap((operation) => {
        const { method, path, parameters, body } = operation;
        const isIngest = ["/api/openlineage", "/api/v1/lineage"].includes(path) || path.endsWith("/baseline");
        const sentTo = (name: string, isRequired = false) => values[name] ?? (isRequired ? ends[name] : undefined);
        const query = parameters.filter(
          ({ in: place, name, required }) => place === "query" && sentTo(name, required) !== undefined,
        );
        const sent = body
          ? { body: JSON.stringify(isIngest ? event : path.endsWith("/batch") ? [event] : example(body)) }
          : {};
        const named = query.map(({ name }) => `${name}=${sentTo(name, true)}`);
        const unnamed = named.filter((one) => !one.startsWith("tenant="));
        const addresses =
          named.includes("tenant=2") && (unnamed.length > 0 || path.includes("{id}")) ? [named, unnamed] : [named];
        return addresses.map((parts) => ({
          what: `${method} ${path}?${parts.join("&")}`,
          method,
          path: `${pathOf(operation)}${parts.length > 0 ? `?${parts.join("&")}` : ""}`,
          ...sent,
        }));
      });
  }

  test("neither reads nor writes anything of another by any route", async () => {
    const before = await everything();
    const wrong: string[] = [];
    const requests = await aimed();
    for (const key of [mine?.keys.COMPUTE_ENGINE ?? "", mine?.keys.GRAVITINO ?? ""]) {
      for (const { what, method, path, body } of requests) {
        const response = await fetch(millrace.url + path, {
          method,
          headers: { authorization: `Bearer ${key}`, ...(body ? { "content-type": "application/json" } : {}) },
          ...(body ? { body } : {}),
        });
        const text = await response.text();
        const isRefused = [403, 404].includes(response.status);
        const isEmpty = response.status === 200 && /"items":\[\]|"failed":1,/.test(text);
        if (!isRefused && !isEmpty) wrong.push(`${what}: ${response.status} ${text.slice(0, 100)}`);
        if (text.includes(SECRET) && !what.includes(`=${SECRET}`)) wrong.push(`${what} tells of ${SECRET}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(requests.length).toBeGreaterThan(30);
    expect(await everything()).toEqual(before);
  });

  test("sees its own where it names no tenant, and itself alone in the list of them", async () => {
    const list = await own.get<{ items: Json[]; total: number }>("/api/v1/lineage/tenants");
    expect(list.body).toMatchObject({ total: 1, items: [{ id: 1 }] });
    const assets = await own.get<{ items: { name: string }[] }>("/api/v1/lineage/assets?kind=COLUMN");
    expect(new Set(assets.body.items.map(({ name }) => name))).toEqual(new Set(["id"]));
    expect((await own.get<{ items: Json[] }>("/api/v1/lineage/events")).body.items).toHaveLength(2);
    expect((await own.get("/api/v1/lineage/graph?node=hive.dw.orders")).status).toBe(200);
  });

  test("cannot send an event that names another, nor have one taken in a batch", async () => {
    const event = (tenantId: number) =>
      gravitinoEvent("create_table", { tenantId, name: "dw.new", facets: schemaFacet(["x"]) });
    const refused = await postEvent(millrace.url, mine?.keys.GRAVITINO ?? "", event(2));
    expect(refused).toMatchObject({ status: 403, body: { code: "TENANT_CONFLICT" } });
    const batch = JSON.stringify([event(2), event(1)]);
    const { status, body } = await postEvent(millrace.url, mine?.keys.GRAVITINO ?? "", batch, "/api/v1/lineage/batch");
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        summary: { successful: 1, failed: 1, non_retriable: 1 },
        failed_events: [{ index: 0, retriable: false }],
      },
    });
    expect((await lineage.graph("2")).nodes).not.toHaveProperty("TABLE gravitino/hive/dw/new");
    expect((await lineage.graph("1")).nodes).toHaveProperty(["TABLE gravitino/hive/dw/new"]);
  });
});
