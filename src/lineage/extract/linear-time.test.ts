/**
 * Whoever may send an event may make it as large as the limit of bodies, in any shape. One that is eight times larger may take
 * as long as eight of the smaller ones, and not as sixty-four: growth is compared, so the speed of the machine does not matter.
 */
import { expect, test } from "vitest";
import { cpuMs } from "../../../test/cpu-time.ts";
import { columnLineageFacet, dataset, gravitinoEvent, gravitinoFacet, type Json, runEvent } from "../events.fixture.ts";
import { parseEvent } from "../ingest/event.ts";
import { digestOf, factsOf } from "./index.ts";

const TIMES_LARGER = 8;
/** Of a large one to eight small ones: linear growth makes it 1, quadratic growth 8. */
const RATIO_MAX = 3.5;
const ATTEMPTS_MIN = 3;
const ATTEMPTS_MAX = 5;

const list = <T>(length: number, item: (index: number) => T): T[] => Array.from({ length }, (_, index) => item(index));
const alter = (content: Json, changes: Json[], fields: Json[] = []) =>
  gravitinoEvent("alter_table", { facets: { schema: { fields }, ...gravitinoFacet({ ...content, changes }) } });
const run = (query: string) => runEvent({ outputs: [dataset("file", "/w/out")], jobFacets: { sql: { query } } });

/** With sizes that the clock can tell, and that take seconds at most where growth is quadratic. */
const SHAPES: [name: string, size: number, event: (size: number) => Json][] = [
  [
    "tables that one statement makes of others",
    100,
    (size) => {
      const tables = (prefix: string) => list(size, (n) => dataset("gravitino://lake/hive", `dw.${prefix}${n}`));
      const event = gravitinoEvent("create_table", { jobFacets: { sql: { query: "insert" } }, inputs: tables("in") });
      return { ...event, outputs: tables("out") };
    },
  ],
  [
    "changes of properties",
    120,
    (size) =>
      alter(
        { properties: Object.fromEntries(list(size * 10, (n) => [`p${n}`, "v"])) },
        list(size, (n) => ({
          type: n % 2 ? "SET_PROPERTY" : "REMOVE_PROPERTY",
          propertyKey: `p${n}`,
          propertyValue: "w",
        })),
      ),
  ],
  [
    "changes of indexes",
    120,
    (size) =>
      alter(
        { indexes: list(size * 10, (n) => `I i${n}(a)`).join(",") },
        list(size, (n) => ({ type: n % 2 ? "ADD_INDEX" : "DELETE_INDEX", indexName: `i${n * 11}` })),
      ),
  ],
  [
    "changes of columns",
    120,
    (size) =>
      alter(
        {},
        list(size, (n) => {
          const columnName = `c${size * 10 - 1 - n}`;
          return n % 2
            ? { type: "DELETE_COLUMN", columnName }
            : { type: "UPDATE_COLUMN_POSITION", columnName, position: "AFTER c5" };
        }),
        list(size * 10, (n) => ({ name: `c${n}` })),
      ),
  ],
  [
    "a position that is mostly blank",
    4_000,
    (size) => alter({}, [{ type: "UPDATE_COLUMN_POSITION", columnName: "a", position: `AFTER${" ".repeat(size)}\n` }]),
  ],
  [
    "transformations of one and the same column",
    200,
    (size) => {
      const facts = list(size, (n) => ["file", "/w/in", "a", [{ type: "DIRECT", description: `${n}` }]] as const);
      return runEvent({ outputs: [dataset("file", "/w/out", columnLineageFacet({ a: facts }))] });
    },
  ],
  [
    "inputs and outputs",
    200,
    (size) => {
      const files = (prefix: string) => list(size, (n) => dataset("file", `/w/${prefix}${n}`));
      return runEvent({ inputs: files("in"), outputs: files("out") });
    },
  ],
  ["a statement with nothing but its ends", 4_000, (size) => run(`select 1${"; ".repeat(size / 2)}x`)],
  ["a statement with a literal of nothing but escapes", 4_000, (size) => run(`'${"\\'".repeat(size / 2 - 2)}\\`)],
  ["a statement with quotes that nothing closes", 4_000, (size) => run("\"`'".repeat(size / 3))],
  ["a statement with lists that nothing closes", 4_000, (size) => run("(1, 2,   (".repeat(size / 10))],
  ["a statement with comments and blanks", 4_000, (size) => run("(/**/  1 /**/".repeat(size / 13))],
];

/** By the least of some attempts, since whatever disturbs one only ever makes it longer. */
function growth(work: (size: number) => () => void, size: number): number {
  const [small, large] = [work(size), work(size * TIMES_LARGER)];
  let [many, one] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    many = Math.min(
      many,
      cpuMs(() => {
        for (let time = 0; time < TIMES_LARGER; time += 1) small();
      }),
    );
    one = Math.min(one, cpuMs(large));
    if (attempt >= ATTEMPTS_MIN && one / many < RATIO_MAX) break;
  }
  return one / many;
}

test.each(SHAPES)("%s", (_, size, event) => {
  const work = (length: number) => {
    const sent: unknown = JSON.parse(JSON.stringify(event(length)));
    return () => {
      const parsed = parseEvent(sent);
      digestOf(parsed, "GRAVITINO");
      factsOf(parsed, "GRAVITINO");
    };
  };
  expect(growth(work, size)).toBeLessThan(RATIO_MAX);
});
