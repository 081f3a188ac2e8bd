/** Tables as docs/performance.md has them, with each figure beside its goal. */

interface Goal {
  text: string;
  met(value: number): boolean;
}

export function atLeast(ratio: number): Goal {
  return { text: `at least ${ratio}x`, met: (value) => value >= ratio };
}

export function atMost(limit: number, unit: "ms" | "x"): Goal {
  const text = `at most ${limit.toLocaleString("en")}${unit === "x" ? "x" : ` ${unit}`}`;
  return { text, met: (value) => value <= limit };
}

export function withGoal(value: number, { text, met }: Goal): string {
  return met(value) ? text : `${text} (missed)`;
}

export function times(ratio: number): string {
  return `${ratio.toFixed(2)}x`;
}

export function printMarkdown(title: string, header: readonly string[], rows: readonly (readonly string[])[]): void {
  console.log(`\n${title}:\n`);
  for (const row of [header, header.map(() => "---"), ...rows]) console.log(`| ${row.join(" | ")} |`);
}
