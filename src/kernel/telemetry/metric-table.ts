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
  millrace_gate_permits_total: {
    kind: "counter",
    help: "Permits of rate gates that this process has taken.",
    labels: [],
  },
  millrace_gate_permits_given_up_total: {
    kind: "counter",
    help: "Permits that were not used: the request was late or cancelled, or the gate cooled down.",
    labels: [],
  },
  millrace_gate_rejections_total: {
    kind: "counter",
    help: "Requests for permits that were refused, many of which are repeated and granted later.",
    labels: ["reason"],
  },
  millrace_gate_wait_seconds: {
    kind: "histogram",
    help: "Wait for a permit, of those that were granted.",
    labels: [],
    buckets: [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 600],
  },
  millrace_gate_waiting: { kind: "gauge", help: "Requests of this process that wait for a permit.", labels: [] },
  millrace_gate_cuts_total: {
    kind: "counter",
    help: "Times that a gate was slowed down because its service refused requests.",
    labels: [],
  },
} as const satisfies MetricTable;
