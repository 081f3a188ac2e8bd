import { expect, test } from "vitest";
import { realTrino } from "../../test/real-trino.ts";
import type { Engine } from "./engine.ts";
import { createEngines } from "./engines.ts";
import { useEveryKind } from "./every-kind.fixture.ts";
import { parsePage, parserOf, type TypeSignature } from "./trino/values.ts";

// Every engine gives the same JSON for the same value. Trino's answers were recorded from Trino 476; `npm run test:servers` asks it again.
const every = useEveryKind();

interface Same {
  what: string;
  json: unknown;
  /** An expression of SQL for all engines, or one for each that has the type. */
  sql: string | Partial<Record<Engine["kind"], string>>;
  /** What Trino answers: its type, and the value as it stands in the page. */
  trino?: [TypeSignature, string];
}

const type = (rawType: string, ...values: unknown[]): TypeSignature => ({
  rawType,
  arguments: values.map((value) => ({ value })),
});
const field = (name: string, typeSignature: TypeSignature) => ({ fieldName: { name }, typeSignature });
const DAYS = type("interval day to second");
const MONTHS = type("interval year to month");
const TIMESTAMP = type("timestamp", 3);
const INSTANT = type("timestamp with time zone", 0);
const TIME = type("time with time zone", 3);
const JSON_TYPE = type("json");

const SAME: readonly Same[] = [
  { what: "days", json: "P2D", sql: "interval '2' day", trino: [DAYS, '"2 00:00:00.000"'] },
  { what: "hours", json: "PT3H", sql: "interval '3' hour", trino: [DAYS, '"0 03:00:00.000"'] },
  {
    what: "a negative interval",
    json: "P-2DT-3H-0.5S",
    sql: {
      duckdb: "interval '-2 days -3 hours -0.5 seconds'",
      postgres: "interval '-2 days -3 hours -0.5 seconds'",
      trino: "interval '-2 03:00:00.5' day to second",
    },
    trino: [DAYS, '"-2 03:00:00.500"'],
  },
  { what: "months", json: "P1Y2M", sql: "interval '14' month", trino: [MONTHS, '"1-2"'] },
  { what: "negative months", json: "P-1Y-2M", sql: "interval '-14' month", trino: [MONTHS, '"-1-2"'] },
  { what: "no time at all", json: "PT0S", sql: "interval '0' day", trino: [DAYS, '"0 00:00:00.000"'] },
  {
    what: "months, days and hours together",
    json: "P1Y2M3DT36H1.5S",
    sql: {
      duckdb: "interval '14 months 3 days 36 hours 1.5 seconds'",
      postgres: "interval '14 months 3 days 36 hours 1.5 seconds'",
    },
  },
  { what: "real", json: 0.1, sql: "cast('0.1' as real)", trino: [type("real"), "0.1"] },
  { what: "a large real", json: 16_777_216, sql: "cast('16777217' as real)", trino: [type("real"), "1.6777216E7"] },
  { what: "a small real", json: 1e-5, sql: "cast('1e-5' as real)", trino: [type("real"), "1.0E-5"] },
  {
    what: "a real of nine digits",
    json: 16_777.217,
    sql: "cast('16777.217' as real)",
    trino: [type("real"), "16777.217"],
  },
  { what: "a real that is no number", json: "NaN", sql: "cast('NaN' as real)", trino: [type("real"), '"NaN"'] },
  {
    what: "reals in a list",
    json: [0.1, null],
    sql: "array[cast('0.1' as real), null]",
    trino: [type("array", type("real")), "[0.1,null]"],
  },
  {
    what: "a time with a zone",
    json: "01:02:03.5+02:00",
    sql: {
      duckdb: "cast('01:02:03.5+02' as timetz)",
      postgres: "cast('01:02:03.5+02' as timetz)",
      trino: "time '01:02:03.500 +02:00'",
    },
    trino: [TIME, '"01:02:03.500+02:00"'],
  },
  {
    what: "a time in UTC",
    json: "01:02:03Z",
    sql: {
      duckdb: "cast('01:02:03+00' as timetz)",
      postgres: "cast('01:02:03+00' as timetz)",
      trino: "time '01:02:03.000 +00:00'",
    },
    trino: [TIME, '"01:02:03.000+00:00"'],
  },
  {
    what: "a time with half an hour in its zone",
    json: "01:02:03.12-03:30",
    sql: {
      duckdb: "cast('01:02:03.12-03:30' as timetz)",
      postgres: "cast('01:02:03.12-03:30' as timetz)",
      trino: "time '01:02:03.120 -03:30'",
    },
    trino: [TIME, '"01:02:03.120-03:30"'],
  },
  {
    what: "a moment of another zone",
    json: "2026-01-31T00:00:00Z",
    sql: {
      duckdb: "timestamptz '2026-01-31 01:00:00+01'",
      postgres: "timestamptz '2026-01-31 01:00:00+01'",
      trino: "timestamp '2026-01-31 01:00:00 Europe/Berlin'",
    },
    trino: [INSTANT, '"2026-01-31 01:00:00 Europe/Berlin"'],
  },
  {
    what: "a moment before zones had whole minutes",
    json: "1889-12-31T23:06:32Z",
    sql: {
      duckdb: "timestamptz '1889-12-31 23:06:32+00'",
      postgres: "timestamptz '1889-12-31 23:06:32+00'",
      trino: "timestamp '1890-01-01 00:00:00 Europe/Berlin'",
    },
    trino: [INSTANT, '"1890-01-01 00:00:00 Europe/Berlin"'],
  },
  {
    what: "timestamps as keys of a map",
    json: { "2026-01-31T00:00:00.1": 1 },
    sql: {
      duckdb: "map {timestamp '2026-01-31 00:00:00.100': 1}",
      trino: "map(array[timestamp '2026-01-31 00:00:00.100'], array[1])",
    },
    trino: [type("map", TIMESTAMP, type("integer")), '{"2026-01-31 00:00:00.100":1}'],
  },
  {
    what: "moments as keys of a map",
    json: { "2026-01-31T00:00:00Z": 0.1 },
    sql: {
      duckdb: "map {timestamptz '2026-01-31 01:00:00+01': cast(0.1 as real)}",
      trino: "map(array[timestamp '2026-01-31 01:00:00 Europe/Berlin'], array[cast(0.1 as real)])",
    },
    trino: [type("map", INSTANT, type("real")), '{"2026-01-31 01:00:00 Europe/Berlin":0.1}'],
  },
  ...[
    ["decimals", "cast('1.50' as decimal(3, 2))", "1.5", type("decimal", 3, 2), "1.50"],
    ["doubles", "cast('1' as double)", "1", type("double"), "1.0"],
    ["booleans", "true", "true", type("boolean"), "true"],
    ["days", "date '2026-01-31'", "2026-01-31", type("date"), "2026-01-31"],
    ["long numbers", "9007199254740993", "9007199254740993", type("bigint"), "9007199254740993"],
    ["intervals", "interval '1' day", "P1D", DAYS, "1 00:00:00.000"],
    ["reals", "cast(0.1 as real)", "0.1", type("real"), "0.1"],
  ].map(([what, key, shown, keyType, told]) => ({
    what: `${what as string} as keys of a map`,
    json: { [shown as string]: 1 },
    sql: { duckdb: `map {${key as string}: 1}`, trino: `map(array[${key as string}], array[1])` },
    trino: [type("map", keyType, type("integer")), `{"${told as string}":1}`] as [TypeSignature, string],
  })),
  ...[
    ["12345678901234567890", "12345678901234567890"],
    ["9007199254740993", "9007199254740993"],
    ["-9007199254740993", "-9007199254740993"],
    ["9007199254740991", 9_007_199_254_740_991],
  ].map(([number, json]) => ({
    what: `${number as string} inside of JSON`,
    json: { a: [json, "12345678901234567890"] },
    sql: `cast('{"a":[${number as string},"12345678901234567890"]}' as json)`,
    trino: [JSON_TYPE, JSON.stringify(`{"a":[${number as string},"12345678901234567890"]}`)] as [TypeSignature, string],
  })),
  {
    what: "a large double in JSON",
    json: [1e20, 0.1],
    sql: jsonSql("[1e20,0.1]"),
    trino: [JSON_TYPE, '"[1.0E20,0.1]"'],
  },
  {
    what: "a double of 17 digits in JSON",
    json: [0.12345678901234568],
    sql: jsonSql("[0.12345678901234568]"),
    trino: [JSON_TYPE, '"[0.12345678901234568]"'],
  },
  {
    what: "a decimal of 20 digits in JSON, which Trino itself rounds",
    json: ["12345678901234567890.5"],
    sql: { duckdb: "cast('[12345678901234567890.5]' as json)", postgres: "cast('[12345678901234567890.5]' as jsonb)" },
  },
  {
    what: "a number beyond the doubles in JSON",
    json: ["1e400"],
    sql: { duckdb: "cast('[1e400]' as json)", postgres: "cast('[1e400]' as json)" },
  },
  {
    what: "JSON in a row, and in a list",
    json: { doc: { a: 1 }, list: ["9007199254740993"] },
    sql: {
      duckdb: `{'doc': cast('{"a":1}' as json), 'list': [cast('9007199254740993' as json)]}`,
      trino: `cast(row(json '{"a":1}', array[json '9007199254740993']) as row(doc json, list array(json)))`,
    },
    trino: [
      type("row", field("doc", JSON_TYPE), field("list", type("array", JSON_TYPE))),
      String.raw`["{\"a\":1}",["9007199254740993"]]`,
    ],
  },
];

function jsonSql(text: string): Record<Engine["kind"], string> {
  return { duckdb: `cast('${text}' as json)`, postgres: `cast('${text}' as jsonb)`, trino: `json '${text}'` };
}

function sqlFor({ sql, json }: Same, kind: Engine["kind"]): string | undefined {
  if (typeof sql !== "string") return sql[kind];
  // Trino's cast makes a JSON string of a text.
  return kind === "trino" && typeof json === "object" ? sql.replace(/^cast\((.*) as json\)$/, "json $1") : sql;
}

async function valueOf(engine: Engine, sql: string): Promise<unknown> {
  const { rows } = await engine.query(`select ${sql} as a`, { signal: new AbortController().signal, rowsMax: 1 });
  return rows[0]?.["a"];
}

test.each(SAME)("$what", async (same) => {
  for (const kind of ["duckdb", "postgres"] as const) {
    const sql = sqlFor(same, kind);
    if (sql !== undefined) expect([kind, await valueOf(every.engines.get(kind), sql)]).toEqual([kind, same.json]);
  }
  if (same.trino === undefined) return;
  const [signature, answer] = same.trino;
  expect(parserOf(signature)(parsePage(answer))).toEqual(same.json);
});

/** Some forty queries one after the other; a Trino that has just started takes a second or more for each. */
const ASKED_MS = 300_000;
test.skipIf(realTrino === undefined)(
  "Trino still answers as it was recorded",
  async () => {
    const engines = createEngines(
      { trino: { kind: "trino", url: realTrino ?? "", user: "test" } },
      { lakeDir: undefined },
    );
    for (const same of SAME.filter(({ trino }) => trino)) {
      const value = await valueOf(engines.get("trino"), sqlFor(same, "trino") ?? "");
      expect([same.what, value]).toEqual([same.what, same.json]);
    }
    await engines.close();
  },
  ASKED_MS,
);

test("Postgres gives moments in UTC whatever time zone its SQL sets", async () => {
  const sql = (zone: string) => `set timezone = '${zone}'; select timestamptz '1889-12-31 23:06:32.50+00' as a`;
  for (const zone of ["Asia/Kolkata", "Europe/Berlin", "America/New_York"]) {
    const { rows } = await every.engines.get("postgres").query(sql(zone), {
      signal: new AbortController().signal,
      rowsMax: 1,
    });
    expect(rows).toEqual([{ a: "1889-12-31T23:06:32.5Z" }]);
  }
});
