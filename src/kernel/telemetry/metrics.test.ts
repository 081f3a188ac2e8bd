/** The metrics as Prometheus reads them. */
import { expect, test } from "vitest";
import { CATALOGUE } from "../../modules.ts";
import { KERNEL_METRICS, type MetricTable } from "./metric-table.ts";
import { createMetrics, type MetricsRegistry } from "./metrics.ts";

const TABLE = {
  eaten_total: { kind: "counter", help: "Eaten.", labels: ["fruit"] },
  chewed_seconds: { kind: "histogram", help: "Chewed.", labels: ["fruit"] },
  fruit: { kind: "gauge", help: "Left.", labels: ["state"] },
} as const satisfies MetricTable;

/** The lines of one metric, without its description. */
async function linesOf(metrics: MetricsRegistry, name: string): Promise<string[]> {
  return (await metrics.render()).split("\n").filter((line) => line.startsWith(name));
}

test("counters add up by their labels", async () => {
  const registry = createMetrics();
  const metrics = registry.define(TABLE);
  metrics.count("eaten_total", { fruit: "apple" });
  metrics.count("eaten_total", { fruit: "apple" }, 4);
  metrics.count("eaten_total", { fruit: "plum" }, 2);
  expect(await linesOf(registry, "eaten_total")).toEqual([
    'eaten_total{fruit="apple"} 5',
    'eaten_total{fruit="plum"} 2',
  ]);
});

test("histograms sort seconds into buckets from a millisecond to ten seconds", async () => {
  const registry = createMetrics();
  const metrics = registry.define(TABLE);
  for (const seconds of [0.0005, 0.03, 60]) metrics.observe("chewed_seconds", { fruit: "apple" }, seconds);
  const lines = await linesOf(registry, "chewed_seconds");
  for (const [le, count] of [
    ["0.001", 1],
    ["0.025", 1],
    ["0.05", 2],
    ["10", 2],
    ["+Inf", 3],
  ]) {
    expect(lines).toContain(`chewed_seconds_bucket{le="${le}",fruit="apple"} ${count}`);
  }
  expect(lines).toContain('chewed_seconds_count{fruit="apple"} 3');
});

test("histograms of statements have a sum and a count for each, and no buckets", async () => {
  const registry = createMetrics();
  const metrics = registry.define(KERNEL_METRICS);
  for (const seconds of [0.25, 60]) metrics.observe("millrace_db_statement_seconds", { statement: "s" }, seconds);
  expect((await linesOf(registry, "millrace_db_statement_seconds")).sort()).toEqual([
    'millrace_db_statement_seconds_bucket{le="+Inf",statement="s"} 2',
    'millrace_db_statement_seconds_count{statement="s"} 2',
    'millrace_db_statement_seconds_sum{statement="s"} 60.25',
  ]);
});

test("gauges are read at each scrape, and old labels disappear", async () => {
  const registry = createMetrics();
  let readings = [
    { labels: { state: "ripe" }, value: 1 },
    { labels: { state: "green" }, value: 2 },
  ];
  registry.define(TABLE).gauge("fruit", () => readings);
  expect(await linesOf(registry, "fruit")).toHaveLength(2);
  readings = [{ labels: { state: "ripe" }, value: 7 }];
  expect(await linesOf(registry, "fruit")).toEqual(['fruit{state="ripe"} 7']);
});

test("two registries are independent", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  const metrics = one.define(TABLE);
  other.define(TABLE);
  metrics.count("eaten_total", { fruit: "apple" });
  expect(await linesOf(other, "eaten_total")).toEqual([]);
});

test("a metric is declared once", () => {
  const registry = createMetrics();
  registry.define(TABLE);
  expect(() => registry.define({ eaten_total: TABLE.eaten_total })).toThrow("eaten_total");
});

test("a label's text cannot break out of its line", async () => {
  const registry = createMetrics();
  registry.define(TABLE).count("eaten_total", { fruit: 'a"} 1\nevil{x="\\' });
  expect(await linesOf(registry, "eaten_total")).toEqual([String.raw`eaten_total{fruit="a\"} 1\nevil{x=\"\\"} 1`]);
  expect(await linesOf(registry, "evil")).toEqual([]);
});

test("names and units follow the conventions of Prometheus", () => {
  for (const [name, { kind, help, buckets }] of Object.entries(CATALOGUE.metrics)) {
    // The names and milliseconds of `patra_ingest_` are those of the specification of harvest.
    const isSpecified = name.startsWith("patra_ingest_");
    if (!isSpecified) expect(name).toMatch(/^millrace_[a-z][a-z0-9_]*$/);
    expect(name.endsWith("_total")).toBe(kind === "counter");
    if (kind === "histogram") expect(name).toMatch(isSpecified ? /_ms$/ : /_seconds$/);
    if (kind === "histogram" && isSpecified) expect(Math.max(...(buckets ?? []))).toBeGreaterThan(1_000);
    if (name.endsWith("_seconds")) expect(kind).not.toBe("counter");
    expect(help).toMatch(/\.$/);
  }
});

test("the process itself is measured too", async () => {
  expect(await linesOf(createMetrics(), "process_resident_memory_bytes")).toHaveLength(1);
});
