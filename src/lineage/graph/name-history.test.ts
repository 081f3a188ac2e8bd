import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { addEndings, type NewEnding } from "../store/name-history.ts";
import { createNameHistory } from "./name-history.ts";
import { columnName, keyOf, tableName } from "./names.ts";

const database = useDatabase();
const TENANT = "1";
const STEPS = 40;
const table = (n: number) => tableName("gravitino", "hive", "dw", `t${n}`);

test("a name is followed over tables that were renamed again and again, each of them asked for once", async () => {
  await database.query("insert into lineage.tenant (id, code, name) values ($1, 't', 't')", [TENANT]);
  const renames = Array.from({ length: STEPS }, (_, n) =>
    [n, n + 1_000].map((at): NewEnding => {
      const to = table(n + 1);
      const key = keyOf(table(n));
      const from = { name_kind: "TABLE", path: table(n).path, columns: null, reported: false, doubt: null } as const;
      return { ...from, key, at, kind: "renamed", to_path: to.path, to_key: keyOf(to), subject: key };
    }),
  );
  await addEndings(database.db, TENANT, renames.flat());
  let asked = 0;
  const counting: typeof database.db = {
    ...database.db,
    rows: (statement, values) => {
      asked += 1;
      return database.db.rows(statement, values);
    },
  };
  const history = createNameHistory(counting, TENANT);
  await history.load([columnName(table(0), "x"), table(0)]);
  expect(history.resolve(columnName(table(0), "x"), 999)).toEqual(columnName(table(STEPS), "x"));
  expect(history.resolve(table(0), 1_001)).toEqual(table(0));
  expect(asked).toBe(2 * (STEPS + 1));
});
