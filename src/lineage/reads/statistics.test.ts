import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createGraph } from "../graph/graph.fixture.ts";
import { createStatistics } from "./statistics.ts";

const database = useDatabase();

test("figures are read once in half a minute, however often they are asked for", async () => {
  let now = 0;
  const statistics = createStatistics(database.db, { now: () => now });
  const graph = await createGraph(database, "1");
  await graph.table("shop.a");
  const [first, again] = await Promise.all([statistics("1"), statistics("1")]);
  expect(first.assets).toMatchObject({ TABLE: 1 });
  expect(again).toBe(first);
  await graph.table("shop.b");
  now = 29_999;
  expect((await statistics("1")).assets).toMatchObject({ TABLE: 1 });
  now = 30_000;
  expect((await statistics("1")).assets).toMatchObject({ TABLE: 2 });
});

test("a failure is not remembered", async () => {
  let broken = true;
  const db = {
    ...database.db,
    read: ((...call) =>
      broken ? Promise.reject(new Error("away")) : database.db.read(...call)) as typeof database.db.read,
  };
  const statistics = createStatistics(db, { now: () => 0 });
  await expect(statistics("1")).rejects.toThrow("away");
  broken = false;
  await expect(statistics("1")).resolves.toHaveProperty("edges");
});
