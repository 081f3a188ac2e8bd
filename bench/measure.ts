/**
 * How we measure: contenders take turns, round after round, on the same server, and the median of each is compared. A busy
 * moment of the machine then hits all of them alike, and a ratio means something where an absolute figure would not.
 */

export interface Contender {
  name: string;
  /** One round; returns the figure of that round. */
  round(): Promise<number>;
  /** Closes what the contender holds open. */
  end?(): Promise<void>;
}

export type Figures = Map<string, number[]>;

export async function interleave(
  contenders: readonly Contender[],
  rounds: number,
  progress: (line: string) => void,
): Promise<Figures> {
  const figures: Figures = new Map(contenders.map(({ name }) => [name, []]));
  // Round 0 warms up connections, plans and caches and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, round: run } of contenders) {
      const figure = await run();
      progress(`round ${round}/${rounds}  ${name}: ${formatNumber(figure)}${round === 0 ? "  (warm-up)" : ""}`);
      if (round > 0) figures.get(name)?.push(figure);
    }
  }
  for (const { end } of contenders) await end?.();
  return figures;
}

/** How many of `items` were done in each second of `work`. */
export async function perSecond(items: number, work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return items / ((performance.now() - started) / 1000);
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.floor(sorted.length * share));
  return sorted[index] ?? Number.NaN;
}

export function formatNumber(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 10 ? 1 : 2);
}

/** Prints rows as an aligned table. */
export function printTable(title: string, header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column <= 1 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ");
  console.log(`\n${title}\n`);
  for (const row of [header, widths.map((width) => "-".repeat(width)), ...rows]) console.log(`  ${line(row)}`);
}

/** One row a contender: its median, its spread, and ours as a multiple of it. */
export function ratioRows(measure: string, figures: Figures, ours: string): string[][] {
  const reference = median(figures.get(ours) ?? []);
  return [...figures].map(([name, values], index) => [
    index === 0 ? measure : "",
    name,
    formatNumber(median(values)),
    `${formatNumber(Math.min(...values))} - ${formatNumber(Math.max(...values))}`,
    name === ours ? "" : `${(reference / median(values)).toFixed(2)}x`,
  ]);
}
