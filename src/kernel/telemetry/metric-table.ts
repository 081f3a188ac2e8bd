/**
 * What a metric is declared as, and the metrics of the kernel; each module has its own in its catalogue. Names are API:
 * `docs/events.md` is made from these tables and a test keeps them equal.
 */

export type MetricTable = Readonly<
  Record<
    string,
    {
      readonly kind: "counter" | "gauge" | "histogram";
      readonly help: string;
      readonly labels: readonly string[];
      /** Of a histogram, in seconds; unless it says so, from a millisecond to ten seconds. */
      readonly buckets?: readonly number[];
    }
  >
>;

export const KERNEL_METRICS = {
  millrace_http_request_seconds: {
    kind: "histogram",
    help: "Time to answer a request, long polls included; the status is 499 if the caller hung up before.",
    labels: ["method", "route", "status"],
  },
  millrace_db_statement_seconds: {
    kind: "histogram",
    help: "Time of a statement, waiting for a connection and for what was sent before it included. Sum and count only: there are hundreds of statements.",
    labels: ["statement"],
    buckets: [],
  },
  millrace_db_module_seconds: {
    kind: "histogram",
    help: "The same for all statements of a module, in buckets.",
    labels: ["module"],
  },
  millrace_db_connections: { kind: "gauge", help: "Connections of the pools.", labels: ["state"] },
  millrace_service_runs_total: {
    kind: "counter",
    help: "Runs of a background loop.",
    labels: ["service", "outcome"],
  },
  millrace_service_items_total: {
    kind: "counter",
    help: "What the runs of a background loop counted, such as reclaimed or delivered items.",
    labels: ["service", "kind"],
  },
} as const satisfies MetricTable;
