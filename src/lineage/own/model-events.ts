/** The events of a model's run: from its tables to its indicators, and from those to the indicators computed from them. */
import type { IndicatorFlow, ModelFlow } from "../../arrivals/index.ts";
import { hashUuid } from "../graph/hash-uuid.ts";
import { timesOf } from "./nominal-time.ts";
import {
  type Dataset,
  datasetDescription,
  errorMessage,
  type Facets,
  jobDescription,
  jobType,
  KPIS,
  nominalTime,
  opTimeOf,
  parentRun,
  runEvent,
  sqlText,
  tables,
} from "./openlineage.ts";

export type DialectOf = (engine: string) => string | undefined;

/** One event for the model, and one for each indicator that was computed anew because of it. */
export function modelEvents(flow: ModelFlow, at: number, dialectOf: DialectOf): string[] {
  const { runKey, modelId, name, description, statement, failure, opTime, timeZone } = flow;
  const runId = hashUuid(runKey);
  const jobName = `kpi.model.${modelId}`;
  const times = timesOf(opTime, timeZone);
  const when: Facets = { ...opTimeOf(opTime), ...(times && nominalTime(times)) };
  const ofModel = runEvent({
    type: failure === null ? "COMPLETE" : "FAIL",
    at,
    runId,
    runFacets: { ...when, ...(failure !== null && errorMessage(failure)) },
    job: {
      name: jobName,
      facets: {
        ...jobType("MODEL"),
        ...jobDescription(description ?? name),
        ...(statement && sqlText(statement.sql, dialectOf(statement.engine))),
      },
    },
    inputs: tables(flow.inputs),
    outputs: [...tables(flow.produces === null ? [] : [flow.produces]), ...flow.kpis.map(indicator)],
  });
  const ofComputed = flow.computed.map((kpi) =>
    runEvent({
      type: "COMPLETE",
      at,
      runId: hashUuid(`${runKey} ${kpi.kpiId}`),
      runFacets: { ...when, ...parentRun(runId, jobName) },
      job: {
        name: `kpi.indicator.${kpi.kpiId}`,
        facets: { ...jobType("INDICATOR"), ...jobDescription(`${kpi.kpiId} = ${kpi.formula}`) },
      },
      inputs: kpi.parts.map((kpiId) => ({ namespace: KPIS, name: kpiId })),
      outputs: [indicator(kpi)],
    }),
  );
  return [ofModel, ...ofComputed];
}

function indicator({ kpiId, name }: IndicatorFlow): Dataset {
  return { namespace: KPIS, name: kpiId, facets: datasetDescription(name) };
}
