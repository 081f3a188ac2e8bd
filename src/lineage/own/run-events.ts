/** The events of a chain's run: from the tables that it waited for to those that it announced, and its statements. */

import { hashUuid } from "../graph/hash-uuid.ts";
import type { DialectOf } from "./model-events.ts";
import {
  type EventType,
  errorMessage,
  jobType,
  opTimeOf,
  parentRun,
  runEvent,
  sqlText,
  tables,
} from "./openlineage.ts";
import type { Place, RunFlow } from "./run-flows.ts";

/** How chains call it, and how the standard does. */
const TYPES: Readonly<Record<string, EventType>> = { SUCCESS: "COMPLETE", FAILED: "FAIL", STOPPED: "ABORT" };

/** One event for the run, and one for each of its statements. */
export function runEvents(flow: RunFlow, at: number, dialectOf: DialectOf): string[] {
  const { runId, opTime, parent, statement } = flow;
  const jobName = jobNameOf(flow);
  const when = opTime === null ? {} : opTimeOf(opTime);
  const ofRun = runEvent({
    ...ended(flow.status, flow.reason, { ...when, ...(parent && parentRun(parent.runId, jobNameOf(parent))) }),
    at,
    runId,
    job: {
      name: jobName,
      facets: {
        ...jobType(flow.node === null ? "CHAIN" : "NODE"),
        ...(statement && sqlText(statement.sql, dialectOf(statement.engine))),
      },
    },
    inputs: tables(flow.inputs),
    outputs: tables(flow.outputs),
  });
  const ofStatements = flow.statements.map(({ node, attempt, sql, engine, status, error, endedAt, inputs, outputs }) =>
    runEvent({
      ...ended(status, error, { ...when, ...parentRun(runId, jobName) }),
      at: endedAt.getTime(),
      runId: hashUuid(`${runId}/${node}/${attempt}`),
      job: {
        name: jobNameOf({ chain: flow.chain, node }),
        facets: { ...jobType("NODE"), ...sqlText(sql, dialectOf(engine)) },
      },
      inputs: tables(inputs),
      outputs: tables(outputs),
    }),
  );
  return [ofRun, ...ofStatements];
}

function jobNameOf({ chain, node }: Place): string {
  return node === null ? `chain.${chain}` : `chain.${chain}.${node}`;
}

function ended(status: string, error: string | null, facets: object) {
  const type = TYPES[status];
  if (!type) throw new Error(`a run does not end as ${status}`);
  return { type, runFacets: { ...facets, ...(type !== "COMPLETE" && error !== null && errorMessage(error)) } };
}
