import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import type { Queryable } from "./db.ts";
import { guarded } from "./savepoint.ts";
import { statement } from "./statement.ts";

const database = useDatabase();
const ADD = statement("test.savepoint.add", "insert into savepoint_item values ($1)");
const add = (tx: Queryable, name: string) => tx.rows(ADD, [name]);
const names = async () =>
  (await database.query<{ name: string }>("select name from savepoint_item order by 1")).map(({ name }) => name);

beforeAll(() => database.query("create table savepoint_item (name text primary key)"));

test("only the part that fails is undone, at each level", async () => {
  await database.db.tx(async (tx) => {
    await add(tx, "before");
    const outer = guarded(tx, async (outerTx) => {
      await add(outerTx, "outer");
      const inner = guarded(outerTx, async (innerTx) => {
        await add(innerTx, "inner");
        await add(innerTx, "before"); // Already exists, so the statement fails.
      });
      await expect(inner).rejects.toMatchObject({ code: "23505" });
      await add(outerTx, "outer, after the inner one had failed");
      throw new Error("the outer one too");
    });
    await expect(outer).rejects.toThrow("the outer one too");
    await add(tx, "after");
  });
  expect(await names()).toEqual(["after", "before"]);
});

test("a statement after the work has failed is refused, because it would not be undone", async () => {
  await database.db.tx(async (tx) => {
    let kept: Queryable | undefined;
    const failing = guarded(tx, async (own) => {
      kept = own;
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    await expect(add(kept as unknown as Queryable, "late")).rejects.toThrow("had ended");
    await add(tx, "later");
  });
  expect(await names()).toContain("later");
  expect(await names()).not.toContain("late");
});
