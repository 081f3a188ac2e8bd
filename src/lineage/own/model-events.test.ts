import { describe, expect, test } from "vitest";
import { extractedFrom } from "../extract/extracted.fixture.ts";
import { AT, dialectOf, modelFlow, parsed } from "./flows.fixture.ts";
import { modelEvents } from "./model-events.ts";

const eventsOf = (fields: Parameters<typeof modelFlow>[0] = {}) =>
  parsed(modelEvents(modelFlow(fields), AT, dialectOf));
const ORDERS = "TABLE external|millrace://tables||ORDERS";
const KD1 = "TABLE external|millrace://kpis||KD1";

describe("what is told of a model's run", () => {
  test("leads from its tables over its statement to its indicators and the table that it produces", () => {
    const [event = {}] = eventsOf({ produces: "REVENUE" });
    const { nodes, edges, warnings } = extractedFrom(event);
    const [sql = "", attributes = {}] = Object.entries(nodes).find(([name]) => name.startsWith("SQL ")) ?? [];
    expect(attributes).toMatchObject({ jobName: "kpi.model.REVENUE", dialect: "postgres", engine: "millrace" });
    expect(edges).toEqual([
      `${ORDERS} INPUT_OF ${sql}`,
      `${sql} OUTPUT_TO TABLE external|millrace://tables||REVENUE`,
      `${sql} OUTPUT_TO ${KD1}`,
    ]);
    expect(nodes[KD1]).toMatchObject({ description: "Revenue" });
    expect(warnings).toEqual([]);
  });

  test("names the job alone if a chain does the work", () => {
    const [event = {}] = eventsOf({ statement: null, description: "From the shop" });
    const job = "JOB millrace|kpi.model.REVENUE";
    const { nodes, edges } = extractedFrom(event);
    expect(nodes[job]).toMatchObject({ description: "From the shop" });
    expect(edges).toEqual([`${ORDERS} INPUT_OF ${job}`, `${job} OUTPUT_TO ${KD1}`]);
  });

  test("tells the period of its opTime in the model's time zone, and an opTime that is no time as it is", () => {
    expect(eventsOf({ timeZone: "Asia/Shanghai" })[0]).toMatchObject({
      run: {
        facets: {
          nominalTime: { nominalStartTime: "2026-02-27T16:00:00.000Z", nominalEndTime: "2026-02-28T16:00:00.000Z" },
          millrace_opTime: { opTime: "20260228" },
        },
      },
    });
    const [named] = eventsOf({ opTime: "v2-final" });
    expect(named).toMatchObject({ run: { facets: { millrace_opTime: { opTime: "v2-final" } } } });
    expect(named).not.toHaveProperty("run.facets.nominalTime");
  });

  test("says why it failed, and still what it would have read and written", () => {
    const [event = {}, ...others] = eventsOf({ failure: "There is no table orders." });
    expect(event).toMatchObject({
      eventType: "FAIL",
      run: { facets: { errorMessage: { message: "There is no table orders." } } },
    });
    expect(extractedFrom(event).edges).toEqual(extractedFrom(eventsOf()[0] ?? {}).edges);
    expect(others).toEqual([]);
  });

  test("goes on to the indicators that are computed from its own", () => {
    const computed = [{ kpiId: "KD3", name: "Margin", formula: "KD1 - KD2", parts: ["KD1", "KD2"] }];
    const [model = {}, event = {}] = eventsOf({ computed });
    const job = "JOB millrace|kpi.indicator.KD3";
    const { nodes, edges } = extractedFrom(event);
    expect(edges).toEqual([
      `${KD1} INPUT_OF ${job}`,
      `TABLE external|millrace://kpis||KD2 INPUT_OF ${job}`,
      `${job} OUTPUT_TO TABLE external|millrace://kpis||KD3`,
    ]);
    expect(nodes[job]).toMatchObject({ description: "KD3 = KD1 - KD2" });
    const { runId } = model["run"] as { runId: string };
    expect(event).toMatchObject({
      run: { facets: { parent: { run: { runId }, job: { namespace: "millrace", name: "kpi.model.REVENUE" } } } },
    });
    expect(event).not.toMatchObject({ run: { runId } });
  });

  test("has the same run id each time it is told, and another for another run", () => {
    const runIdOf = (runKey: string) => {
      const [event = {}] = eventsOf({ runKey });
      return (event["run"] as { runId: string }).runId;
    };
    expect(runIdOf("one")).toBe(runIdOf("one"));
    expect(runIdOf("one")).not.toBe(runIdOf("two"));
    expect(modelEvents(modelFlow(), AT, dialectOf)).toEqual(modelEvents(modelFlow(), AT, dialectOf));
  });

  test("keeps the beginning of an endless statement", () => {
    const sql = `select 1 -- ${"x".repeat(1_000_000)}`;
    const [body = ""] = modelEvents(modelFlow({ statement: { sql, engine: "duckdb" } }), AT, dialectOf);
    expect(body.length).toBeLessThan(110_000);
  });
});
