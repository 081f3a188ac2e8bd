import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { isRecord } from "../../kernel/json/is-record.ts";
import { fileEvent } from "./file-events.ts";
import { AT, dialectOf, landedWindow, modelFlow, parsed, runFlow, statementFlow } from "./flows.fixture.ts";
import { landedEvent } from "./landed-events.ts";
import { modelEvents } from "./model-events.ts";
import { runEvents } from "./run-events.ts";

const FOLDER = process.env["MILLRACE_OPENLINEAGE_DATA"];
const reason = FOLDER === undefined ? " (left out: MILLRACE_OPENLINEAGE_DATA names no folder of schemas)" : "";

/** All published schemas, by the address that events name. */
function schemas(folder: string): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const published = join(folder, "schema", "published");
  for (const file of readdirSync(published, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".json")) continue;
    const schema = JSON.parse(readFileSync(join(published, file), "utf8")) as { $id: string };
    if (!ajv.getSchema(schema.$id)) ajv.addSchema(schema);
  }
  return ajv;
}

/** Every facet of the event that says of itself which schema of the standard it follows. */
function* facetsIn(value: unknown): Generator<{ schemaURL: string; facet: object }> {
  if (typeof value !== "object" || value === null) return;
  const schemaURL = isRecord(value) ? value["_schemaURL"] : undefined;
  if (typeof schemaURL === "string" && schemaURL.startsWith("https://")) yield { schemaURL, facet: value };
  for (const part of Object.values(value)) yield* facetsIn(part);
}

describe.skipIf(FOLDER === undefined)(`the schemas of the standard${reason}`, () => {
  test("hold for every event that is told, and for every facet in it", () => {
    const ajv = schemas(FOLDER ?? "");
    const computed = [{ kpiId: "KD3", name: "Margin", formula: "KD1 - KD2", parts: ["KD1", "KD2"] }];
    const parent = { runId: "0195a000-0000-7000-8000-000000000002", chain: "outer", node: "inner" };
    const events = parsed([
      ...modelEvents(modelFlow({ computed, produces: "REVENUE" }), AT, dialectOf),
      ...modelEvents(modelFlow({ failure: "no" }), AT, dialectOf),
      ...runEvents(runFlow({ parent, statements: [statementFlow()] }), AT, dialectOf),
      ...runEvents(runFlow({ status: "FAILED", reason: "no" }), AT, dialectOf),
      fileEvent({ pattern: "orders_(\\d{8})\\.csv", table: "ORDERS" }, AT),
      landedEvent(landedWindow(), AT),
    ]);
    let facets = 0;
    for (const event of events) {
      expect(ajv.validate(String(event["schemaURL"]), event), ajv.errorsText()).toBe(true);
      for (const { schemaURL, facet } of facetsIn(event)) {
        expect(ajv.validate(schemaURL, facet), `${schemaURL}: ${ajv.errorsText()}`).toBe(true);
        facets += 1;
      }
    }
    expect(facets).toBeGreaterThan(20);
  });
});
