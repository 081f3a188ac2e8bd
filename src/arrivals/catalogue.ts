/**
 * The errors, metrics, scopes and tags that arrivals adds to the catalogues of Millrace. It loads no package, because the
 * CLI reads it too.
 */
import type { Catalogue } from "../kernel/catalogue.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

export const CATALOGUE = {
  name: "arrivals",
  errors: {
    MODEL_NOT_FOUND: { status: 404, sentence: "There is no model `{modelId}`." },
    MODEL_NOT_PUBLISHED: {
      status: 409,
      sentence: "Model `{modelId}` is not published. Publish it first: POST /api/v1/kpi/models/{modelId}:publish.",
    },
    MODEL_RUNNING: {
      status: 409,
      sentence: "Model `{modelId}` is running for {opTime}. Wait until that run has ended.",
    },
    TABLES_MISSING: {
      status: 409,
      sentence:
        "Model `{modelId}` cannot run for {opTime} while tables are missing: {missing}. With `force` it runs without them.",
    },
    KPI_NOT_FOUND: { status: 404, sentence: "There is no indicator `{kpiId}`." },
    KPI_FED_ALREADY: {
      status: 409,
      sentence: "Indicator `{kpiId}` is fed by model `{modelId}`, and only one model feeds an indicator.",
    },
    KPI_IN_USE: { status: 409, sentence: "Indicator `{kpiId}` is used by `{by}`. Change or delete that first." },
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
  tags: {
    arrivals: "Tables that have arrived for their business dates",
    models: "Models that wait for tables, their runs, and why they ran or have not",
    indicators: "KPIs and their values",
  },
} as const satisfies Catalogue;

export const arrivalsError = errorsOf(CATALOGUE.errors);
export type ArrivalsMetrics = Metrics<typeof CATALOGUE.metrics>;
