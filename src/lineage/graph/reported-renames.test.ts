/** Renames that engines report, of which some have failed: what they change, whatever the order in which events arrive. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import {
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  lifecycleFacet,
  runEvent,
  schemaFacet,
  symlinksFacet,
} from "../events.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { warningsOf } from "../reads/warnings.ts";
import type { GraphChange } from "./apply.ts";
import { sourceOf } from "./stories.fixture.ts";

const database = useDatabase();
let doubted: GraphChange["doubted"][number][];
const lineage = testLineage(database, {
  onChange: async (_, __, change) => void doubted.push(...change.doubted),
});

beforeEach(() => {
  doubted = [];
});

const at = (second: number, event: Json): Json => ({
  ...event,
  eventTime: `2026-03-01T10:00:${String(second).padStart(2, "0")}Z`,
});
/** As Spark names a table of its catalog. */
const table = (name: string, facets: Json = {}) =>
  dataset("file", `/wh/shop.db/${name}`, { ...symlinksFacet(["file:/wh", `shop.${name}`]), ...facets });
const load = (from: string, to: string) =>
  runEvent({ jobName: `load ${to}`, inputs: [table(from)], outputs: [table(to, schemaFacet(["x"]))] });
const read = (name: string, job = `read ${name}`) => runEvent({ jobName: job, inputs: [table(name)] });
const drop = (name: string) => runEvent({ jobName: "drop", outputs: [table(name, lifecycleFacet("DROP"))] });
/** By the path of the old table, as Spark reports it. */
const rename = (previous: string, to: string, eventType = "COMPLETE") => {
  const change = lifecycleFacet("RENAME", { namespace: "file", name: `/wh/shop.db/${previous}` });
  return runEvent({ jobName: "rename", eventType, outputs: [table(to, change)] });
};

/** Tells the events to a new tenant, and answers who reads what and which job writes it. */
async function told(...events: Json[]): Promise<{ tenant: string; edges: string[] }> {
  const tenant = await lineage.tenant();
  for (const event of events) await lineage.send(tenant, event, { source: sourceOf(event) });
  return { tenant, edges: await edgesOf(tenant) };
}

async function edgesOf(tenant: string): Promise<string[]> {
  expect(await lineage.flaws(tenant)).toEqual([]);
  return (await lineage.graph(tenant)).edges
    .filter((edge) => / (INPUT_OF|OUTPUT_TO) /.test(edge) && !edge.includes("JOB spark/rename"))
    .map((edge) =>
      edge.replaceAll(/TABLE external\/file:\/wh\/\/shop\.(\w+)|JOB spark\/([\w ]+?)(?= OUTPUT_TO|$)/g, "$1$2"),
    )
    .sort();
}

function orders<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, index) => orders(items.toSpliced(index, 1)).map((rest) => [item, ...rest]));
}

const summary = () => doubted.map(({ name, to, doubt }) => `${name.path.at(-1)} -> ${to.path.at(-1)}: ${doubt}`);

describe("a rename that failed", () => {
  const known = [at(1, load("raw", "a")), at(2, load("raw", "b")), at(3, read("b"))];

  test("with an old name that nobody knows leaves its target alone, in any order of arrival", async () => {
    for (const events of orders([...known.slice(1), at(5, rename("ab", "b"))])) {
      expect((await told(...events)).edges).toEqual(["b INPUT_OF read b", "load b OUTPUT_TO b", "raw INPUT_OF load b"]);
    }
  });

  test("because its target exists leaves both tables alone, in any order of arrival", async () => {
    for (const events of orders([...known, at(5, rename("a", "b"))])) {
      expect((await told(...events)).edges).toEqual([
        "b INPUT_OF read b",
        "load a OUTPUT_TO a",
        "load b OUTPUT_TO b",
        "raw INPUT_OF load a",
        "raw INPUT_OF load b",
      ]);
    }
  });

  test("is told, with the reason", async () => {
    await told(...known, at(5, rename("ab", "b")), at(6, rename("a", "b")));
    expect(summary()).toEqual(["/wh/shop.db/ab -> shop.b: unknown", "shop.a -> shop.b: taken"]);
  });

  test("is told of once, however often the same event comes", async () => {
    const event = at(5, rename("ab", "b"));
    await told(...known, event, event, { ...event, run: { runId: "0195a000-0000-7000-8000-000000000009" } });
    expect(summary()).toEqual(["/wh/shop.db/ab -> shop.b: unknown"]);
  });

  test("and its reader leaves what is told of its target afterwards", async () => {
    const { edges } = await told(...known, at(5, rename("ab", "b")), at(7, read("b", "late")));
    expect(edges).toEqual(expect.arrayContaining(["b INPUT_OF read b", "b INPUT_OF late"]));
  });
});

describe("a rename that happened", () => {
  const moved = ["b INPUT_OF early", "b INPUT_OF late", "load a OUTPUT_TO b", "raw INPUT_OF load a"];
  const events = [
    at(1, load("raw", "a")),
    at(2, read("a", "early")),
    at(5, rename("a", "b")),
    at(7, read("b", "late")),
  ];

  test("gives its target all that was known under the old name, in any order of arrival", async () => {
    for (const order of orders(events)) expect((await told(...order)).edges).toEqual(moved.toSorted());
  });

  test("counts although its run was announced under the new name", async () => {
    for (const order of orders([...events.slice(0, 2), at(4, rename("a", "b", "START")), at(5, rename("a", "b"))])) {
      expect((await told(...order)).edges).toEqual(moved.filter((edge) => !edge.includes("late")).toSorted());
    }
  });

  test("counts once its target is known to have been dropped before, and until then not", async () => {
    const target = [at(1, load("other", "b")), at(1, load("raw", "a")), at(5, rename("a", "b"))];
    const { tenant, edges } = await told(...target);
    expect(edges).toContain("load b OUTPUT_TO b");
    await lineage.send(tenant, at(3, drop("b")), { source: "COMPUTE_ENGINE" });
    const after = ["load a OUTPUT_TO b", "other INPUT_OF load b", "raw INPUT_OF load a"];
    expect(await edgesOf(tenant)).toEqual(after);
    for (const order of orders([...target, at(3, drop("b"))])) expect((await told(...order)).edges).toEqual(after);
  });

  test("no longer counts once its target is known to have existed", async () => {
    const { tenant } = await told(...events);
    expect(doubted).toEqual([]);
    await lineage.send(tenant, at(3, load("other", "b")), { source: "COMPUTE_ENGINE" });
    expect(summary()).toEqual(["shop.a -> shop.b: taken"]);
    expect(await edgesOf(tenant)).toEqual([
      "a INPUT_OF early",
      "b INPUT_OF late",
      "load a OUTPUT_TO a",
      "load b OUTPUT_TO b",
      "other INPUT_OF load b",
      "raw INPUT_OF load a",
    ]);
  });

  test("counts once: a second report of it leaves the target alone", async () => {
    const { edges } = await told(...events, at(9, rename("a", "b")));
    expect(edges).toEqual(moved.toSorted());
  });

  test("makes room for the next one, so that tables can change places", async () => {
    const { edges } = await told(
      at(1, load("one", "a")),
      at(1, load("two", "b")),
      at(2, rename("a", "tmp")),
      at(3, rename("b", "a")),
      at(4, rename("tmp", "b")),
    );
    expect(edges).toEqual(["load a OUTPUT_TO b", "load b OUTPUT_TO a", "one INPUT_OF load a", "two INPUT_OF load b"]);
    expect(doubted).toEqual([]);
  });
});

test("what arrives late decides of a rename without symlinks too, one way and back", async () => {
  const plain = (name: string, facets: Json = {}) => dataset("file", name, facets);
  const use = (name: string) => runEvent({ jobName: `read ${name}`, inputs: [plain(name)] });
  const renamed = runEvent({
    jobName: "rename",
    outputs: [plain("b", lifecycleFacet("RENAME", { namespace: "file", name: "a" }))],
  });
  const dropped = runEvent({ jobName: "drop", outputs: [plain("b", lifecycleFacet("DROP"))] });
  const [yes, no] = [["b INPUT_OF read a"], ["a INPUT_OF read a", "b INPUT_OF read b"]];
  const tenant = await lineage.tenant();
  const steps: [event: Json, edges: string[]][] = [
    [at(5, renamed), []],
    [at(1, use("a")), yes],
    [at(2, use("b")), no],
    [at(3, dropped), yes],
    [at(4, use("b")), no],
  ];
  for (const [event, edges] of steps) {
    await lineage.send(tenant, event, { source: "COMPUTE_ENGINE" });
    const shown = (await edgesOf(tenant)).map((edge) => edge.replaceAll("TABLE external/file//", ""));
    expect(shown, JSON.stringify(event["eventTime"])).toEqual(edges);
  }
});

test("a rename that Gravitino tells of has happened, whatever is known of its names", async () => {
  const HIVE = "gravitino://tenant/7/lake/hive";
  const renamed = at(5, {
    ...gravitinoEvent("alter_table", {
      name: "dw.a",
      facets: gravitinoFacet({ changes: [{ type: "RENAME_TABLE", newName: "b" }] }),
    }),
  });
  const reported = at(5, {
    ...runEvent({
      jobName: "rename",
      outputs: [dataset(HIVE, "dw.b", lifecycleFacet("RENAME", { namespace: HIVE, name: "dw.a" }))],
    }),
  });
  const uses = ["a", "b"].map((name) => at(1, runEvent({ jobName: name, inputs: [dataset(HIVE, `dw.${name}`)] })));
  for (const order of orders([...uses, renamed, reported])) {
    expect((await told(...order)).edges, order.map(({ job }) => JSON.stringify(job)).join()).toEqual([
      "TABLE gravitino/hive/dw/b INPUT_OF a",
    ]);
  }
});

test("the event of a rename that was not applied says why", async () => {
  const tenant = await lineage.tenant();
  const events = [at(1, load("raw", "a")), at(1, load("raw", "b")), at(5, rename("ab", "b")), at(6, rename("a", "b"))];
  for (const event of events) await lineage.send(tenant, event, { source: "COMPUTE_ENGINE" });
  const rows = await database.query<{ body: string; at: string; source: string }>(
    `select event::text as body, (extract(epoch from event_time) * 1000000)::int8::text as at, source
     from lineage.lineage_events where tenant_id = $1 order by id`,
    [tenant],
  );
  expect(await Promise.all(rows.map((row) => warningsOf(database.db, tenant, row)))).toEqual([
    [],
    [],
    [
      "The rename from file./wh/shop.db/ab to file:/wh.shop.b was not applied: nothing is known of file./wh/shop.db/ab before that. file:/wh.shop.b keeps its lineage.",
    ],
    [
      "The rename from file./wh/shop.db/a to file:/wh.shop.b was not applied: file:/wh.shop.b existed already. file:/wh.shop.b keeps its lineage.",
    ],
  ]);
});
