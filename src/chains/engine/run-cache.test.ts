import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { addChain, addRun, addRunOf } from "../run.fixture.ts";
import { updateChain } from "../store/definitions.ts";
import { dagOf } from "./book.fixture.ts";
import { createRunCache, type KnownRun } from "./run-cache.ts";

const database = useDatabase();

/** Records the statements that are sent. */
function recording(db: Queryable): Queryable & { asked: string[] } {
  const asked: string[] = [];
  return { asked, rows: (statement, values) => (asked.push(statement.name), db.rows(statement, values)) };
}
const only = (found: Map<string, KnownRun>) => [...found.values()][0] as KnownRun;

describe("cached runs", () => {
  test("have facts and a graph, and are read once", async () => {
    const db = recording(database.db);
    const cache = createRunCache();
    const runId = await addRun(database, { a: [], b: ["a"] }, { params: { day: 7 }, op_time: "2026010100" });
    const first = await cache.get(db, [runId]);
    expect(only(first).facts).toMatchObject({ run_id: runId, params: { day: 7 }, op_time: "2026010100", depth: 0 });
    expect(only(first).graph.nodes.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(db.asked).toEqual(["chains.run.facts", "chains.run.dag"]);
    expect(await cache.get(db, [runId])).toEqual(first);
    expect(db.asked).toHaveLength(2);
  });

  test("are read together, and those that do not exist are left out", async () => {
    const db = recording(database.db);
    const runIds = [await addRun(database, { a: [] }), randomUUID(), await addRun(database, { b: [] })];
    const found = await createRunCache().get(db, runIds);
    expect([...found.keys()]).toEqual([runIds[0], runIds[2]]);
    expect(db.asked.filter((name) => name === "chains.run.facts")).toHaveLength(1);
  });

  test("come in the order of the request, cached or not", async () => {
    const cache = createRunCache();
    const [one, two, three] = [
      await addRun(database, { a: [] }),
      await addRun(database, { a: [] }),
      await addRun(database, { a: [] }),
    ];
    await cache.get(database.db, [two]);
    expect([...(await cache.get(database.db, [three, two, one])).keys()]).toEqual([three, two, one]);
  });

  test("send no statement for an empty request", async () => {
    const db = recording(database.db);
    expect(await createRunCache().get(db, [])).toEqual(new Map());
    expect(db.asked).toEqual([]);
  });
});

describe("a run that is added when it is inserted", () => {
  test("is not read again, and the last facts win: the transaction may have been retried", async () => {
    const db = recording(database.db);
    const cache = createRunCache();
    const runId = await addRun(database, { a: [] });
    const { facts } = only(await createRunCache().get(database.db, [runId]));
    cache.add([{ ...facts, name: "before the chain was renamed" }]);
    cache.add([facts]);
    expect(only(await cache.get(db, [runId])).facts).toEqual(facts);
    expect(db.asked).toEqual(["chains.run.dag"]);
  });
});

describe("a run that was deleted after it was cached", () => {
  test("is left out as soon as its graph is read, and its facts are dropped", async () => {
    const cache = createRunCache();
    const [gone, other] = [await addRun(database, { a: [] }), await addRun(database, { a: [] })];
    cache.add((await Promise.all([gone, other].map((runId) => factsOf(runId)))).flat());
    await database.query("delete from chains.job_run where run_id = $1", [gone]);
    expect([...(await cache.get(database.db, [gone, other])).keys()]).toEqual([other]);
    const db = recording(database.db);
    expect(await cache.get(db, [gone])).toEqual(new Map());
    expect(db.asked).toEqual(["chains.run.facts"]);
  });

  test("is read again after it is forgotten", async () => {
    const cache = createRunCache();
    const runId = await addRun(database, { a: [] });
    await cache.get(database.db, [runId]);
    cache.forget(runId);
    const db = recording(database.db);
    await cache.get(db, [runId]);
    expect(db.asked).toEqual(["chains.run.facts"]);
  });

  const factsOf = async (runId: string) =>
    [...(await createRunCache().get(database.db, [runId])).values()].map(({ facts }) => facts);
});

describe("a graph", () => {
  test("is shared by the runs of one version, and built again for the next", async () => {
    const db = recording(database.db);
    const cache = createRunCache();
    const chainId = await addChain(database, { a: [] });
    const [one, other] = [await addRunOf(database, chainId), await addRunOf(database, chainId)];
    const common = { name: chainId, description: null, by: "a test", maxActiveRuns: null, runTimeoutMs: null };
    await updateChain(database.db, { ...common, chainId, version: 1, dag: dagOf({ a: [], b: [] }) });
    const later = await addRunOf(database, chainId);
    const graphOf = async (runId: string) => only(await cache.get(db, [runId])).graph;
    expect(await graphOf(other)).toBe(await graphOf(one));
    expect((await graphOf(one)).nodes).toHaveLength(1);
    expect((await graphOf(later)).nodes).toHaveLength(2);
    expect(db.asked.filter((name) => name === "chains.run.dag")).toHaveLength(2);
  });

  test("is the same for two concurrent requests", async () => {
    const cache = createRunCache();
    const chainId = await addChain(database, { a: [] });
    const [one, other] = [await addRunOf(database, chainId), await addRunOf(database, chainId)];
    const found = await Promise.all([one, other].map((runId) => cache.get(database.db, [runId])));
    expect(only(found[0] as never).graph).toBe(only(found[1] as never).graph);
  });
});

describe("the cache is bounded:", () => {
  const LARGE = 10_000;
  const LARGE_MAX = 20;
  const PARAMS_SIZE = 10_000;
  const FACTS_SIZE_MAX = 32_000_000;
  const nodes = Array.from({ length: LARGE }, (_, index) => ({ id: `n${index}`, type: "noop" }));

  /** A fake database with any run of any chain: `chain/n`. Thousands of real rows would test no more. */
  function endless(): Queryable & { read: string[] } {
    const read: string[] = [];
    async function rows(statement: { name: string }, [asked]: readonly unknown[] = []): Promise<unknown[]> {
      if (statement.name === "chains.run.facts") {
        read.push(...(asked as string[]).map((run_id) => `facts of ${run_id}`));
        const params = { text: "x".repeat(PARAMS_SIZE) };
        return (asked as string[]).map((run_id) => ({
          run_id,
          chain_id: run_id.split("/")[0],
          chain_version: "1",
          params,
        }));
      }
      read.push(asked as string);
      await new Promise(setImmediate);
      return [{ dag: { nodes: (asked as string).startsWith("large") ? nodes : nodes.slice(0, 1) } }];
    }
    return { read, rows: rows as Queryable["rows"] };
  }

  test("with too many nodes, only the oldest graphs are evicted", async () => {
    const db = endless();
    const cache = createRunCache();
    const dagsRead = () => db.read.splice(0).filter((what) => !what.startsWith("facts"));
    // Two at once, as in two batches: a graph that is built twice must not count twice.
    for (let chain = 0; chain < LARGE_MAX; chain += 1) {
      await Promise.all([cache.get(db, [`large${chain}/1`]), cache.get(db, [`large${chain}/2`])]);
    }
    dagsRead();
    await cache.get(db, ["large0/3"]);
    expect(dagsRead()).toEqual([]);
    await cache.get(db, ["large99/1"]);
    await cache.get(db, ["large1/4"]);
    expect(dagsRead()).toEqual(["large99/1"]);
    await cache.get(db, ["large0/4"]);
    expect(dagsRead()).toEqual(["large0/4"]);
  });

  test("with facts that are too large, the oldest are evicted", async () => {
    const db = endless();
    const cache = createRunCache();
    const others = Array.from({ length: FACTS_SIZE_MAX / PARAMS_SIZE }, (_, index) => `small/${index + 2}`);
    await cache.get(db, ["small/1"]);
    expect((await cache.get(db, others)).size).toBe(others.length);
    db.read.length = 0;
    await cache.get(db, others.slice(-1));
    expect(db.read).toEqual([]);
    await cache.get(db, ["small/1"]);
    expect(db.read).toEqual(["facts of small/1"]);
  });
});
