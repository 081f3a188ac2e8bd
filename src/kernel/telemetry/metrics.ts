/** The metrics at `/metrics`: a registry, and a typed writer for each table of metrics. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { MetricTable } from "./metric-table.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type NamesOf<Table extends MetricTable, Kind> = {
  [Name in keyof Table]: Table[Name]["kind"] extends Kind ? Name : never;
}[keyof Table];
type Labels<Table extends MetricTable, Name extends keyof Table> = Record<Table[Name]["labels"][number], string>;

/** Writes the metrics of one table. */
export interface Metrics<Table extends MetricTable> {
  count<Name extends NamesOf<Table, "counter">>(name: Name, labels: Labels<Table, Name>, by?: number): void;
  observe<Name extends NamesOf<Table, "histogram">>(name: Name, labels: Labels<Table, Name>, seconds: number): void;
  /** Calls `read` at each scrape. */
  gauge<Name extends NamesOf<Table, "gauge">>(
    name: Name,
    read: () => { labels: Labels<Table, Name>; value: number }[],
  ): void;
}

export interface MetricsRegistry {
  /** Declares the metrics of a table. Throws if a name is already declared. */
  define<Table extends MetricTable>(table: Table): Metrics<Table>;
  /** The Prometheus text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

export function createMetrics(): MetricsRegistry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    define: (table) => define(registry, table),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function define<Table extends MetricTable>(registry: Registry, table: Table): Metrics<Table> {
  const counters = new Map<keyof Table, Counter>();
  const histograms = new Map<keyof Table, Histogram>();
  for (const [name, { kind, help, labels, buckets = SECONDS }] of Object.entries(table)) {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (kind === "counter") counters.set(name, new Counter(options));
    if (kind === "histogram") histograms.set(name, new Histogram({ ...options, buckets: [...buckets] }));
  }
  return {
    count: (name, labels, by = 1) => counters.get(name)?.inc(labels, by),
    observe: (name, labels, seconds) => histograms.get(name)?.observe(labels, seconds),
    gauge(name, read) {
      const { help, labels } = table[name] as MetricTable[string];
      const gauge = new Gauge({
        name: String(name),
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
  };
}
