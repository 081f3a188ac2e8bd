import { describe, expect, test } from "vitest";
import { extractedFrom } from "../extract/extracted.fixture.ts";
import { AT, dialectOf, parsed, RUN_ID, runFlow, statementFlow } from "./flows.fixture.ts";
import { runEvents } from "./run-events.ts";

const eventsOf = (fields: Parameters<typeof runFlow>[0] = {}) => parsed(runEvents(runFlow(fields), AT, dialectOf));
const RAW = "TABLE external|millrace://tables||RAW";
const ORDERS = "TABLE external|millrace://tables||ORDERS";

describe("what is told of a chain's run", () => {
  test("leads from the tables that it waited for to those that it announced", () => {
    const [event = {}, ...others] = eventsOf();
    expect(event).toMatchObject({ eventType: "COMPLETE", run: { runId: RUN_ID } });
    expect(extractedFrom(event).edges).toEqual([
      `${RAW} INPUT_OF JOB millrace|chain.load`,
      `JOB millrace|chain.load OUTPUT_TO ${ORDERS}`,
    ]);
    expect(others).toEqual([]);
  });

  test("tells each statement as a part of it, at the time of its own end", () => {
    const [, event = {}] = eventsOf({ statements: [statementFlow()] });
    expect(event).toMatchObject({
      eventTime: "2026-03-01T09:59:59.000Z",
      job: { name: "chain.load.clean", facets: { sql: { dialect: "postgres" } } },
      run: { facets: { parent: { run: { runId: RUN_ID }, job: { name: "chain.load" } } } },
    });
    const { nodes, edges } = extractedFrom(event);
    const sql = Object.keys(nodes).find((name) => name.startsWith("SQL millrace|chain.load.clean|"));
    expect(edges).toEqual([`${RAW} INPUT_OF ${sql}`, `${sql} OUTPUT_TO ${ORDERS}`]);
  });

  test("has another run id for each attempt at a statement", () => {
    const runIdOf = (attempt: number) => {
      const [, event = {}] = eventsOf({ statements: [statementFlow({ attempt })] });
      return (event["run"] as { runId: string }).runId;
    };
    expect(runIdOf(1)).toBe(runIdOf(1));
    expect(runIdOf(1)).not.toBe(runIdOf(2));
  });

  test.each([
    ["FAILED", "FAIL"],
    ["STOPPED", "ABORT"],
  ] as const)("says of a run that %s that it is %s, and why", (status, eventType) => {
    const facets = { errorMessage: { message: "no disk" } };
    const statements = [statementFlow({ status, error: "no disk" })];
    for (const event of eventsOf({ status, reason: "no disk", statements })) {
      expect(event).toMatchObject({ eventType, run: { facets } });
    }
    expect(eventsOf({ status, reason: null })[0]).not.toHaveProperty("run.facets.errorMessage");
  });

  test("tells the items of a map as the node of the chain that they are", () => {
    const parent = { runId: "0195a000-0000-7000-8000-000000000002", chain: "load", node: null };
    const statement = { sql: "insert into ${item} select 1", engine: "nowhere" };
    const [event = {}] = eventsOf({ node: "each", parent, statement });
    expect(event).toMatchObject({
      job: { name: "chain.load.each", facets: { sql: { query: statement.sql } } },
      run: { facets: { parent: { run: { runId: parent.runId }, job: { name: "chain.load" } } } },
    });
    expect(event).not.toHaveProperty("job.facets.sql.dialect");
  });
});
