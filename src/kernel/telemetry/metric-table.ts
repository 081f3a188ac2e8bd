/**
 * The declaration of metrics, and the metrics of the kernel; each module has its own in its catalogue. Names are API:
 * `docs/events.md` is generated from these tables, and a test compares them.
 */

export type MetricTable = Readonly<
  Record<
    string,
    {
      readonly kind: "counter" | "gauge" | "histogram";
      readonly help: string;
      readonly labels: readonly string[];
      /** Of a histogram, in seconds; by default from a millisecond to ten seconds. */
      readonly buckets?: readonly number[];
    }
  >
>;

export const KERNEL_METRICS = {
  millrace_http_request_seconds: {
    kind: "histogram",
    help: "Time to answer a request, long polls included; the status is 499 if the caller disconnected before the answer.",
    labels: ["method", "route", "status"],
  },
  millrace_db_statement_seconds: {
    kind: "histogram",
    help: "Time of a statement, including the wait for a connection and for earlier statements on it. Sum and count only: there are hundreds of statements.",
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
    help: "The counts of a background loop, such as claimed or reclaimed items.",
    labels: ["service", "kind"],
  },
} as const satisfies MetricTable;
