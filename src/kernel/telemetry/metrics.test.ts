/** The metrics as Prometheus reads them. */
import { expect, test } from "vitest";
import { createMetrics, METRICS } from "./metrics.ts";

/** The lines of one metric, without its description. */
async function linesOf(metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> {
  return (await metrics.render()).split("\n").filter((line) => line.startsWith(name));
}

test("counters add up by their labels", async () => {
  const metrics = createMetrics();
  metrics.count("millrace_tracking_claimed_total", { stage: "loader" });
  metrics.count("millrace_tracking_claimed_total", { stage: "loader" }, 4);
  metrics.count("millrace_tracking_claimed_total", { stage: "shard-worker" }, 2);
  expect(await linesOf(metrics, "millrace_tracking_claimed_total")).toEqual([
    'millrace_tracking_claimed_total{stage="loader"} 5',
    'millrace_tracking_claimed_total{stage="shard-worker"} 2',
  ]);
});

test("histograms sort seconds into buckets from a millisecond to ten seconds", async () => {
  const metrics = createMetrics();
  for (const seconds of [0.0005, 0.03, 60]) {
    metrics.observe("millrace_db_statement_seconds", { statement: "s" }, seconds);
  }
  const lines = await linesOf(metrics, "millrace_db_statement_seconds");
  for (const [le, count] of [
    ["0.001", 1],
    ["0.025", 1],
    ["0.05", 2],
    ["10", 2],
    ["+Inf", 3],
  ]) {
    expect(lines).toContain(`millrace_db_statement_seconds_bucket{le="${le}",statement="s"} ${count}`);
  }
  expect(lines).toContain('millrace_db_statement_seconds_count{statement="s"} 3');
});

test("gauges are read at each scrape, and what is no longer there is no longer shown", async () => {
  const metrics = createMetrics();
  let readings = [
    { labels: { state: "busy" }, value: 1 },
    { labels: { state: "idle" }, value: 2 },
  ];
  metrics.gauge("millrace_db_connections", () => readings);
  expect(await linesOf(metrics, "millrace_db_connections")).toHaveLength(2);
  readings = [{ labels: { state: "busy" }, value: 7 }];
  expect(await linesOf(metrics, "millrace_db_connections")).toEqual(['millrace_db_connections{state="busy"} 7']);
});

test("two sets of metrics do not know of each other", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.count("millrace_tracking_claimed_total", { stage: "loader" });
  expect(await linesOf(other, "millrace_tracking_claimed_total")).toEqual([]);
});

test("a label's text cannot break out of its line", async () => {
  const metrics = createMetrics();
  metrics.count("millrace_tracking_claimed_total", { stage: 'a"} 1\nevil{x="\\' });
  expect(await linesOf(metrics, "millrace_tracking_claimed_total")).toEqual([
    String.raw`millrace_tracking_claimed_total{stage="a\"} 1\nevil{x=\"\\"} 1`,
  ]);
  expect(await linesOf(metrics, "evil")).toEqual([]);
});

test("names and units follow the conventions of Prometheus", () => {
  for (const [name, { kind, help }] of Object.entries(METRICS)) {
    expect(name).toMatch(/^millrace_[a-z_]+$/);
    expect(name.endsWith("_total")).toBe(kind === "counter");
    expect(name.endsWith("_seconds")).toBe(kind === "histogram");
    expect(help).toMatch(/\.$/);
  }
});

test("the process itself is measured too", async () => {
  expect(await linesOf(createMetrics(), "process_resident_memory_bytes")).toHaveLength(1);
});
