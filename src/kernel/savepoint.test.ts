import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import type { Queryable } from "./db.ts";
import { guarded } from "./savepoint.ts";
import { statement } from "./statement.ts";

const database = useDatabase();
const ADD = statement("test.savepoint.add", "insert into savepoint_item values ($1)");
const add = (tx: Queryable, name: string) => tx.rows(ADD, [name]);
const names = async () =>
  (await database.query<{ name: string }>("select name from savepoint_item order by 1")).map(({ name }) => name);

beforeAll(() => database.query("create table savepoint_item (name text primary key)"));

test("what fails is undone alone, on each level", async () => {
  await database.db.tx(async (tx) => {
    await add(tx, "before");
    const outer = guarded(tx, async () => {
      await add(tx, "outer");
      const inner = guarded(tx, async () => {
        await add(tx, "inner");
        await add(tx, "before"); // There already, so the transaction is broken now.
      });
      await expect(inner).rejects.toMatchObject({ code: "23505" });
      await add(tx, "outer, after the inner one had failed");
      throw new Error("the outer one too");
    });
    await expect(outer).rejects.toThrow("the outer one too");
    await add(tx, "after");
  });
  expect(await names()).toEqual(["after", "before"]);
});
