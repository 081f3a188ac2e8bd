/**
 * Every metric that Millrace exposes at `/metrics`, declared once. Names are API: `docs/events.md` is made from this table
 * and a test keeps the two equal.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const METRICS = {
  millrace_http_request_seconds: {
    kind: "histogram",
    help: "Time to answer a request, long polls included; the status is 499 if the caller hung up before.",
    labels: ["method", "route", "status"],
  },
  millrace_db_statement_seconds: {
    kind: "histogram",
    help: "Time of a statement, waiting for a connection and for what was sent before it included.",
    labels: ["statement"],
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
  millrace_tracking_moves_total: {
    kind: "counter",
    help: "Moves of shards, by what became of them: moved, repeated, or the code of the refusal.",
    labels: ["stage", "transition", "outcome"],
  },
  millrace_tracking_claimed_total: { kind: "counter", help: "Shards handed out by claims.", labels: ["stage"] },
  millrace_chains_runs_total: {
    kind: "counter",
    help: "Runs of chains that started, succeeded, failed or were stopped.",
    labels: ["outcome"],
  },
  millrace_chains_node_seconds: {
    kind: "histogram",
    help: "Time from the claim of a node to its end, by its type and what became of it.",
    labels: ["type", "outcome"],
  },
  millrace_chains_nodes_in_flight: { kind: "gauge", help: "Nodes that this process runs at the moment.", labels: [] },
  millrace_arrivals_total: {
    kind: "counter",
    help: "Announced arrivals, by whether any model depends on the table.",
    labels: ["outcome"],
  },
  millrace_arrivals_run_seconds: {
    kind: "histogram",
    help: "Time from the claim of a model's run to its end, by what became of it.",
    labels: ["outcome"],
  },
  millrace_arrivals_runs_in_flight: {
    kind: "gauge",
    help: "Runs of models in this process at the moment.",
    labels: [],
  },
  millrace_webhooks_deliveries_total: {
    kind: "counter",
    help: "What became of deliveries: delivered, retry_later, give_up, cancel, release on shutdown, or lost to another process.",
    labels: ["event", "outcome"],
  },
  millrace_webhooks_attempt_seconds: {
    kind: "histogram",
    help: "Time of an attempt to deliver, from the look-up of the name to the end of the answer.",
    labels: ["event", "outcome"],
  },
  millrace_webhooks_in_flight: { kind: "gauge", help: "Deliveries that this process sends at the moment.", labels: [] },
  millrace_lineage_events_total: {
    kind: "counter",
    help: "Lineage events that were taken, by what became of them: applied, buffered, skipped, dead, or duplicate.",
    labels: ["tenant", "outcome"],
  },
  millrace_lineage_refused_total: {
    kind: "counter",
    help: "Lineage events that were refused, by the code of the error; the tenant is empty where none could be told.",
    labels: ["tenant", "code"],
  },
  millrace_lineage_tasks: {
    kind: "gauge",
    help: "Async tasks that are not done, by type and status, as of some seconds ago.",
    labels: ["type", "status"],
  },
  millrace_lineage_tasks_total: {
    kind: "counter",
    help: "Async tasks that were claimed, retried (claimed after a failure) or lost with their process, and what became of them: succeeded, outdated, failed, dead, canceled.",
    labels: ["type", "outcome"],
  },
  millrace_lineage_batch_seconds: {
    kind: "histogram",
    help: "Time of a batch of async tasks from its claim to the commit of its results; failed if a model failed for any of them.",
    labels: ["type", "outcome"],
  },
  millrace_lineage_batches_in_flight: {
    kind: "gauge",
    help: "Batches of async tasks that this process works on at the moment.",
    labels: [],
  },
} as const satisfies Record<
  string,
  { kind: "counter" | "gauge" | "histogram"; help: string; labels: readonly string[] }
>;

type MetricName = keyof typeof METRICS;
type NamesOf<Kind> = { [Name in MetricName]: (typeof METRICS)[Name]["kind"] extends Kind ? Name : never }[MetricName];
type Labels<Name extends MetricName> = Record<(typeof METRICS)[Name]["labels"][number], string>;

export interface Metrics {
  count<Name extends NamesOf<"counter">>(name: Name, labels: Labels<Name>, by?: number): void;
  observe<Name extends NamesOf<"histogram">>(name: Name, labels: Labels<Name>, seconds: number): void;
  /** Reads a gauge whenever the metrics are scraped. */
  gauge<Name extends NamesOf<"gauge">>(name: Name, read: () => { labels: Labels<Name>; value: number }[]): void;
  /** The Prometheus text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counters = new Map<MetricName, Counter>();
  const histograms = new Map<MetricName, Histogram>();
  for (const [name, { kind, help, labels }] of Object.entries(METRICS) as [
    MetricName,
    (typeof METRICS)[MetricName],
  ][]) {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (kind === "counter") counters.set(name, new Counter(options));
    if (kind === "histogram") histograms.set(name, new Histogram({ ...options, buckets: SECONDS }));
  }
  return {
    count: (name, labels, by = 1) => counters.get(name)?.inc(labels, by),
    observe: (name, labels, seconds) => histograms.get(name)?.observe(labels, seconds),
    gauge(name, read) {
      const { help, labels } = METRICS[name];
      const gauge = new Gauge({
        name,
        help,
        labelNames: [...labels],
        collect() {
          this.reset();
          for (const reading of read()) this.set(reading.labels, reading.value);
        },
        registers: [],
      });
      registry.registerMetric(gauge);
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
