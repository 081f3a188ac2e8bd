/**
 * The errors, metrics, scopes, hints and tags that arrivals adds to the catalogues of Millrace. It loads no package, because the
 * CLI reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Hints } from "../kernel/hints/hints.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

export const CATALOGUE = {
  name: "arrivals",
  errors: {
    MODEL_NOT_FOUND: { status: 404, sentence: "There is no model `{modelId}`.{hint}" },
    MODEL_NOT_PUBLISHED: {
      status: 409,
      sentence: "Model `{modelId}` is not published. Publish it first: POST /api/v1/kpi/models/{modelId}:publish.",
    },
    MODEL_RUNNING: {
      status: 409,
      sentence: "Model `{modelId}` is running for {opTime}. Wait until that run has ended.",
    },
    MODEL_NOT_FAILED: {
      status: 409,
      sentence: "The newest run of model `{modelId}` for {opTime} has not failed. POST :run runs it all the same.",
    },
    MODEL_IN_USE: {
      status: 409,
      sentence: "Model `{modelId}` cannot be deleted: {because}. Change that first, or unpublish the model.",
    },
    TABLES_MISSING: {
      status: 409,
      sentence:
        "Model `{modelId}` cannot run for {opTime} while tables are missing: {missing}. With `force` it runs without them.",
    },
    ARRIVAL_NOT_FOUND: {
      status: 404,
      sentence: "Table `{table}` has not arrived for {opTime}, or was retracted already.",
    },
    KPI_NOT_FOUND: { status: 404, sentence: "There is no indicator `{kpiId}`.{hint}" },
    KPI_FED_ALREADY: {
      status: 409,
      sentence: "Indicator `{kpiId}` is fed by model `{modelId}`, and only one model feeds an indicator.",
    },
    KPI_IN_USE: { status: 409, sentence: "Indicator `{kpiId}` is used by {user}. Change or delete that first." },
  },
  metrics: {
    millrace_arrivals_total: {
      kind: "counter",
      help: "Announced arrivals, by whether any model depends on the table.",
      labels: ["outcome"],
    },
    millrace_arrivals_run_seconds: {
      kind: "histogram",
      help: "Time from the claim of a model's run to its end, by outcome.",
      labels: ["outcome"],
    },
    millrace_arrivals_runs_in_flight: {
      kind: "gauge",
      help: "Runs of models in flight in this process.",
      labels: [],
    },
  },
  scopes: { "kpi:read": {}, "kpi:write": {} },
  hints: {
    arrival: { scope: "kpi:read", id: "`table/opTime`", help: "The table has arrived." },
    model: {
      scope: "kpi:read",
      id: "`modelId/opTime`, or `modelId`",
      help: "Its state for the opTime changed, or that of a run. Without an opTime: it was defined, published, unpublished or deleted.",
    },
    kpi: { scope: "kpi:read", id: "`kpiId`", help: "The indicator was defined or deleted, or it has other values." },
  },
  tags: {
    arrivals: "Tables that have arrived for their business dates",
    models: "Models that wait for tables, their runs, and why they ran or have not",
    indicators: "KPIs and their values",
  },
} as const satisfies Catalogue;

export const arrivalsError = errorsOf(CATALOGUE.errors);
export type ArrivalsHints = Hints<typeof CATALOGUE.hints>;
export type ArrivalsMetrics = Metrics<typeof CATALOGUE.metrics>;
