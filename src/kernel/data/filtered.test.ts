/** Statements with optional filters, on a real database. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { filtered } from "./filtered.ts";

const database = useDatabase();

/** As many as there are letters, with long names. */
const NAMES = Array.from({ length: 26 }, (_, index) => `aFilterWithALongName${index}`);
type Filter = Partial<Record<string, number | null>>;
const numbers = filtered<Filter, { n: number }>({
  name: "test.filtered",
  conditions: Object.fromEntries(NAMES.map((name) => [name, (p: string) => `n % 27 <> ${p}::int`])),
  text: (where, parameter) =>
    `select n from generate_series(1, 27) n where ${where} order by n limit ${parameter(0)} offset ${parameter(1)}`,
});

async function read(filter: Filter): Promise<number[]> {
  const { statement, values } = numbers(filter);
  return (await database.db.read(statement, [...values, 100, 0])).map(({ n }) => n);
}

test("all filters at once make one statement, however long their names are", async () => {
  const all = Object.fromEntries(NAMES.map((name, index) => [name, index]));
  expect(await read(all)).toEqual([26]);
});

test("each set of filters has its own statement, and null and undefined are no filters", async () => {
  expect(await read({})).toHaveLength(27);
  for (const [first, one] of NAMES.entries()) {
    for (const [second, other] of NAMES.entries()) {
      if (second <= first) continue;
      const left = await read({ [one]: first, [other]: second, aFilterThatIsNot: undefined });
      expect(left).toHaveLength(25);
    }
  }
  expect(await read({ [NAMES[0] ?? ""]: null })).toHaveLength(27);
  const statements = [{}, { [NAMES[0] ?? ""]: 1 }, { [NAMES[1] ?? ""]: 1 }].map(
    (filter) => numbers(filter).statement.name,
  );
  expect(new Set(statements).size).toBe(3);
});
