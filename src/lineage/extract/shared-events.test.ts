import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ApiError } from "../../kernel/errors.ts";
import { dataset, type Json, runEvent } from "../events.fixture.ts";
import { parseEvent } from "../ingest/event.ts";
import { extractedFrom, extractedFromGravitino } from "./extracted.fixture.ts";
import { digestOf, factsOf } from "./index.ts";

const FOLDER = process.env["MILLRACE_OPENLINEAGE_DATA"];
if (FOLDER === undefined) console.warn("MILLRACE_OPENLINEAGE_DATA is not set: events of real producers are not read");

function files(folder: string): [file: string, content: Json][] {
  if (FOLDER === undefined) return [];
  const names = readdirSync(join(FOLDER, folder)).filter((name) => name.endsWith(".json"));
  return names.map((name) => [name, JSON.parse(readFileSync(join(FOLDER, folder, name), "utf8")) as Json]);
}

describe.skipIf(FOLDER === undefined)("events of real producers", () => {
  test("are all read, and each names what it reads and writes", () => {
    const events = files("events");
    expect(events.length).toBeGreaterThan(50);
    for (const [file, content] of events) {
      const event = parseEvent(content);
      const { mentions, edges, endings } = factsOf(event, "COMPUTE_ENGINE");
      const tables = event.inputs.length + event.outputs.length;
      expect(mentions.length > 0, file).toBe(tables > 0);
      // A table that is both read and written has an edge for each, and one that was dropped has an ending.
      if (event.job) expect(edges.length + endings.length > 0, file).toBe(tables > 0);
      expect(digestOf(event, "COMPUTE_ENGINE"), file).toBe(digestOf(event, "COMPUTE_ENGINE"));
    }
  });

  test("that break the standard are taken where that can be done, and refused with the path where it cannot", () => {
    // The first that fits. What breaks only the schemas (no zone, no schemaURL, a facet without a producer) is taken.
    const answers: [file: RegExp, answer: string][] = [
      [/sparksql_\d/, "/run/runId is missing; /inputs/0/name is missing."],
      [/metadata\.template__/, "/eventTime is not a time like 2026-01-31T23:59:59.123Z, from 1970 to 2255."],
      [/./, "taken"],
    ];
    for (const [file, content] of files("nonconforming")) {
      const expected = answers.find(([pattern]) => pattern.test(file))?.[1];
      expect(answerTo(content), file).toBe(expected);
    }
  });
});

function answerTo(content: Json): string {
  try {
    factsOf(parseEvent(content), "COMPUTE_ENGINE");
    return "taken";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.message;
  }
}

/** What each operation must tell, by the beginning of its name. */
const OPERATIONS: [operation: RegExp, check: (facts: ReturnType<typeof extractedFrom>, event: Json) => void][] = [
  [/^(create|load)_table$/, ({ nodes }) => expect(kinds(nodes)).toEqual({ TABLE: 1, CATALOG: 1, COLUMN: 4 })],
  [
    /^alter_table$/,
    ({ nodes, endings }, event) => {
      const change = changeOf(event);
      const renamed = change === "RENAME_TABLE" || change === "RENAME_COLUMN";
      const ended = renamed || change === "DELETE_COLUMN";
      expect(endings).toHaveLength(ended ? 1 : 0);
      expect(endings.some((ending) => ending.includes(" -> "))).toBe(renamed);
      expect(kinds(nodes)).toMatchObject({ TABLE: 1, CATALOG: 1 });
    },
  ],
  [/^(create|alter|load)_schema$/, ({ nodes }) => expect(kinds(nodes)).toEqual({ SCHEMA: 1, CATALOG: 1 })],
  [/^(create|alter)_catalog$/, ({ nodes }) => expect(kinds(nodes)).toEqual({ CATALOG: 1 })],
  [
    /^(register|alter)_metric$/,
    ({ nodes, owned }) => {
      expect(kinds(nodes)).toEqual({ METRIC: 1, CATALOG: 1 });
      expect(Object.values(owned).flat().length).toBeGreaterThan(0);
    },
  ],
  [
    /^(create|alter)_(wordroot|modifier|unit|valuedomain|tag)$/,
    ({ nodes }) => {
      expect(Object.keys(nodes)).toHaveLength(1);
      expect(Object.values(nodes)[0]).toMatchObject({ name: expect.any(String), description: expect.any(String) });
    },
  ],
  [/^drop_/, ({ endings, nodes }) => expect([endings.length, Object.keys(nodes).length]).toEqual([1, 0])],
  [/^associate_tags$/, ({ tags, endings }) => expect(tags.length + endings.length).toBeGreaterThan(0)],
];

function changeOf(event: Json): unknown {
  const [output] = event["outputs"] as { facets: { gravitino: { changes: { type: string }[] } } }[];
  return output?.facets.gravitino.changes[0]?.type;
}

function kinds(nodes: Json): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of Object.keys(nodes)) {
    const kind = name.split(" ")[0] as string;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

describe.skipIf(FOLDER === undefined)("events of Gravitino", () => {
  test.each(files("derived-gravitino"))("%s tells what its operation does", (_, event) => {
    const facts = extractedFromGravitino(event);
    const operation = (event["job"] as { name: string }).name.replace("gravitino.", "");
    const check = OPERATIONS.find(([pattern]) => pattern.test(operation))?.[1];
    expect(check, operation).toBeDefined();
    check?.(facts, event);
    expect(facts.warnings).toEqual([]);
    expect(facts.mentions.length).toBeGreaterThan(0);
  });
});

describe.skipIf(FOLDER === undefined)("facets of the standard's own tests", () => {
  test.each(files("facet-fixtures").filter(([file]) => /^(ColumnLineage|Lineage)/.test(file)))(
    "%s is understood",
    (_, facets) => {
      const { entries } = (facets["lineage"] as { entries?: unknown } & Json) ?? {};
      const event = entries
        ? runEvent({ jobFacets: facets })
        : runEvent({ outputs: [dataset("file", "/w/out", facets)] });
      const { edges, warnings } = extractedFrom(event);
      expect(warnings).toEqual([]);
      expect(edges.length).toBeGreaterThan(0);
    },
  );
});
